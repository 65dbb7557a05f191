r"""Estimate conditional distributions of features given the others, by a Gaussian copula or by a Gaussian process.

`ScoreRegression` fits the copula: it regresses the normal scores of a column on those of the others, which is right if
they are jointly normal. A column may instead be a nonlinear function of others. Its second conditional is a Gaussian
process of its normal scores on the other columns, with leave-one-out means and variances.

`StepwiseRegression` replaces the Gaussian process if it misses no nonlinearity. It adds columns one by one, each time
the one with the largest correlation rho to the residual. Over n rows that raises the log evidence by about

.. math:: -\tfrac n2 \log (1 - \rho^2) - \tfrac12 \log n

(Schwarz 1978), and columns are added as long as this exceeds a penalty. If some nonlinear function of a column, or a
product of two, is correlated with the final residual more than noise would be, the regression misses something.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from gpsift._utils.validation import CheckedTable, column_sd, constant_columns
from gpsift.gp import GP, MAP
from gpsift.gp.hyperparameters import Hyper, Sift
from gpsift.gp.hyperparameters.score_tests import normal_scores
from gpsift.reference.inputs import InputMoments, standard_units
from gpsift.relevance.conditionals import Conditionals, fit_conditionals
from gpsift.selection.conditional_test.axes import Axis, ConditionalDraws, DiscreteAxis, JointAxis, column_axis
from gpsift.selection.data import Data, Units

NORMAL_SCORES, FEW_SCORES = "normal scores", "a few normal scores"
GAUSSIAN_PROCESS, OWN_SHARES = "Gaussian process", "shares of its levels"

# With fewer rows for each column `Sift` activates features one by one. Its penalty is smaller than by default, because
# the test decides afterwards.
ROWS_FOR_ALL_AT_ONCE = 10
PENALTY = 2.0
# With fewer rows for each column a score is regressed on the most correlated columns only: one for each ten rows, at
# least three.
ROWS_FOR_ALL_COLUMNS = 4
ROWS_FOR_A_NEIGHBOUR = 10
LEAST_NEIGHBOURS = 3
RIDGE = 1e-3
# Functions of a column are cosines of its ranks, of up to this many half waves.
HALF_WAVES = 6
# The level of the tests for functions of one column, and for products of two.
TEST_LEVEL = 0.1
# Residuals below this share of the sum of squares are rounding errors: other columns determine the column.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class TestedUnit:
    """A feature, group or category with its number, its columns, its axis, and its conditional at each row."""

    __test__ = False  # it is no test of pytest's

    number: int
    name: str
    columns: tuple[int, ...]
    axis: Axis
    draws: ConditionalDraws
    conditional: str

    @property
    def gp_target(self) -> tuple[np.ndarray, str] | None:
        """The target and likelihood of a Gaussian process as second conditional; None for groups and categories."""
        return self.axis.gp_target if self.conditional == NORMAL_SCORES else None


def make_tested_units(data: Data, units: Units) -> list[TestedUnit]:
    """Make every unit with its axis and its first conditional."""
    regression, found = ScoreRegression(data.X), []
    for number, (name, own) in enumerate(zip(units.names, units.columns, strict=True)):
        rows = data.X[:, list(own)]
        axis: Axis
        if number in units.categorical and len(own) > 1:
            axis, others = DiscreteAxis(rows), varying_others(data, own)
            if axis.gp_target is None or not others:
                shares = np.broadcast_to(axis.own.mean(axis=0), axis.own.shape)
                draws, conditional = ConditionalDraws.of_points(shares), OWN_SHARES
            else:
                answer = loo_by_gp(data.table(others), *axis.gp_target)
                draws, conditional = axis.draws_by_gp(answer["mean"], answer["var"]), GAUSSIAN_PROCESS
        else:
            mean, root = regression.conditional_moments(own)
            axis = JointAxis(rows, mean, root) if len(own) > 1 else column_axis(rows)
            draws, conditional = axis.draws(mean[:, 0], np.full(len(rows), abs(root[0, 0]))), NORMAL_SCORES
        found.append(TestedUnit(number, name, own, axis, draws, conditional))
    return found


def varying_others(data: Data, columns: Sequence[int]) -> list[int]:
    """Return the columns that vary, except these."""
    varies = ~constant_columns(data.X)
    varies[list(columns)] = False
    return np.flatnonzero(varies).tolist()


def quick_hyper(n_rows: int, n_columns: int) -> Hyper:
    """Return a fast search for hyperparameters, for models of which many are fitted."""
    return MAP(starts=1) if n_rows >= ROWS_FOR_ALL_AT_ONCE * n_columns else Sift(toll=PENALTY)


def loo_by_regression(target: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return leave-one-out means and variances of normal scores by those of others; None for nonlinear columns."""
    regression = StepwiseRegression.fit(target, others, PENALTY)
    return None if regression.misses_nonlinearity(others) else regression.leave_one_out


