r"""Distributions of counts: binomial, Poisson and negative binomial.

Each KL is a sum of terms a E(d / a) with E(u) = u - log(1 + u), a the probability or rate of one outcome and d its
change: the linear terms in d cancel in the formula, and no term is negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import betainc, betaincc, betaln, gammaincc, gammaln, xlog1py, xlogy

from gpsift.likelihoods.distributions.base import Distribution, bisect_quantile, count_quantile, log1p_excess

# This replaces a probability or rate of 0, so that a saturated prediction that does not move scores 0.
SMALLEST_SHARE = 1e-300


def share_excess(share: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Return share * E(change / share): `change` where the share is zero, infinite where it becomes zero."""
    share = np.maximum(np.asarray(share, dtype=float), SMALLEST_SHARE)
    with np.errstate(divide="ignore", over="ignore"):
        u = np.asarray(change / share)
        return np.where(u > 1e300, change, share * log1p_excess(np.minimum(u, 1e300)))


def share_metric(share: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Return gradient^2 / share."""
    # The division comes first: the square of a derivative of about 1e-300 would underflow.
    with np.errstate(over="ignore"):
        return gradient / np.maximum(np.asarray(share, dtype=float), SMALLEST_SHARE) * gradient


@dataclass(frozen=True, eq=False)
class Binomial(Distribution):
    """Successes out of `trials`, (n,) or a number, each with the given probability, (n,)."""

    VARYING: ClassVar = ("probability",)

    trials: np.ndarray
    probability: np.ndarray
    failure: np.ndarray | None = None  # 1 - probability, to more digits than the subtraction has

    @property
    def complement(self) -> np.ndarray:
        """P(a trial fails), (n,)."""
        return 1.0 - self.probability if self.failure is None else self.failure

    @property
    def mean(self) -> np.ndarray:
        return self.trials * self.probability

    @property
    def var(self) -> np.ndarray:
        return self.trials * self.probability * self.complement

    def log_density(self, y: np.ndarray) -> np.ndarray:
        possible = is_count(y) & (y <= self.trials)
        y = np.where(possible, y, 0.0)
        log_ways = -betaln(1.0 + self.trials - y, 1.0 + y) - np.log1p(self.trials)
        p, q = self.probability, self.complement
        return np.where(possible, log_ways + log_power(p, q, y) + log_power(q, p, self.trials - y), -np.inf)

    def cdf(self, y: np.ndarray) -> np.ndarray:
        y = np.clip(np.floor(y), -1.0, self.trials)
        a, b = np.maximum(self.trials - y, 1e-300), np.maximum(y + 1.0, 1e-300)
        inside = incomplete_beta(a, b, self.complement, self.probability)
        return np.where(y >= self.trials, 1.0, np.where(y < 0.0, 0.0, inside))

    def quantile_at(self, probability: float) -> np.ndarray:
        start = np.full(self.probability.shape, -1.0)
        return bisect_quantile(self.cdf, probability, start, start + 1.0 + self.trials, whole=True)

    def sample(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        trials = np.asarray(self.trials).astype(int)
        return rng.binomial(trials, self.probability, size=(n_draws, self.probability.size)).astype(float)

    def metric_terms(self, *gradients: np.ndarray) -> dict[str, np.ndarray]:
        """Return N (dp)^2 / (p q), q = 1 - p, as N (dp)^2 (1 / p + 1 / q)."""
        (gradient,) = gradients
        p, q, trials = to_column(self.probability), to_column(self.complement), to_column(self.trials)
        return {"prediction": trials * (share_metric(p, gradient) + share_metric(q, gradient))}

    def kl_terms(self, *changes: np.ndarray) -> dict[str, np.ndarray]:
        """Return N [p E(d / p) + q E(-d / q)]."""
        (change,) = changes
        excess = share_excess(self.probability, change) + share_excess(self.complement, -change)
        return {"prediction": self.trials * excess}


@dataclass(frozen=True, eq=False)
class Poisson(Distribution):
    """Counts with the given means, (n,)."""

    VARYING: ClassVar = ("mean",)

    mean: np.ndarray

    @property
    def var(self) -> np.ndarray:
        return self.mean

    def log_density(self, y: np.ndarray) -> np.ndarray:
        possible = is_count(y)
        y = np.where(possible, y, 0.0)
        return np.where(possible, xlogy(y, self.mean) - self.mean - gammaln(y + 1.0), -np.inf)

    def cdf(self, y: np.ndarray) -> np.ndarray:
        y = np.floor(y)
        return np.where(y < 0, 0.0, gammaincc(np.maximum(y, 0.0) + 1.0, self.mean))

    def quantile_at(self, probability: float) -> np.ndarray:
        return count_quantile(self.cdf, probability, self.mean)

    def sample(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        return rng.poisson(self.mean, size=(n_draws, self.mean.size)).astype(float)

    def metric_terms(self, *gradients: np.ndarray) -> dict[str, np.ndarray]:
        (gradient,) = gradients
        return {"prediction": share_metric(to_column(self.mean), gradient)}

    def kl_terms(self, *changes: np.ndarray) -> dict[str, np.ndarray]:
        (change,) = changes
        # m log(m / m') + m' - m.
        return {"prediction": share_excess(self.mean, change)}


@dataclass(frozen=True, eq=False)
class NegativeBinomial(Distribution):
    """Counts with the given means m, (n,), and variances m + m^2 / concentration, (n,) or a number."""

    VARYING: ClassVar = ("mean",)

    mean: np.ndarray
    concentration: np.ndarray

    @property
    def var(self) -> np.ndarray:
        return self.mean + self.mean**2 / self.concentration

    def log_density(self, y: np.ndarray) -> np.ndarray:
        possible = is_count(y)
        y = np.where(possible, y, 0.0)
        m, r = self.mean, self.concentration
        # Gamma(y + r) / (Gamma(r) y!) by the beta function: the difference of log-gammas of a large r has few digits.
        log_ways = -betaln(r, y + 1.0) - np.log(r + y)
        return np.where(possible, log_ways - r * np.log1p(m / r) + xlogy(y, m / (m + r)), -np.inf)

    def cdf(self, y: np.ndarray) -> np.ndarray:
        y = np.floor(y)
        m, r = self.mean, self.concentration
        return np.where(y < 0, 0.0, incomplete_beta(r, np.maximum(y, 0.0) + 1.0, r / (m + r), m / (m + r)))

    def quantile_at(self, probability: float) -> np.ndarray:
        return count_quantile(self.cdf, probability, self.mean)

    def sample(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        r = self.concentration  # the count is Poisson with a gamma rate
        return rng.poisson(rng.gamma(r, self.mean / r, size=(n_draws, self.mean.size))).astype(float)

    def metric_terms(self, *gradients: np.ndarray) -> dict[str, np.ndarray]:
        (gradient,) = gradients
        m, r = to_column(self.mean), to_column(self.concentration)
        return {"prediction": r / (m + r) * share_metric(m, gradient)}

    def kl_terms(self, *changes: np.ndarray) -> dict[str, np.ndarray]:
        (change,) = changes
        # The KL is m + r times that of Bernoulli distributions with probabilities m / (m + r). The shorter form
        # m E(d / m) - (m + r) E(d / (m + r)) loses the digits of m / r when r is small.
        m, r = self.mean, self.concentration
        moved = m + r + change
        kl = share_excess(m, change * (r / moved)) + r * log1p_excess(np.asarray(-change / moved))
        return {"prediction": kl}


def log_power(share: np.ndarray, rest: np.ndarray, power: np.ndarray) -> np.ndarray:
    """Return log(share^power), rest = 1 - share, from the smaller of the two; 0 for a power of 0."""
    return np.where(share < rest, xlogy(power, share), xlog1py(power, -rest))


def incomplete_beta(a: np.ndarray, b: np.ndarray, x: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Return the regularised I_x(a, b), rest = 1 - x, from the smaller of the two, which has more digits."""
    # From x alone, a cdf with a = 1e12 and x = 1 - 3e-13 is wrong by 2e-5.
    is_small = np.broadcast_to(x < rest, np.broadcast_shapes(np.shape(a), np.shape(b), np.shape(x)))
    found = np.empty(is_small.shape)
    betainc(a, b, x, out=found, where=is_small)
    betaincc(b, a, rest, out=found, where=~is_small)
    return found


def is_count(y: np.ndarray) -> np.ndarray:
    """Mark the values that are whole and not negative."""
    return (y >= 0) & (np.floor(y) == y)


def to_column(parameter: np.ndarray) -> np.ndarray:
    """Reshape a parameter for products with gradients (n, p): to (n, 1), or (1, 1) for a number."""
    return np.reshape(parameter, (-1, 1))
