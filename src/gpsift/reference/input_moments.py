"""The training inputs as a cloud of points: the moments that the units of scores and the conditionals of VAR come from.

All of them are sums over rows, so that the rows themselves need not be in this process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from gpsift._utils.validation import column_sd


@dataclass(frozen=True, eq=False)
class InputMoments:
    """Moments of n rows of p features, with z the rows in standard units; a constant feature is 0 there.

    Attributes
    ----------
    n : int
    center, sd : array (p,)
        Mean and standard deviation of each feature, 0 for one that never varies.
    correlation : array (p, p)
        The mean of z_j z_k.
    quartic : float
        The mean of |z|^4, from which the noise of the correlations can be estimated.
    """

    n: int
    center: np.ndarray
    sd: np.ndarray
    correlation: np.ndarray
    quartic: float

    @classmethod
    def of(cls, X: np.ndarray) -> Self:
        """Those of the rows of X."""
        center, sd = X.mean(axis=0), column_sd(X)
        Z = standard_units(X, center, sd)
        return cls(len(X), center, sd, Z.T @ Z / len(X), float(np.mean(np.sum(Z**2, axis=1) ** 2)))


def standard_units(X: np.ndarray, center: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """(X - center) / sd, and 0 where a feature never varies."""
    return np.where(sd > 0, (X - center) / np.where(sd > 0, sd, 1.0), 0.0)
