"""Quantiles for one probability or for several, and those of counts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def quantiles(inverse_cdf: Callable[[float], np.ndarray], probability: float | np.ndarray) -> np.ndarray:
    """`inverse_cdf` of one probability, or of k of them along a new last axis."""
    probability = np.asarray(probability, dtype=float)
    if not np.all((probability > 0) & (probability < 1)):
        raise ValueError(f"Probabilities must lie between 0 and 1, got {probability}.")
    values = [inverse_cdf(float(p)) for p in np.atleast_1d(probability)]
    return values[0] if probability.ndim == 0 else np.stack(values, axis=-1)


def count_quantile(cdf: Callable[[np.ndarray], np.ndarray], probability: float, start: np.ndarray) -> np.ndarray:
    """The smallest whole number whose cdf reaches the probability; `start` is where the search from above begins."""
    low, high = np.full(start.shape, -1.0), np.ceil(start) + 1.0
    while np.any(short := cdf(high) < probability):
        low, high = np.where(short, high, low), np.where(short, 2.0 * high, high)
    while True:
        middle = np.floor(0.5 * (low + high))
        # Beyond 2^53 neighbours are more than 1 apart and the middle may be one of the ends.
        if not np.any((middle > low) & (middle < high)):
            return high
        short = cdf(middle) < probability
        low, high = np.where(short, middle, low), np.where(short, high, middle)
