"""The interface of predictive distributions, and the mixture of several of them.

Measures use the Fisher metric of a distribution (`metric_terms`), and its Kullback-Leibler divergence to the same
family with changed parameters (`kl_terms`). Users use its density, quantiles and draws.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import logsumexp

from gpsift._utils.arrays import Array, namespace

# Numbers of bisections after which a quantile has all of its digits, of a real number and of a count of any size.
BISECTIONS = 80
COUNT_BISECTIONS = 2000


class Distribution(ABC):
    """A predictive distribution at n points, with parameters for each point."""

    mean: Array
    var: Array
    VARYING: ClassVar[tuple[str, ...]]  # attributes that the model makes vary from point to point

    @property
    def parameters(self) -> tuple[Array, ...]:
        """The parameters that vary with the inputs, in the order of `gradients` and `changes`."""
        return tuple(getattr(self, name) for name in self.VARYING)

    def quantile(self, probability: Array) -> Array:
        """Return quantiles: (n,) for one probability, (n, k) for k of them; counts and classes are rounded up."""
        probability = np.asarray(probability, dtype=float)
        if not np.all((probability > 0) & (probability < 1)):
            raise ValueError(f"Probabilities must lie between 0 and 1, got {probability}.")
        values = [self.quantile_at(float(p)) for p in np.atleast_1d(probability)]
        return values[0] if probability.ndim == 0 else np.stack(values, axis=-1)

    @abstractmethod
    def quantile_at(self, probability: float) -> Array:
        """Return the quantile of one probability at each point."""

    @abstractmethod
    def cdf(self, y: Array) -> Array:
        """Return P(Y_i <= y_i)."""

    @abstractmethod
    def sample(self, n_draws: int, rng: np.random.Generator) -> Array:
        """Draw (n_draws, n) observations, independent between points."""

    @abstractmethod
    def log_density(self, y: Array) -> Array:
        """Return log p(y_i) at each point."""

    @abstractmethod
    def metric_terms(self, *gradients: Array) -> Mapping[str, Array]:
        """Return the parts of d^T I d by name; `gradients` holds the derivatives of each parameter, (n, p)."""

    @abstractmethod
    def kl_terms(self, *changes: Array) -> Mapping[str, Array]:
        """Return the parts of KL(p || q) by name.

        The parameters of q are those of p changed by `changes`, (n,) each or broadcasting to it.
        """


def log1p_excess(u: Array) -> Array:
    """Return u - log(1 + u), never negative, to full relative precision."""
    # With r = u / (2 + u), log(1 + u) = 2 (r + r^3/3 + r^5/5 + ...), so the first order cancels in the formula, not in
    # floating point: at u = 1e-7 plain subtraction keeps nine digits, at u = 1e-12 four.
    xp = namespace(u)
    small = xp.abs(u) < 0.3
    near = xp.where(small, u, xp.zeros_like(u))
    r = near / (2.0 + near)
    series = xp.zeros_like(r)
    for order in range(19, 1, -2):
        series = r * r * (series + 1.0 / order)
    return xp.where(small, r * (near - 2.0 * series), u - xp.log1p(u))


def bisect_quantile(
    cdf: Callable[[np.ndarray], np.ndarray],
    probability: float,
    low: np.ndarray,
    high: np.ndarray,
    *,
    whole: bool,
    max_steps: int = BISECTIONS,
) -> np.ndarray:
    """Find where a cdf reaches the probability, by bisection; it does so at `high`, and not at `low`."""
    for _ in range(max_steps):
        middle = 0.5 * (low + high)
        middle = np.floor(middle) if whole else middle
        # Beyond 2^53 neighbours are more than 1 apart and the middle may be one of the ends.
        if not np.any((middle > low) & (middle < high)):
            break
        short = cdf(middle) < probability
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return high


def count_quantile(cdf: Callable[[np.ndarray], np.ndarray], probability: float, start: np.ndarray) -> np.ndarray:
    """Find the smallest whole number whose cdf reaches the probability; `start` is the first guess."""
    # SciPy's ppf of the Poisson and negative binomial distributions fails from means of 1e12 on.
    low, high = np.full(start.shape, -1.0), np.ceil(start) + 1.0
    while np.any(short := cdf(high) < probability):
        low, high = np.where(short, high, low), np.where(short, 2.0 * high, high)
    return bisect_quantile(cdf, probability, low, high, whole=True, max_steps=COUNT_BISECTIONS)


@dataclass(frozen=True, eq=False)
class Pool(Distribution):
    """The equally weighted mixture of several distributions at the same n points, one for each draw of a model."""

    VARYING: ClassVar = ()

    members: Sequence[Distribution]

    @cached_property
    def mean(self) -> np.ndarray:
        return np.mean([member.mean for member in self.members], axis=0)

    @cached_property
    def var(self) -> np.ndarray:
        """Mean of the variances plus variance of the means."""
        within = np.mean([member.var for member in self.members], axis=0)
        return within + np.var([member.mean for member in self.members], axis=0)

    def log_density(self, y: np.ndarray) -> np.ndarray:
        """Return the logarithm of the mean density."""
        return logsumexp([member.log_density(y) for member in self.members], axis=0) - np.log(len(self.members))

    def cdf(self, y: np.ndarray) -> np.ndarray:
        return np.mean([member.cdf(y) for member in self.members], axis=0)

    def quantile_at(self, probability: float) -> np.ndarray:
        """Bisect between the smallest and largest quantile of the members; counts stay whole."""
        quantiles = np.array([member.quantile(probability) for member in self.members])
        low, high = quantiles.min(axis=0), quantiles.max(axis=0)
        high = np.where(self.cdf(low) >= probability, low, high)
        whole = bool(np.all(quantiles == np.floor(quantiles)))
        return bisect_quantile(self.cdf, probability, low, high, whole=whole)

    def sample(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        chosen = rng.integers(len(self.members), size=n_draws)
        return np.concatenate([self.members[k].sample(1, rng) for k in chosen])

    def metric_terms(self, *gradients: np.ndarray) -> dict[str, np.ndarray]:
        raise NotImplementedError("Scores are computed for each draw and then summarised.")

    def kl_terms(self, *changes: np.ndarray) -> dict[str, np.ndarray]:
        raise NotImplementedError("Scores are computed for each draw and then summarised.")
