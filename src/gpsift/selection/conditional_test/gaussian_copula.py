r"""The Gaussian copula: regressions of the normal scores of a column on those of others.

`ScoreRegression` regresses on all other columns, or on the most correlated ones where rows are few. It is right where
the normal scores of the columns are jointly normal.

`StepwiseRegression` adds columns one by one, each time the one with the largest correlation rho to the residual. Over n
rows it raises the log evidence by about

.. math:: -\tfrac n2 \log (1 - \rho^2) - \tfrac12 \log n

(Schwarz 1978), and columns are added as long as this exceeds a penalty. If some nonlinear function of a column, or a
product of two, is correlated with the final residual more than noise would be, the regression misses something.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

from gpsift._utils.validation import column_sd
from gpsift.gp.hyperparameters.score_tests import normal_scores
from gpsift.reference.inputs import InputMoments, standard_units
from gpsift.relevance.conditionals import Conditionals, fit_conditionals

# With fewer rows for each column a score is regressed on the most correlated columns only: a tenth of the rows, at
# least three.
ROWS_FOR_ALL_COLUMNS = 4
ROWS_FOR_A_NEIGHBOUR = 10
LEAST_NEIGHBOURS = 3
RIDGE = 1e-3
# Functions of a column are cosines of its ranks, of up to this many half waves.
HALF_WAVES = 6
# The probability that noise is taken for a function of one column, and for a product of two.
CHANCE = 0.1
# The residual of a column that others decide, as a share of its squares.
NOTHING_LEFT = 1e-9


@dataclass(frozen=True, eq=False)
class ScoreRegression:
    """Normal scores (n, p) of the columns of a table, and their regressions on each other."""

    X: np.ndarray

    @cached_property
    def scores(self) -> np.ndarray:
        return normal_scores(self.X)

    @property
    def has_rows_for_all(self) -> bool:
        """Whether there are enough rows to regress on all other columns."""
        n, p = self.X.shape
        return n >= ROWS_FOR_ALL_COLUMNS * p

    @cached_property
    def _conditionals(self) -> Conditionals:
        return fit_conditionals(InputMoments.of(self.scores), "auto")

    def given_others(self, columns: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Means (n, k) of the scores of k columns given all other columns, and a root (k, k) of their covariance."""
        own, (n, p) = list(columns), self.X.shape
        if self.has_rows_for_all:
            return self._conditionals.mean_of_group(self.scores, own), self._conditionals.root(own)
        n_neighbours = min(p - len(own), max(LEAST_NEIGHBOURS, n // ROWS_FOR_A_NEIGHBOUR))
        return regress_on_correlated(self.scores, own, n_neighbours)


def regress_on_correlated(scores: np.ndarray, own: Sequence[int], n_neighbours: int) -> tuple[np.ndarray, np.ndarray]:
    """Regress some columns on the others that are most correlated with them: means (n, k), root (k, k)."""
    n = len(scores)
    center, scale = scores.mean(axis=0), column_sd(scores)
    Z = standard_units(scores, center, scale)
    correlation = np.max(np.abs(Z.T @ Z[:, own]), axis=1)
    correlation[own] = -np.inf
    near = np.argsort(-correlation, kind="stable")[:n_neighbours]
    gram = Z[:, near].T @ Z[:, near] / n + RIDGE * np.eye(near.size)
    mean = Z[:, near] @ np.linalg.solve(gram, Z[:, near].T @ Z[:, own] / n)
    residual = Z[:, own] - mean
    values, axes = np.linalg.eigh(residual.T @ residual / (n - near.size))
    root = axes * np.sqrt(np.maximum(values, 0.0))
    return center[own] + scale[own] * mean, scale[own][:, None] * root


@dataclass(frozen=True, eq=False)
class StepwiseRegression:
    """A regression of a target (n,) on a few columns, of which `basis` (n, k) is an orthonormal basis."""

    target: np.ndarray
    basis: np.ndarray

    @classmethod
    def fit(cls, target: np.ndarray, others: np.ndarray, penalty: float) -> StepwiseRegression:
        """Regress the normal scores (n,) of a column on those of others, (n, p)."""
        n, p = others.shape
        basis = np.empty((n, 0))
        left, open_ = target, others - others.mean(axis=0)
        squares, least = np.sum(open_**2, axis=0), NOTHING_LEFT * float(left @ left)
        while basis.shape[1] < min(p, n - 3) and left @ left > least:
            best, share = most_correlated(left, open_, NOTHING_LEFT * squares)
            if evidence_gain(share, n) <= penalty:
                break
            direction = open_[:, best] / np.linalg.norm(open_[:, best])
            left, open_ = left - direction * (direction @ left), open_ - np.outer(direction, direction @ open_)
            basis = np.column_stack([basis, direction])
        return cls(target, basis)

    @cached_property
    def residual(self) -> np.ndarray:
        """The residual of the target, (n,)."""
        return self.target - self.basis @ (self.basis.T @ self.target)

    @property
    def leave_one_out(self) -> tuple[np.ndarray, np.ndarray]:
        """Leave-one-out means and variances of the target, (n,) each; its own mean is known to be 0."""
        n, k = self.basis.shape
        free = np.maximum(1.0 - np.sum(self.basis**2, axis=1), NOTHING_LEFT)
        return self.target - self.residual / free, self.residual @ self.residual / (n - k) / free

    def misses_nonlinearity(self, others: np.ndarray) -> bool:
        """Whether functions or products of the other columns, by their normal scores, explain some of the residual."""
        size = np.linalg.norm(self.residual) / np.sqrt(len(self.residual))
        if size <= np.sqrt(NOTHING_LEFT):
            return False
        left = self.residual / size
        return any(exceeds_noise(t) for t in (cosine_statistics(left, others), product_statistics(left, others)))


def most_correlated(left: np.ndarray, columns: np.ndarray, least: np.ndarray) -> tuple[int, float]:
    """The column with the largest squared correlation to a residual, and this; squares of columns exceed `least`."""
    squares = np.sum(columns**2, axis=0)
    shares = np.zeros(squares.size)
    np.divide((left @ columns) ** 2, squares * (left @ left), out=shares, where=squares > least)
    best = int(np.argmax(shares))
    return best, min(float(shares[best]), 1.0)


def evidence_gain(share: float, n: int) -> float:
    """The gain of log evidence by a column that explains a share of the residual variance of n rows."""
    with np.errstate(divide="ignore"):  # a share of 1
        return float(-0.5 * n * np.log1p(-share) - 0.5 * np.log(n))


def exceeds_noise(t: np.ndarray) -> bool:
    """Whether the largest of some numbers exceeds the largest of as many standard normal ones, nearly always."""
    return bool(t.size and np.max(np.abs(t)) > -ndtri(0.5 * CHANCE / t.size))


def cosine_statistics(left: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Products of a vector of variance 1 with cosines of the ranks of each column, in standard deviations."""
    waves = np.pi * np.arange(1, HALF_WAVES + 1)
    curves = np.cos(waves * ndtr(scores)[:, :, None]).reshape(len(left), -1)
    curves -= curves.mean(axis=0)
    return _standardise(left @ curves, np.sum(curves**2, axis=0))


def product_statistics(left: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Products of a vector of variance 1 with products of each two columns, in standard deviations."""
    Z = scores - scores.mean(axis=0)
    squares = (Z**2).T @ Z**2 - (Z.T @ Z) ** 2 / len(Z)
    pairs = np.triu_indices(Z.shape[1], k=1)
    return _standardise(((Z * left[:, None]).T @ Z)[pairs], squares[pairs])


def _standardise(sums: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Divide sums by the roots of sums of squares; 0 / 0 is 0."""
    return np.divide(sums, np.sqrt(np.maximum(squares, 0.0)), out=np.zeros(sums.size), where=squares > NOTHING_LEFT)
