r"""Estimate the normal conditional distribution of each feature given all others (the paper's equation 3).

All p conditionals come from one inverse P of the covariance of the inputs:

.. math:: s_j^2 = 1 / P_{jj}, \qquad m_{ij} = x_{ij} - [(x_i - \mu) P]_j / P_{jj} ,

and similarly for a group, S_G = (P_GG)^-1 and m_iG = x_iG - [(x_i - mu) P]_G S_G.

The covariance is estimated as standard deviations times a correlation matrix. Only the latter is regularised, so the
scales of the columns do not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from gpsift.reference.inputs import InputMoments, standard_units

Covariance = Literal["auto", "sample", "ledoit-wolf", "oas", "ridge"]
COVARIANCES: tuple[str, ...] = get_args(Covariance)

# "auto" shrinks a correlation matrix with a larger condition number: conditional standard deviations of about a
# thousandth of the marginal ones are mostly sampling error.
CONDITION_LIMIT = 1e6
# From this condition number on the inverse of the sample covariance is too inaccurate.
SINGULAR = 1e12
# The bound to which the authors' code regularises; kept for reproducing the paper.
RIDGE_CONDITION = 100.0


@dataclass(frozen=True, eq=False)
class Conditionals:
    """The normal conditionals of each feature: `sd` (p,) is constant, `mean` depends on the other features."""

    center: np.ndarray
    scale: np.ndarray
    precision: np.ndarray  # inverse of the correlation matrix; rows and columns of constant features are those of I
    details: Mapping[str, Any]

    @property
    def sd(self) -> np.ndarray:
        return self.scale / np.sqrt(np.diag(self.precision))

    def mean(self, X: np.ndarray) -> np.ndarray:
        """Return the mean m_ij of each feature given the others, for the rows of X, (n, p)."""
        standard = standard_units(X, self.center, self.scale)
        return X - self.scale * (standard @ self.precision) / np.diag(self.precision)

    def mean_of_group(self, X: np.ndarray, group: Sequence[int]) -> np.ndarray:
        """Return the mean of several features given the others, (n, k)."""
        columns = list(group)
        axes, precisions = self._axes(columns)
        standard = standard_units(X, self.center, self.scale)
        inverse = (axes / precisions) @ axes.T
        return X[:, columns] - self.scale[columns] * (standard @ self.precision[:, columns] @ inverse)

    def root(self, group: Sequence[int]) -> np.ndarray:
        """Return a root (k, k) of the covariance of several features given the others, S_G = (P_GG)^-1."""
        columns = list(group)
        axes, precisions = self._axes(columns)
        return self.scale[columns][:, None] * axes / np.sqrt(precisions)

    def _axes(self, columns: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return the eigenvectors and eigenvalues of P_GG."""
        precisions, axes = np.linalg.eigh(self.precision[np.ix_(columns, columns)])
        return axes, precisions


def fit_conditionals(moments: InputMoments, covariance: Covariance) -> Conditionals:
    """Estimate the conditionals from the moments of the inputs."""
    n, active = moments.n, moments.sd > 0
    if n < 2:
        raise ValueError("The distribution of the inputs cannot be estimated from one row; VAR needs at least two.")
    correlation, details = estimate_correlation(moments, covariance)
    precision = np.eye(active.size)
    precision[np.ix_(active, active)] = np.linalg.inv(correlation)
    return Conditionals(moments.center, moments.sd * np.sqrt(n / (n - 1)), precision, details)


def estimate_correlation(moments: InputMoments, covariance: Covariance) -> tuple[np.ndarray, dict[str, Any]]:
    """Return an invertible correlation matrix of the features that vary, and details of its estimation."""
    active = moments.sd > 0
    sample, n, p = moments.correlation[np.ix_(active, active)], moments.n, int(active.sum())
    np.fill_diagonal(sample, 1.0)
    eigenvalues = np.linalg.eigvalsh(sample)
    condition = float(eigenvalues[-1] / eigenvalues[0]) if eigenvalues[0] > 0 else np.inf
    method = covariance
    if covariance == "auto":
        method = "sample" if condition < CONDITION_LIMIT and n > p else "ledoit-wolf"
    shrinkage, ridge = 0.0, 0.0
    if method == "sample":
        if not condition < SINGULAR:
            raise ValueError(
                f"The sample covariance of the {p} inputs is singular (condition number {condition:.1e}, {n} rows). "
                'Use `covariance="auto"`, or "ledoit-wolf", "oas" or "ridge".'
            )
        matrix = sample
    elif method in ("ledoit-wolf", "oas"):
        intensity = ledoit_wolf(sample, moments.quartic, n) if method == "ledoit-wolf" else oas(sample, n)
        # With two rows, or equal columns, the estimate can be 0 although the matrix is singular.
        shrinkage = float(np.clip(intensity, 1e-8, 1.0))
        matrix = (1.0 - shrinkage) * sample + shrinkage * np.eye(p)
    else:
        ridge = max(0.0, (eigenvalues[-1] - RIDGE_CONDITION * eigenvalues[0]) / (RIDGE_CONDITION - 1.0))
        matrix = sample + ridge * np.eye(p)
    details = {"covariance": method, "condition_number": condition, "shrinkage": shrinkage, "ridge": float(ridge)}
    return matrix, details


def ledoit_wolf(correlation: np.ndarray, quartic: float, n: int) -> float:
    """Return the shrinkage intensity, the noise of the matrix over its distance from I (Ledoit and Wolf 2004)."""
    distance = np.sum(correlation**2) - len(correlation)
    noise = (quartic - np.sum(correlation**2)) / n
    return float(min(noise / distance, 1.0)) if distance > 0 and len(correlation) > 1 else 0.0


def oas(correlation: np.ndarray, n: int) -> float:
    """Return the shrinkage intensity for normal rows (Chen, Wiesel, Eldar and Hero 2010, equation 23)."""
    p, square = len(correlation), np.mean(correlation**2)
    if p == 1:
        return 0.0
    distance = (n + 1.0) * (square - 1.0 / p)
    return float(min((square + 1.0) / distance, 1.0)) if distance > 0 else 1.0
