r"""Gamma and Student-t distributions.

No closed form exists for the KL between Student-t distributions. With z the standardised observation,
x = z^2 / (nu + z^2) has a Beta(1/2, nu/2) distribution. The contribution of the scale and, averaged over z and -z, that
of the mean are smooth functions of x: Gauss-Jacobi quadrature is exact to rounding, except for very large changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import betaln, gammainc, gammaincinv, gammaln, stdtr, stdtrit, xlogy

from gpsift._utils.quadrature import gauss_beta
from gpsift.likelihoods.distributions.base import Distribution, log1p_excess
from gpsift.likelihoods.distributions.counts import to_column

# Compared with 40 digits for nu from 0.5 to 1e6: the KL of changes of 1e-9 is right to 2e-12, of a mean that moves by 5
# scales or a scale that changes tenfold to 6e-9, of a mean that moves by 20 scales to 4e-6 for nu >= 2.5 and to 0.3 %
# for nu = 0.5.
N_NODES = 100
# Above this relative change of a scale, -E log(q / p) is accurate, and safer than E (q / p - 1 - log(q / p)).
LARGE_CHANGE = 0.1
# Above this change of a gamma's mean m, relative to the new mean m', log(m / m') is computed directly.
NEAR_CHANGE = 0.5


@dataclass(frozen=True, eq=False)
class Gamma(Distribution):
    """Positive values with the given means m, (n,), and variances m^2 / shape, (n,) or a number."""

    VARYING: ClassVar = ("mean",)

    mean: np.ndarray
    shape: np.ndarray

    @property
    def var(self) -> np.ndarray:
        return self.mean**2 / self.shape

    def log_density(self, y: np.ndarray) -> np.ndarray:
        possible = y > 0
        y = np.where(possible, y, 1.0)
        k, scaled = self.shape, self.shape * (y / self.mean)
        return np.where(possible, xlogy(k, scaled) - scaled - np.log(y) - gammaln(k), -np.inf)

    def cdf(self, y: np.ndarray) -> np.ndarray:
        return gammainc(self.shape, self.shape * (np.maximum(y, 0.0) / self.mean))

    def quantile_at(self, probability: float) -> np.ndarray:
        return gammaincinv(self.shape, probability) * (self.mean / self.shape)

    def sample(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        return rng.gamma(self.shape, self.mean / self.shape, size=(n_draws, self.mean.size))

    def metric_terms(self, *gradients: np.ndarray) -> dict[str, np.ndarray]:
        (gradient,) = gradients
        return {"prediction": to_column(self.shape) * (gradient / to_column(self.mean)) ** 2}

    def kl_terms(self, *changes: np.ndarray) -> dict[str, np.ndarray]:
        """Return shape (u - log(1 + u)) with 1 + u = m / m'."""
        (change,) = changes
        moved = self.mean + change
        u = np.asarray(-change / moved)
        # Where the mean has grown a lot, u is nearly -1 and 1 + u has lost the digits of m.
        kl = self.shape * np.where(np.abs(u) < NEAR_CHANGE, log1p_excess(u), u - np.log(self.mean / moved))
        return {"prediction": kl}


@dataclass(frozen=True, eq=False)
class StudentT(Distribution):
    """Student's t around `mean`, stretched by `scale`, (n,) each, with df degrees of freedom, (n,) or a number.

    The variance is scale^2 df / (df - 2), and infinite up to df = 2; `mean` is the median up to df = 1.
    """

    VARYING: ClassVar = ("mean", "scale")

    mean: np.ndarray
    scale: np.ndarray
    df: np.ndarray

    @property
    def var(self) -> np.ndarray:
        heavy = np.asarray(self.df) <= 2.0
        return np.where(heavy, np.inf, self.scale**2 * self.df / np.where(heavy, 1.0, np.asarray(self.df) - 2.0))

    def log_density(self, y: np.ndarray) -> np.ndarray:
        z = (y - self.mean) / self.scale
        log_constant = -betaln(0.5, 0.5 * self.df) - 0.5 * np.log(self.df) - np.log(self.scale)
        return log_constant - 0.5 * (self.df + 1.0) * np.log1p(z**2 / self.df)

    def cdf(self, y: np.ndarray) -> np.ndarray:
        return stdtr(self.df, (y - self.mean) / self.scale)

    def quantile_at(self, probability: float) -> np.ndarray:
        return self.mean + self.scale * stdtrit(self.df, probability)

    def sample(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        return self.mean + self.scale * rng.standard_t(self.df, size=(n_draws, self.mean.size))

    def metric_terms(self, *gradients: np.ndarray) -> dict[str, np.ndarray]:
        """Return (nu + 1) / (nu + 3) (dm)^2 / s^2 and 2 nu / (nu + 3) (ds)^2 / s^2."""
        df, scale = to_column(self.df), to_column(self.scale)
        by_mean, by_scale = ((gradient / scale) ** 2 for gradient in gradients)
        return {"mean": (df + 1.0) / (df + 3.0) * by_mean, "variance": 2.0 * df / (df + 3.0) * by_scale}

    def kl_terms(self, *changes: np.ndarray) -> dict[str, np.ndarray]:
        r"""Return the KL of the change of scale alone, and the additional KL of the change of the mean.

        With c = s'/s and a = (m' - m) / s:

        .. math::
            \log c + \tfrac{\nu + 1}{2} E \log(1 + x (c^{-2} - 1)), \qquad
            \tfrac{\nu + 1}{4} E \log\left(1 + \frac{a^2 (1-x) [2 \nu (c^2 (1-x) - x) + a^2 (1-x)]}
            {\nu^2 (c^2 (1-x) + x)^2}\right)
        """
        mean_change, scale_change = changes
        x, weights = beta_nodes(self.df)
        nu = np.asarray(self.df, dtype=float)[..., None]
        step = np.asarray(scale_change / self.scale)[..., None]
        c = 1.0 + step

        # -log(q / p) of a change of scale is of first order, and its expectation of second order. For small changes
        # q / p - 1, whose expectation is 0, is therefore added: without it no digit is left at a change of 1e-9.
        log_ratio = -np.log1p(step) - 0.5 * (nu + 1.0) * np.log1p(-x * step * (1.0 + c) / c**2)
        small = np.abs(step) < LARGE_CHANGE
        excess = np.where(small, log1p_excess(np.expm1(np.where(small, log_ratio, 0.0))), -log_ratio)
        scale_term = np.sum(weights * excess, axis=-1)

        squared = np.asarray(mean_change / self.scale)[..., None] ** 2
        near, far = c**2 * (1.0 - x), x
        u = squared * (1.0 - x) * (2.0 * nu * (near - far) + squared * (1.0 - x)) / (nu * (near + far)) ** 2
        mean_term = 0.25 * np.sum((nu + 1.0) * weights * np.log1p(u), axis=-1)
        return {"mean": np.maximum(mean_term, 0.0), "variance": np.maximum(scale_term, 0.0)}


def beta_nodes(df: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of expectations over Beta(1/2, df/2), along a new last axis."""
    values, index = np.unique(np.asarray(df, dtype=float), return_inverse=True)
    rules = [gauss_beta(N_NODES, 0.5, 0.5 * df) for df in values]
    x, weights = (np.stack(rows) for rows in zip(*rules, strict=True))
    index = index.reshape(np.shape(df))
    return x[index], weights[index]
