"""Several outputs at a point, jointly normal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from gpsift.likelihoods.distributions.base import Family, log1p_excess
from gpsift.likelihoods.distributions.quantiles import quantiles


@dataclass(frozen=True, eq=False)
class MultivariateNormal(Family):
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
        """Joint log density of the outputs (n, D) at each point, (n,)."""
        z = whiten(self.L, (y - self.mean)[:, :, None])[:, :, 0]
        log_scales = np.sum(np.log(np.diagonal(self.L, axis1=1, axis2=2)), axis=1)
        return -0.5 * np.sum(z**2, axis=1) - log_scales - 0.5 * self.mean.shape[1] * np.log(2.0 * np.pi)

    def cdf(self, y: np.ndarray) -> np.ndarray:
        """P(Y_id <= y_id) of each output by itself, (n, D)."""
        return ndtr((y - self.mean) / np.sqrt(self.var))

    def quantile(self, probability: float | np.ndarray) -> np.ndarray:
        """Quantiles of each output by itself: (n, D) for one probability, (n, D, k) for k of them."""
        return quantiles(lambda p: self.mean + np.sqrt(self.var) * ndtri(p), probability)

    def sample(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        """Draws (n_draws, n, D), independent between points."""
        z = rng.standard_normal((n_draws, *self.mean.shape, 1))
        return self.mean + (self.L @ z)[..., 0]

    def metric_terms(self, *gradients: np.ndarray) -> dict[str, np.ndarray]:
        mean_gradient, cov_gradient = gradients
        mean_term, cov_term = multivariate_normal_metric(self.L, mean_gradient, cov_gradient)
        return {"mean": mean_term, "variance": cov_term}

    def kl_terms(self, *changes: np.ndarray) -> dict[str, np.ndarray]:
        mean_change, cov_change = changes
        mean_term, cov_term = multivariate_normal_kl_of_change(self.L, mean_change, cov_change)
        return {"mean": mean_term, "variance": cov_term}


def multivariate_normal_metric(
    L: np.ndarray, mean_gradient: np.ndarray, cov_gradient: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The two terms of the Fisher metric of N(m, S), S = L L^T: dm^T S^-1 dm and tr(S^-1 dS S^-1 dS) / 2."""
    mean_term = np.sum(whiten(L, mean_gradient) ** 2, axis=1)
    W = whiten_both_sides(L[:, None], np.moveaxis(cov_gradient, 3, 1))
    return mean_term, 0.5 * np.sum(W**2, axis=(2, 3))


def multivariate_normal_kl_of_change(
    L: np.ndarray, mean_change: np.ndarray, cov_change: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    r"""KL(N(m, S) || N(m + dm, S + dS)), S = L L^T, as what the means and what the covariances contribute.

    .. math:: \tfrac12 dm^T (S + dS)^{-1} dm, \qquad \tfrac12 \sum_k E(-\lambda_k / (1 + \lambda_k))

    with E(u) = u - log(1 + u) and the eigenvalues of S^-1 dS.
    """
    # Eigenvalues of the change, not of S^-1 (S + dS): those are 1 + lambda, and E of what is left would have no digits.
    eigenvalues, V = np.linalg.eigh(whiten_both_sides(L, cov_change))
    rotated = np.swapaxes(V, 1, 2) @ whiten(L, mean_change[:, :, None])
    mean_term = 0.5 * np.sum(rotated[:, :, 0] ** 2 / (1.0 + eigenvalues), axis=1)
    return mean_term, 0.5 * np.sum(log1p_excess(-eigenvalues / (1.0 + eigenvalues)), axis=1)


def whiten(L: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """L^-1 times the columns."""
    return np.linalg.solve(L, columns)


def whiten_both_sides(L: np.ndarray, symmetric: np.ndarray) -> np.ndarray:
    """L^-1 times a symmetric matrix times L^-T."""
    return whiten(L, np.swapaxes(whiten(L, symmetric), -1, -2))
