r"""Predictive distributions: densities, Kullback-Leibler divergences and the Fisher metric.

The KL measure compares a predictive distribution with itself a small step away. As the step goes to zero, 2 KL / step^2
becomes d^T I d, with d the derivative of the distribution's parameters along the step and I their Fisher information.
Formulas take arrays and return arrays; `Gaussian` bundles them for a set of points.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from gpsift.arrays import Array, namespace


class Family(ABC):
    """A predictive distribution at n points, one set of parameters a point."""

    @abstractmethod
    def log_density(self, y: Array) -> Array:
        """log p(y_i) at each point."""

    @abstractmethod
    def metric_terms(self, *gradients: Array) -> Mapping[str, Array]:
        """Parts of d^T I d, by what they describe; `gradients` holds the derivatives of each parameter, (n, p)."""

    @abstractmethod
    def kl_terms(self, *changes: Array) -> Mapping[str, Array]:
        """Parts of KL(p || q), q having its parameters changed by `changes`, (n,) each or broadcasting to it."""


@dataclass(frozen=True, eq=False)
class Gaussian(Family):
    """Normal distributions with the given means and variances, (n,) each."""

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
        return values + (self.mean if probability.ndim == 0 else self.mean[:, None])

    def sample(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        """Draws (n_draws, n), independent between points."""
        return self.mean + np.sqrt(self.var) * rng.standard_normal((n_draws, self.mean.shape[0]))

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


def log1p_excess(u: Array) -> Array:
    """u - log(1 + u), never negative, to full relative precision."""
    # With r = u / (2 + u), log(1 + u) = 2 (r + r^3/3 + r^5/5 + ...), so the first order cancels on paper instead of in
    # floating point: at u = 1e-7 plain subtraction keeps nine digits, at u = 1e-12 four.
    xp = namespace(u)
    small = xp.abs(u) < 0.3
    near = xp.where(small, u, xp.zeros_like(u))
    r = near / (2.0 + near)
    series = xp.zeros_like(r)
    for order in range(19, 1, -2):
        series = r * r * (series + 1.0 / order)
    return xp.where(small, r * (near - 2.0 * series), u - xp.log1p(u))
