"""Make references of models whose predictions JAX computes and differentiates."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from gpsift.adapters.predictions import LibraryModel
from gpsift.reference.finite_differences import remove_noise

Latent = Callable[[Any, Any], tuple[Any, Any]]


def jax_model(latent: Latent, model: Any, **fields: Any) -> LibraryModel:
    """Make a reference of a latent function whose mean and variance JAX computes.

    Parameters
    ----------
    latent : callable
        Maps the model and points (n, p), JAX arrays, to latent means and variances, (n,) each. It is a function of a
        module, not a closure, so that JAX compiles it once for all models of the same structure.
    model : pytree
    **fields
        The other fields of a `LibraryModel`.
    """

    def predict(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, var = _call(_predict, latent, model, X)
        return mean, remove_noise(var)

    return LibraryModel(
        predict=predict,
        differentiate=partial(_call, _differentiate, latent, model),
        predict_mean=lambda X: _call(_predict_mean, latent, model, X)[0],
        **fields,
    )


def _call(compiled: Callable[..., Any], latent: Latent, model: Any, X: np.ndarray) -> tuple[np.ndarray, ...]:
    # JAX computes in the precision that the user has set; the results are converted to doubles.
    with warnings.catch_warnings():
        # GPJax has warned when its data were made, and repeats it whenever JAX flattens them.
        warnings.filterwarnings("ignore", ".*not of type float64", UserWarning)
        values = compiled(latent, model, jnp.asarray(X))
    return tuple(np.asarray(value, dtype=float) for value in values)


# JAX compiles these functions for each structure of a model and each number of points, not for each parameter.
@eqx.filter_jit  # type: ignore[untyped-decorator]
def _predict(latent: Latent, model: Any, X: Any) -> tuple[Any, Any]:
    return latent(model, X)


@eqx.filter_jit  # type: ignore[untyped-decorator]
def _predict_mean(latent: Latent, model: Any, X: Any) -> tuple[Any]:
    return (latent(model, X)[0],)


@eqx.filter_jit  # type: ignore[untyped-decorator]
def _differentiate(latent: Latent, model: Any, X: Any) -> tuple[Any, Any]:
    (mean, var), pull_back = jax.vjp(lambda X: latent(model, X), X)
    (mean_gradient,) = pull_back((jnp.ones_like(mean), jnp.zeros_like(var)))
    (var_gradient,) = pull_back((jnp.zeros_like(mean), jnp.ones_like(var)))
    return mean_gradient, var_gradient
