"""Means and intervals over random splits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Interval:
    """A mean with a central interval."""

    mean: float
    low: float
    high: float

    @property
    def above_zero(self) -> bool:
        return self.low > 0

    @property
    def below_zero(self) -> bool:
        return self.high < 0


def plain_interval(values: np.ndarray, level: float = 0.95) -> Interval:
    """Student-t interval of a mean of independent values, as the paper draws it."""
    return _interval(values, 1.0 / values.size, level)


def corrected_interval(values: np.ndarray, n_train: int, n_test: int, level: float = 0.95) -> Interval:
    """The same for random splits, whose training sets overlap (Nadeau and Bengio 2003).

    The variance of the mean is (1 / splits + n_test / n_train) times that of the values.
    """
    return _interval(values, 1.0 / values.size + n_test / n_train, level)


def _interval(values: np.ndarray, factor: float, level: float) -> Interval:
    mean = float(np.mean(values))
    if values.size < 2:
        return Interval(mean, -np.inf, np.inf)
    half = float(stats.t.ppf(0.5 + level / 2, values.size - 1) * np.sqrt(factor * np.var(values, ddof=1)))
    return Interval(mean, mean - half, mean + half)


def relative_entropy(orders: np.ndarray) -> np.ndarray:
    """Entropy over splits of which feature stands at each position, divided by log p, (p,)."""
    n, p = orders.shape
    shares = np.array([np.bincount(orders[:, place], minlength=p) for place in range(p)]) / n
    return np.maximum(-(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=1) / np.log(p), 0.0)
