"""Standardisation of inputs and target, and its inverse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from gpsift._utils.validation import constant_columns


@dataclass(frozen=True, eq=False)
class Scaling:
    """x -> (x - x_center) / x_scale and y -> (y - y_center) / y_scale.

    A column that is constant in the training data has an infinite unit: it is 0 everywhere, and no derivative sees it.
    """

    x_center: np.ndarray
    x_scale: np.ndarray
    y_center: float
    y_scale: float

    @classmethod
    def standardising(cls, X: np.ndarray, y: np.ndarray | None) -> Self:
        """Means 0 and standard deviations 1; a target of None is left as it is."""
        x_scale = np.where(constant_columns(X), np.inf, X.std(axis=0))
        y_center, y_scale = (0.0, 1.0) if y is None else (float(y.mean()), float(y.std()))
        return cls(X.mean(axis=0), x_scale, y_center, y_scale)

    @classmethod
    def none(cls, X: np.ndarray) -> Self:
        """Leave everything as it is, but for constant columns."""
        return cls(np.zeros(X.shape[1]), np.where(constant_columns(X), np.inf, 1.0), 0.0, 1.0)

    def on_columns(self, columns: Sequence[int]) -> Scaling:
        """The same for some of the columns."""
        chosen = list(columns)
        return Scaling(self.x_center[chosen], self.x_scale[chosen], self.y_center, self.y_scale)

    def inputs(self, X: np.ndarray) -> np.ndarray:
        return (X - self.x_center) / self.x_scale

    def target(self, y: np.ndarray) -> np.ndarray:
        return (y - self.y_center) / self.y_scale