def loo_by_gp(others: CheckedTable, target: np.ndarray, likelihood: str) -> Mapping[str, Any]:
    """Return leave-one-out means and variances of a target on some columns by a Gaussian process."""
    quality = GP(hyper=quick_hyper(*others.shape), likelihood=likelihood).fit(others, target).quality
    return {"mean": quality.loo_mean, "var": quality.loo_var}


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

    def conditional_moments(self, columns: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return means (n, k) of the scores of k columns given all others, and a root (k, k) of their covariance."""
        own, (n, p) = list(columns), self.X.shape
        if self.has_rows_for_all:
            return self._conditionals.mean_of_group(self.scores, own), self._conditionals.root(own)
        # Only the most correlated columns explain them.
        n_neighbours = min(p - len(own), max(LEAST_NEIGHBOURS, n // ROWS_FOR_A_NEIGHBOUR))
        center, scale = self.scores.mean(axis=0), column_sd(self.scores)
        Z = standard_units(self.scores, center, scale)
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
        # The residual of the target, and the parts of the other columns that are orthogonal to the basis.
        r, Z = target, others - others.mean(axis=0)
        least, least_squares = ROUNDING * float(r @ r), ROUNDING * np.sum(Z**2, axis=0)
        while basis.shape[1] < min(p, n - 3) and r @ r > least:
            squares, shares = np.sum(Z**2, axis=0), np.zeros(p)  # shares: squared correlations with the residual
            np.divide((r @ Z) ** 2, squares * (r @ r), out=shares, where=squares > least_squares)
            best = int(np.argmax(shares))
            if evidence_gain(min(float(shares[best]), 1.0), n) <= penalty:
                break
            direction = Z[:, best] / np.linalg.norm(Z[:, best])
            r, Z = r - direction * (direction @ r), Z - np.outer(direction, direction @ Z)
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
        free = np.maximum(1.0 - np.sum(self.basis**2, axis=1), ROUNDING)
        return self.target - self.residual / free, self.residual @ self.residual / (n - k) / free

    def misses_nonlinearity(self, others: np.ndarray) -> bool:
        """Whether functions or products of the other columns, by their normal scores, explain some of the residual."""
        size = np.linalg.norm(self.residual) / np.sqrt(len(self.residual))
        if size <= np.sqrt(ROUNDING):
            return False
        residual = self.residual / size
        for t in (cosine_statistics(residual, others), product_statistics(residual, others)):
            # Bonferroni's bound for the largest of as many standard normal numbers.
            if t.size and np.max(np.abs(t)) > -ndtri(0.5 * TEST_LEVEL / t.size):
                return True
        return False


def evidence_gain(share: float, n: int) -> float:
    """Return the gain of log evidence by a column that explains a share of the residual variance of n rows."""
    with np.errstate(divide="ignore"):  # log(0) for a share of 1
        return float(-0.5 * n * np.log1p(-share) - 0.5 * np.log(n))


def cosine_statistics(residual: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return products of a vector of variance 1 with cosines of the ranks of each column, in standard deviations."""
    waves = np.pi * np.arange(1, HALF_WAVES + 1)
    curves = np.cos(waves * ndtr(scores)[:, :, None]).reshape(len(residual), -1)
    curves -= curves.mean(axis=0)
    return _standardise(residual @ curves, np.sum(curves**2, axis=0))


def product_statistics(residual: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return products of a vector of variance 1 with products of each two columns, in standard deviations."""
    Z = scores - scores.mean(axis=0)
    squares = (Z**2).T @ Z**2 - (Z.T @ Z) ** 2 / len(Z)
    pairs = np.triu_indices(Z.shape[1], k=1)
    return _standardise(((Z * residual[:, None]).T @ Z)[pairs], squares[pairs])


def _standardise(sums: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Divide sums by the roots of sums of squares; 0 / 0 is 0."""
    return np.divide(sums, np.sqrt(np.maximum(squares, 0.0)), out=np.zeros(sums.size), where=squares > ROUNDING)
