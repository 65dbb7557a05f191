"""An equally weighted mixture of predictive distributions: one for each draw of the hyperparameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import logsumexp

from gpsift.likelihoods.distributions.base import Family

BISECTIONS = 60


@dataclass(frozen=True, eq=False)
class Pool(Family):
    """The average of several distributions at the same n points."""

    VARYING: ClassVar = ()

    members: Sequence[Family]

    @cached_property
    def mean(self) -> np.ndarray:
        return np.mean([member.mean for member in self.members], axis=0)

    @cached_property
    def var(self) -> np.ndarray:
        """Mean of the variances plus variance of the means."""
        within = np.mean([member.var for member in self.members], axis=0)
        return within + np.var([member.mean for member in self.members], axis=0)

    def log_density(self, y: np.ndarray) -> np.ndarray:
        """Logarithm of the mean density."""
        return logsumexp([member.log_density(y) for member in self.members], axis=0) - np.log(len(self.members))

    def cdf(self, y: np.ndarray) -> np.ndarray:
        return np.mean([member.cdf(y) for member in self.members], axis=0)

    def quantile(self, probability: float | np.ndarray) -> np.ndarray:
        probability = np.asarray(probability, dtype=float)
        columns = [self._one_quantile(float(p)) for p in np.atleast_1d(probability)]
        return columns[0] if probability.ndim == 0 else np.stack(columns, axis=1)

    def _one_quantile(self, probability: float) -> np.ndarray:
        """Bisection between the smallest and largest quantile of the members; counts stay whole."""
        quantiles = np.array([member.quantile(probability) for member in self.members])
        low, high = quantiles.min(axis=0), quantiles.max(axis=0)
        whole = bool(np.all(quantiles == np.floor(quantiles)))
        high = np.where(self.cdf(low) >= probability, low, high)
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            middle = np.floor(middle) if whole else middle
            below = self.cdf(middle) < probability
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return high

    def sample(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        chosen = rng.integers(len(self.members), size=n_draws)
        return np.concatenate([self.members[k].sample(1, rng) for k in chosen])

    def metric_terms(self, *gradients: np.ndarray) -> dict[str, np.ndarray]:
        raise NotImplementedError("Scores are computed for each draw and then summarised.")

    def kl_terms(self, *changes: np.ndarray) -> dict[str, np.ndarray]:
        raise NotImplementedError("Scores are computed for each draw and then summarised.")
