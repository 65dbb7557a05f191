"""Normal distributions of one output, and joint normal distributions of several outputs at each point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from gpsift._utils.arrays import Array, namespace
from gpsift.likelihoods.distributions.base import Distribution, log1p_excess


@dataclass(frozen=True, eq=False)
class Gaussian(Distribution):
    """Normal distributions with the given means and variances, (n,) each."""

    VARYING: ClassVar = ("mean", "var")

    mean: Array
    var: Array

    def log_density(self, y: Array) -> Array:
        return gaussian_log_density(y, self.mean, self.var)

    def cdf(self, y: np.ndarray) -> np.ndarray:
        return ndtr((y - self.mean) / np.sqrt(self.var))

    def quantile_at(self, probability: float) -> np.ndarray:
        return self.mean + np.sqrt(self.var) * ndtri(probability)

    def sample(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
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
    """Return log N(y; mean, var), elementwise."""
    xp = namespace(mean)
    return -0.5 * ((y - mean) ** 2 / var + xp.log(var) + math.log(2.0 * math.pi))


def gaussian_kl(mean_p: Array, var_p: Array, mean_q: Array, var_q: Array) -> Array:
    r"""Return KL(p || q) of univariate normals, elementwise.

    .. math:: \tfrac12 [u - \log(1 + u) + (m_p - m_q)^2 / v_q], \quad u = (v_p - v_q) / v_q
    """
    mean_term, var_term = gaussian_kl_of_change(var_p, mean_q - mean_p, var_q - var_p)
    return mean_term + var_term


def gaussian_kl_of_change(var: Array, mean_change: Array, var_change: Array) -> tuple[Array, Array]:
    """Return the contributions of the mean and of the variance to KL(N(m, v) || N(m + mean_change, v + var_change)).

    The arguments are changes, because a subtraction of nearly equal predictions would lose digits.
    """
    moved_var = var + var_change
    return 0.5 * mean_change**2 / moved_var, 0.5 * log1p_excess(-var_change / moved_var)


def gaussian_metric(var: Array, mean_gradient: Array, var_gradient: Array) -> tuple[Array, Array]:
    """Return the two terms of the Fisher metric of N(m, v): (dm)^2 / v and (dv)^2 / (2 v^2)."""
    return mean_gradient**2 / var, 0.5 * (var_gradient / var) ** 2


@dataclass(frozen=True, eq=False)
class MultivariateNormal(Distribution):
    """D outputs at each of n points: means (n, D) and covariances (n, D, D), independent between points.

    Gradients are (n, D, p) and (n, D, D, p), changes (n, D) and (n, D, D). `var`, `cdf` and `quantile` are those of
    each output by itself; `log_density` and `sample` are joint.
    """

    VARYING: ClassVar = ("mean", "cov")

    mean: np.ndarray
    cov: np.ndarray

    @property
    def var(self) -> np.ndarray:
        return np.diagonal(self.cov, axis1=1, axis2=2)

    @cached_property
    def L(self) -> np.ndarray:
        """Lower Cholesky factors of the covariances, (n, D, D)."""
        return np.linalg.cholesky(self.cov)

    def log_density(self, y: np.ndarray) -> np.ndarray:
        """Return the joint log density of the outputs (n, D) at each point, (n,)."""
        z = np.linalg.solve(self.L, (y - self.mean)[:, :, None])[:, :, 0]
        log_scales = np.sum(np.log(np.diagonal(self.L, axis1=1, axis2=2)), axis=1)
        return -0.5 * np.sum(z**2, axis=1) - log_scales - 0.5 * self.mean.shape[1] * np.log(2.0 * np.pi)

    def cdf(self, y: np.ndarray) -> np.ndarray:
        """Return P(Y_id <= y_id) of each output d by itself, (n, D)."""
        return ndtr((y - self.mean) / np.sqrt(self.var))

    def quantile_at(self, probability: float) -> np.ndarray:
        return self.mean + np.sqrt(self.var) * ndtri(probability)

    def sample(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        """Draw (n_draws, n, D) outputs, independent between points."""
        z = rng.standard_normal((n_draws, *self.mean.shape, 1))
        return self.mean + (self.L @ z)[..., 0]

    def metric_terms(self, *gradients: np.ndarray) -> dict[str, np.ndarray]:
        """Return dm^T S^-1 dm and tr(S^-1 dS S^-1 dS) / 2."""
        mean_gradient, cov_gradient = gradients
        W = whiten_both_sides(self.L[:, None], np.moveaxis(cov_gradient, 3, 1))
        mean_term = np.sum(np.linalg.solve(self.L, mean_gradient) ** 2, axis=1)
        return {"mean": mean_term, "variance": 0.5 * np.sum(W**2, axis=(2, 3))}

    def kl_terms(self, *changes: np.ndarray) -> dict[str, np.ndarray]:
        r"""Return the contributions of the means and of the covariances.

        .. math:: \tfrac12 dm^T (S + dS)^{-1} dm, \qquad \tfrac12 \sum_k E(-\lambda_k / (1 + \lambda_k))

        with E(u) = u - log(1 + u) and the eigenvalues of S^-1 dS.
        """
        mean_change, cov_change = changes
        # A small lambda would have no digits if it were computed from an eigenvalue 1 + lambda of S^-1 (S + dS).
        eigenvalues, V = np.linalg.eigh(whiten_both_sides(self.L, cov_change))
        rotated = np.swapaxes(V, 1, 2) @ np.linalg.solve(self.L, mean_change[:, :, None])
        mean_term = 0.5 * np.sum(rotated[:, :, 0] ** 2 / (1.0 + eigenvalues), axis=1)
        return {"mean": mean_term, "variance": 0.5 * np.sum(log1p_excess(-eigenvalues / (1.0 + eigenvalues)), axis=1)}


def whiten_both_sides(L: np.ndarray, symmetric: np.ndarray) -> np.ndarray:
    """Return L^-1 times a symmetric matrix times L^-T."""
    return np.linalg.solve(L, np.swapaxes(np.linalg.solve(L, symmetric), -1, -2))
