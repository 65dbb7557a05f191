"""Standardising inputs and target, and taking results back to the user's units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np


@dataclass(frozen=True, eq=False)
class Scaling:
    """x -> (x - x_center) / x_scale and y -> (y - y_center) / y_scale."""

    x_center: np.ndarray
    x_scale: np.ndarray
    y_center: float
    y_scale: float

    @classmethod
    def standardising(cls, X: np.ndarray, y: np.ndarray) -> Self:
        """Means 0 and standard deviations 1; constant columns are only centred."""
        x_scale = X.std(axis=0)
        return cls(X.mean(axis=0), np.where(constant_columns(X), 1.0, x_scale), float(y.mean()), float(y.std()))

    @classmethod
    def none(cls, n_features: int) -> Self:
        """Leave everything as it is."""
        return cls(np.zeros(n_features), np.ones(n_features), 0.0, 1.0)

    def inputs(self, X: np.ndarray) -> np.ndarray:
        return (X - self.x_center) / self.x_scale

    def target(self, y: np.ndarray) -> np.ndarray:
        return (y - self.y_center) / self.y_scale


def constant_columns(X: np.ndarray) -> np.ndarray:
    """Which columns hold one value only, up to rounding."""
    return np.ptp(X, axis=0) <= 4.0 * np.finfo(float).eps * np.max(np.abs(X), axis=0)
