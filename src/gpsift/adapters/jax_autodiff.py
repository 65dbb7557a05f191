"""Models written in JAX whose kernel we do not have: derivatives by automatic differentiation.

A prediction at a point depends on no other point, so the derivative of the sum of all means with respect to X holds the
gradient at every point: one backward pass for the mean and one for the variance, whatever the number of features.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from gpsift.reference.finite_differences import Graded, latent_var_of
from gpsift.reference.inputs import Inputs
from gpsift.reference.response import Predictive

Latent = Callable[[Any, Any], tuple[Any, Any]]


@dataclass(frozen=True, eq=False, repr=False)
class Differentiated(Graded):
    """A latent function whose mean and variance JAX computes, and what is observed of it."""

    # From the model, a pytree, and points (n, p), JAX arrays, to latent means and variances, (n,) each. A function of a
    # module, not a closure: what JAX compiles for it serves all models of the same structure.
    latent: Latent
    model: Any
    of: str  # what is differentiated, in words
    predictive: Predictive
    inputs: Inputs
    mean_of: str = "the target"
    notices: tuple[str, ...] = ()

    @property
    def how(self) -> str:
        return f"automatic differentiation of {self.of}"

    def parameters(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, var = self._call(_predicted, X)
        return mean, latent_var_of(var)

    def mean_only(self, X: np.ndarray) -> np.ndarray:
        return self._call(_mean, X)[0]

    def gradients(self, X: np.ndarray) -> tuple[np.ndarray, ...]:
        return self._call(_gradients, X)

    def _call(self, compiled: Callable[..., Any], X: np.ndarray) -> tuple[np.ndarray, ...]:
        # In the precision that the user has set up JAX for; what comes back is double precision in any case.
        with warnings.catch_warnings():
            # GPJax says so each time that JAX takes its data apart; the user was told when they were made.
            warnings.filterwarnings("ignore", ".*not of type float64", UserWarning)
            values = compiled(self.latent, self.model, jnp.asarray(X))
        return tuple(np.asarray(value, dtype=float) for value in values)


def _predict(latent: Latent, model: Any, X: Any) -> tuple[Any, Any]:
    return latent(model, X)


def _predict_mean(latent: Latent, model: Any, X: Any) -> tuple[Any]:
    return (latent(model, X)[0],)


def _differentiate(latent: Latent, model: Any, X: Any) -> tuple[Any, Any]:
    (mean, var), pull_back = jax.vjp(lambda X: latent(model, X), X)
    (mean_gradient,) = pull_back((jnp.ones_like(mean), jnp.zeros_like(var)))
    (var_gradient,) = pull_back((jnp.zeros_like(mean), jnp.ones_like(var)))
    return mean_gradient, var_gradient


# Compiled when first called, for each structure of a model and each number of points; parameters may differ.
_predicted, _mean, _gradients = map(eqx.filter_jit, (_predict, _predict_mean, _differentiate))
