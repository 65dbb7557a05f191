"""Several classes without an order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpsift._utils.arrays import Array
from gpsift.likelihoods.distributions.base import Family
from gpsift.likelihoods.distributions.counts import share_excess, share_metric
from gpsift.likelihoods.distributions.quantiles import quantiles


class SeveralClasses(Family):
    """What follows from the probabilities of the classes 0, ..., C - 1, (n, C), which add up to 1 in each row.

    `mean` and `var` are those of the indicator of each class, (n, C).
    """

    probabilities: Array

    @property
    def log_probabilities(self) -> np.ndarray:
        """Their logarithms, (n, C)."""
        with np.errstate(divide="ignore"):
            return np.log(self.probabilities)

    @property
    def mean(self) -> np.ndarray:
        return self.probabilities

    @property
    def var(self) -> np.ndarray:
        return self.probabilities * (1.0 - self.probabilities)

    def log_density(self, y: np.ndarray) -> np.ndarray:
        """log P(class y_i)."""
        n, n_classes = self.probabilities.shape
        label = np.asarray(y).astype(int)
        possible = (label == y) & (label >= 0) & (label < n_classes)
        log_density = self.log_probabilities[np.arange(n), np.where(possible, label, 0)]
        return np.where(possible, log_density, -np.inf)

    def cdf(self, y: np.ndarray) -> np.ndarray:
        """P(class <= y_i), in the order of the columns."""
        n, n_classes = self.probabilities.shape
        label = np.clip(np.floor(y), -1, n_classes - 1).astype(int)
        return np.where(label < 0, 0.0, self._cumulative[np.arange(n), label])

    def quantile(self, probability: float | np.ndarray) -> np.ndarray:
        """The first class, in the order of the columns, at which the cdf reaches the probability."""
        return quantiles(lambda p: np.argmax(self._cumulative >= p, axis=1).astype(float), probability)

    def sample(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        """Classes (n_draws, n), independent between points."""
        uniform = rng.uniform(size=(n_draws, len(self.probabilities), 1))
        return np.argmax(self._cumulative > uniform, axis=2).astype(float)

    @property
    def _cumulative(self) -> np.ndarray:
        cumulative = np.cumsum(self.probabilities, axis=1)
        # Rounding must not leave the classes short of 1; those after the last possible class stay impossible.
        return np.where(cumulative >= cumulative[:, -1:], 1.0, cumulative)


@dataclass(frozen=True, eq=False)
class Categorical(SeveralClasses):
    """One of the classes 0, ..., C - 1, by their probabilities (n, C), which add up to 1 in each row.

    Gradients are (n, C, p) and changes (n, C); they add up to zero over the classes, which is not checked.
    """

    VARYING: ClassVar = ("probabilities",)

    probabilities: np.ndarray

    def metric_terms(self, *gradients: np.ndarray) -> dict[str, np.ndarray]:
        (gradient,) = gradients
        return {"prediction": np.sum(share_metric(self.probabilities[:, :, None], gradient), axis=1)}

    def kl_terms(self, *changes: np.ndarray) -> dict[str, np.ndarray]:
        (change,) = changes
        # sum pi log(pi / pi') = sum pi E(d / pi), because the changes d add up to zero.
        return {"prediction": np.sum(share_excess(self.probabilities, change), axis=1)}
