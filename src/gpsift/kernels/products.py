r"""Kernels as sums of products of functions of one feature each.

A squared exponential is a product over the features, and averages of a product over independent features are products
of averages. A constant is a product of ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class ProductTerm:
    """variance prod_j exp(-((x_j - z_j) / lengthscale_j)^2 / 2); features without a part have infinite length-scales.

    Parameters
    ----------
    variance : float
    lengthscale : array (p,)
    """

    variance: float
    lengthscale: np.ndarray

    def varies_with(self, columns: Sequence[int]) -> bool:
        """Whether it depends on any of these features."""
        return bool(np.isfinite(self.lengthscale[list(columns)]).any())

    def squared_distance(self, columns: Sequence[int], X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Over some features, in length-scales: X (n, k) and Z (m, k) hold these columns only; an (n, m) array."""
        total = np.zeros((len(X), len(Z)))
        for x, z, lengthscale in zip(X.T, Z.T, self.lengthscale[list(columns)], strict=True):
            if np.isfinite(lengthscale):
                total += ((x[:, None] - z) / lengthscale) ** 2
        return total

    def excess(self, columns: Sequence[int], X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """The factors of some features together, less 1: for long length-scales that is what digits are needed of."""
        distance = self.squared_distance(columns, X, Z)
        distance *= -0.5
        return np.expm1(distance, out=distance)
