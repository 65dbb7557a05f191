"""What values a feature could have had, given the others: by regression of normal scores, or by a Gaussian process.

The first is cheap and right where normal scores of the columns are jointly normal (a Gaussian copula). A column that is
a curved function of others is not described by it; a Gaussian process of its normal scores on the other columns does,
by the means and variances of rows that are left out. Where a regression on a few columns misses no bends
(`straight.py`), these are its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpsift._utils.validation import CheckedTable, column_sd, constant_columns
from gpsift.gp import GP, MAP
from gpsift.gp.hyperparameters import Hyper, Sift
from gpsift.gp.hyperparameters.score_tests import normal_scores
from gpsift.reference.inputs import InputMoments, standard_units
from gpsift.relevance.conditionals import Conditionals, fit_conditionals
from gpsift.selection.conditional_test.axes import Axis, Continuous, Jointly, Levels, Redraws, axis_of
from gpsift.selection.conditional_test.gaussian_copula import Straight
from gpsift.selection.data import Data, Units

NORMAL_SCORES, FEW_SCORES = "normal scores", "a few normal scores"
GAUSSIAN_PROCESS, OWN_SHARES = "Gaussian process", "shares of its levels"

# With fewer rows for each column the columns that a score is regressed on are the few that it goes along with most:
# a tenth of the rows, at least three.
ROWS_FOR_ALL_COLUMNS = 4
ROWS_FOR_A_NEIGHBOUR = 10
LEAST_NEIGHBOURS = 3
RIDGE = 1e-3
# With fewer rows for each column features are switched on one by one, for a toll that lets more of them in than the
# default: it is the test that decides.
ROWS_FOR_ALL_AT_ONCE = 10
TOLL = 2.0


def quick_hyper(n_rows: int, n_columns: int) -> Hyper:
    """How the hyperparameters of a model are found that is one of many."""
    return MAP(starts=1) if n_rows >= ROWS_FOR_ALL_AT_ONCE * n_columns else Sift(toll=TOLL)


@dataclass(frozen=True, eq=False)
class ScoreRegression:
    """Normal scores (n, p) of the columns, and their regressions on each other."""

    X: np.ndarray

    @cached_property
    def scores(self) -> np.ndarray:
        return normal_scores(self.X)

    @property
    def has_rows_for_all(self) -> bool:
        n, p = self.X.shape
        return n >= ROWS_FOR_ALL_COLUMNS * p

    @cached_property
    def _of_all(self) -> Conditionals:
        return fit_conditionals(InputMoments.of(self.scores), "auto")

    def given_others(self, columns: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Means (n, k) of the scores of k columns given all other columns, and a root (k, k) of their covariance."""
        own = list(columns)
        if self.has_rows_for_all:
            return self._of_all.mean_of_group(self.scores, own), self._of_all.root(own)
        n, p = self.X.shape
        return on_neighbours(self.scores, own, min(p - len(own), max(LEAST_NEIGHBOURS, n // ROWS_FOR_A_NEIGHBOUR)))


def on_neighbours(scores: np.ndarray, own: Sequence[int], n_neighbours: int) -> tuple[np.ndarray, np.ndarray]:
    """Regression of some columns on those of the others that they go along with most: means (n, k), root (k, k)."""
    n = len(scores)
    center, scale = scores.mean(axis=0), column_sd(scores)
    Z = standard_units(scores, center, scale)
    pull = np.max(np.abs(Z.T @ Z[:, own]), axis=1)
    pull[own] = -np.inf
    near = np.argsort(-pull, kind="stable")[:n_neighbours]
    gram = Z[:, near].T @ Z[:, near] / n + RIDGE * np.eye(near.size)
    mean = Z[:, near] @ np.linalg.solve(gram, Z[:, near].T @ Z[:, own] / n)
    left = Z[:, own] - mean
    values, axes = np.linalg.eigh(left.T @ left / (n - near.size))
    root = axes * np.sqrt(np.maximum(values, 0.0))
    return center[own] + scale[own] * mean, scale[own][:, None] * root


def left_out_by_few(target: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Means and variances of a column's normal scores by a few of the others', each row left out; None for bends."""
    straight = Straight.found(target, others, TOLL)
    return None if straight.misses_bends(others) else straight.left_out


def left_out_by_gp(others: CheckedTable, target: np.ndarray, likelihood: str) -> Mapping[str, Any]:
    """Means and variances of a target on some columns by a Gaussian process, each row left out."""
    n, p = others.values.shape
    quality = GP(hyper=quick_hyper(n, p), likelihood=likelihood).fit(others, target).quality
    return {"mean": quality.loo_mean, "var": quality.loo_var}


@dataclass(frozen=True, eq=False)
class TestedUnit:
    """A feature, group or category: its number, its columns, the axis along which it is moved, and its redraws."""

    __test__ = False  # it is no test of pytest's

    number: int
    name: str
    columns: tuple[int, ...]
    axis: Axis
    redraws: Redraws
    conditional: str

    @property
    def gp_target(self) -> tuple[np.ndarray, str] | None:
        """What a Gaussian process may still predict, and by which likelihood; None for groups and categories."""
        return gp_target(self.axis) if self.conditional == NORMAL_SCORES else None

    @property
    def orders(self) -> list[bytes]:
        """For each column of many values what it has in common with its monotone functions, rising or falling."""
        if not isinstance(self.axis, Continuous):
            return []
        ranks = np.round(self.axis.scores, 9) + 0.0
        return [min(ranks.tobytes(), (-ranks + 0.0).tobytes())]


def units_to_test(data: Data, units: Units) -> list[TestedUnit]:
    """Every unit with the axis and the conditional that it is first tested by."""
    regression, found = ScoreRegression(data.X), []
    n = len(data.X)
    for number, (name, own) in enumerate(zip(units.names, units.columns, strict=True)):
        rows = data.X[:, list(own)]
        if number in units.categorical and len(own) > 1:
            levels = Levels(rows)
            others = varying_others(data, own)
            found.append(TestedUnit(number, name, own, levels, *_redraws_of_category(levels, data, others)))
            continue
        mean, root = regression.given_others(own)
        axis: Axis = Jointly(rows, mean, root) if len(own) > 1 else axis_of(rows)
        redraws = axis.redraws(mean[:, 0], np.full(n, abs(root[0, 0])))
        found.append(TestedUnit(number, name, own, axis, redraws, NORMAL_SCORES))
    return found


def _redraws_of_category(levels: Levels, data: Data, others: Sequence[int]) -> tuple[Redraws, str]:
    """By a Gaussian process on the other columns; by the shares of the levels where there is nothing to go by."""
    target = gp_target(levels)
    if target is None or not others:
        shares = np.broadcast_to(levels.own.mean(axis=0), levels.own.shape)
        return levels.by_probability(shares), OWN_SHARES
    answer = left_out_by_gp(data.table(others), *target)
    return redraws_by_moments(levels, answer["mean"], answer["var"]), GAUSSIAN_PROCESS


def varying_others(data: Data, columns: Sequence[int]) -> list[int]:
    """All columns but some, as far as they vary."""
    varies = ~constant_columns(data.X)
    varies[list(columns)] = False
    return np.flatnonzero(varies).tolist()


def gp_target(axis: Axis) -> tuple[np.ndarray, str] | None:
    """What a Gaussian process would have to predict, and by which likelihood; None where it is several columns."""
    if isinstance(axis, Continuous):
        return axis.scores, "gaussian"
    if not isinstance(axis, Levels) or len(axis.values) < 2:
        return None
    if len(axis.values) == 2:
        return axis.codes.astype(float), "bernoulli"
    if axis.rows.shape[1] > 1:
        return axis.codes.astype(float), "softmax"
    return normal_scores(axis.rows)[:, 0], "gaussian"


def redraws_by_moments(axis: Axis, mean: np.ndarray, var: np.ndarray) -> Redraws:
    """From means and variances of the target of an axis, each row left out."""
    if isinstance(axis, Levels) and (len(axis.values) == 2 or axis.rows.shape[1] > 1):
        return axis.by_probability(np.column_stack([1.0 - mean, mean]) if mean.ndim == 1 else mean)
    return axis.redraws(mean, np.sqrt(var))
