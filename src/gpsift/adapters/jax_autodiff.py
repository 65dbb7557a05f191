r"""Models written in JAX whose kernel we do not have: derivatives by automatic differentiation.

A prediction at a point depends on no other point, so the derivative of the sum of all means with respect to X holds the
gradient at every point: one backward pass for the mean and one for the variance, whatever the number of features.

A short step is the integral of the derivative along it, by Gauss's rule; the difference of two predictions would leave
only the digits that they do not share.
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

from gpsift import families
from gpsift.adapters.foreign import Foreign
from gpsift.families import Family
from gpsift.tables import column_sd

Latent = Callable[[Any, Any], tuple[Any, Any]]

# Steps up to this many standard deviations are integrals of derivatives. With N_NODES nodes and a length-scale of l
# standard deviations the error of the rule is about (SHORT / l)^6 / 2e6.
SHORT = 0.01
N_NODES = 3


@dataclass(frozen=True, eq=False, repr=False)
class Differentiated(Foreign):
    """A latent function whose mean and variance JAX computes, and what is observed of it.

    Parameters
    ----------
    latent : function
        From the model and points (n, p), JAX arrays, to latent means and variances, (n,) each. A function of a module,
        not a closure: what JAX compiles for it serves all models of the same structure.
    model : pytree
    of : str
        What is differentiated, in words.
    predictive : callable
        From latent mean and variance to the distribution of a new observation.
    feature_names, has_given_names, X_train
        As in `Reference`.
    mean_of : str
        What the latent mean is the mean of.
    """

    latent: Latent
    model: Any
    of: str
    predictive: Callable[[np.ndarray, np.ndarray], Family]
    feature_names: tuple[str, ...]
    has_given_names: bool
    X_train: np.ndarray | None
    mean_of: str = "the target"
    notices: tuple[str, ...] = ()

    @property
    def how(self) -> str:  # type: ignore[override]
        return f"automatic differentiation of {self.of}"

    def at(self, X: np.ndarray, rows: np.ndarray | None = None) -> DifferentiatedResponse:
        scale = column_sd(X if self.X_train is None else self.X_train)
        return DifferentiatedResponse(self, X if rows is None else X[rows], scale)


class DifferentiatedResponse:
    """Predictions and their derivatives by JAX."""

    def __init__(self, reference: Differentiated, X: np.ndarray, scale: np.ndarray):
        self._reference, self._X, self._scale = reference, X, scale
        mean, var = self._call(_predicted, X)
        # Without noise nothing is unknown at a training point; rounding error is what is left.
        self._mean, self._var = mean, np.maximum(var, np.finfo(float).eps * np.max(np.abs(var)))

    def distribution(self, *, latent: bool) -> Family:
        return families.Gaussian(self._mean, self._var) if latent else self._reference.predictive(self._mean, self._var)

    def gradients(self) -> tuple[np.ndarray, np.ndarray]:
        mean_gradient, var_gradient = self._call(_gradients, self._X)
        return mean_gradient, var_gradient

    def step(self, j: int, delta: float) -> tuple[np.ndarray, np.ndarray]:
        if abs(delta) > SHORT * self._scale[j]:
            mean, var = self._call(_predicted, self._moved(j, delta))
            return mean - self._mean, var - self._var
        t, weights = np.polynomial.legendre.leggauss(N_NODES)
        slopes = [self._call(_gradients, self._moved(j, 0.5 * delta * (1.0 + node))) for node in t]
        changes = 0.5 * delta * np.tensordot(weights, np.array(slopes)[..., j], axes=1)
        return changes[0], changes[1]

    def section(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        X, columns = self._X.copy(), []
        for move in offset:
            X[:, j] = base + move
            columns.append(self._call(_mean, X)[0])
        return np.stack(columns, axis=1)

    def _moved(self, j: int, delta: float) -> np.ndarray:
        X = self._X.copy()
        X[:, j] += delta
        return X

    def _call(self, compiled: Callable[..., Any], X: np.ndarray) -> tuple[np.ndarray, ...]:
        # In the precision that the user has set up JAX for; what comes back is double precision in any case.
        with warnings.catch_warnings():
            # GPJax says so each time that JAX takes its data apart; the user was told when they were made.
            warnings.filterwarnings("ignore", ".*not of type float64", UserWarning)
            values = compiled(self._reference.latent, self._reference.model, jnp.asarray(X))
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
