"""The normal distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from gpsift._utils.arrays import Array, namespace
from gpsift.likelihoods.distributions.base import Family, log1p_excess


@dataclass(frozen=True, eq=False)
class Gaussian(Family):
    """Normal distributions with the given means and variances, (n,) each."""

    VARYING: ClassVar = ("mean", "var")

    mean: Array
    var: Array

    def log_density(self, y: Array) -> Array:
        return gaussian_log_density(y, self.mean, self.var)

    def cdf(self, y: np.ndarray) -> np.ndarray:
        """P(Y_i <= y_i)."""
        return ndtr((y - self.mean) / np.sqrt(self.var))

    def quantile(self, probability: float | np.ndarray) -> np.ndarray:
        """Quantiles: (n,) for one probability, (n, k) for k of them."""
        probability = np.asarray(probability, dtype=float)
        if np.any((probability <= 0) | (probability >= 1)):
            raise ValueError(f"Probabilities must lie between 0 and 1, got {probability}.")
        values = np.multiply.outer(np.sqrt(self.var), ndtri(probability))
        return values + (self.mean if probability.ndim == 0 else self.mean[..., None])

    def sample(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        """Draws (n_draws, n), independent between points."""
        return self.mean + np.sqrt(self.var) * rng.standard_normal((n_draws, *self.mean.shape))

    def metric_terms(self, *gradients: Array) -> dict[str, Array]:
        mean_gradient, var_gradient = gradients
        mean_term, var_term = gaussian_metric(self.var[:, None], mean_gradient, var_gradient)
        return {"mean": mean_term, "variance": var_term}

    def kl_terms(self, *changes: Array) -> dict[str, Array]:
        mean_change, var_change = changes
        mean_term, var_term = gaussian_kl_of_change(self.var, mean_change, var_change)
        return {"mean": mean_term, "variance": var_term}


def gaussian_log_density(y: Array, mean: Array, var: Array) -> Array:
    """log N(y; mean, var), elementwise."""
    xp = namespace(mean)
    return -0.5 * ((y - mean) ** 2 / var + xp.log(var) + math.log(2.0 * math.pi))


def gaussian_kl(mean_p: Array, var_p: Array, mean_q: Array, var_q: Array) -> Array:
    r"""KL(p || q) of univariate normals, elementwise.

    .. math:: \tfrac12 [u - \log(1 + u) + (m_p - m_q)^2 / v_q], \quad u = (v_p - v_q) / v_q
    """
    mean_term, var_term = gaussian_kl_of_change(var_p, mean_q - mean_p, var_q - var_p)
    return mean_term + var_term


def gaussian_kl_of_change(var: Array, mean_change: Array, var_change: Array) -> tuple[Array, Array]:
    """KL(N(m, v) || N(m + mean_change, v + var_change)) as what the mean and what the variance contribute.

    Taking the changes instead of two distributions keeps the digits that a subtraction of nearly equal predictions
    loses.
    """
    moved_var = var + var_change
    return 0.5 * mean_change**2 / moved_var, 0.5 * log1p_excess(-var_change / moved_var)


def gaussian_metric(var: Array, mean_gradient: Array, var_gradient: Array) -> tuple[Array, Array]:
    """The two terms of the Fisher metric of N(m, v): (dm)^2 / v and (dv)^2 / (2 v^2)."""
    return mean_gradient**2 / var, 0.5 * (var_gradient / var) ** 2
