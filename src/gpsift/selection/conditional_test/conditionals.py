"""Conditional distributions of features given the others: by a Gaussian copula, or by a Gaussian process.

The first is cheap, and right where normal scores of the columns are jointly normal. A column that is a nonlinear
function of others needs the second: a Gaussian process of its normal scores on the other columns, by its leave-one-out
means and variances. Where a stepwise regression misses no nonlinearity, it replaces the Gaussian process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpsift._utils.validation import CheckedTable, constant_columns
from gpsift.gp import GP, MAP
from gpsift.gp.hyperparameters import Hyper, Sift
from gpsift.gp.hyperparameters.score_tests import normal_scores
from gpsift.selection.conditional_test.axes import (
    Axis,
    ConditionalDraws,
    ContinuousAxis,
    DiscreteAxis,
    JointAxis,
    column_axis,
)
from gpsift.selection.conditional_test.gaussian_copula import ScoreRegression, StepwiseRegression
from gpsift.selection.data import Data, Units

NORMAL_SCORES, FEW_SCORES = "normal scores", "a few normal scores"
GAUSSIAN_PROCESS, OWN_SHARES = "Gaussian process", "shares of its levels"

# With fewer rows for each column features are activated one by one, with a smaller penalty than by default: the test
# decides about them.
ROWS_FOR_ALL_AT_ONCE = 10
PENALTY = 2.0


def quick_hyper(n_rows: int, n_columns: int) -> Hyper:
    """The choice of hyperparameters for a model that is one of many."""
    return MAP(starts=1) if n_rows >= ROWS_FOR_ALL_AT_ONCE * n_columns else Sift(toll=PENALTY)


def loo_by_regression(target: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Leave-one-out means and variances of a column's normal scores by those of others; None for nonlinear ones."""
    regression = StepwiseRegression.fit(target, others, PENALTY)
    return None if regression.misses_nonlinearity(others) else regression.leave_one_out


def loo_by_gp(others: CheckedTable, target: np.ndarray, likelihood: str) -> Mapping[str, Any]:
    """Leave-one-out means and variances of a target on some columns by a Gaussian process."""
    n, p = others.values.shape
    quality = GP(hyper=quick_hyper(n, p), likelihood=likelihood).fit(others, target).quality
    return {"mean": quality.loo_mean, "var": quality.loo_var}


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
        return gp_target(self.axis) if self.conditional == NORMAL_SCORES else None

    @property
    def rank_key(self) -> bytes | None:
        """A key that a continuous column shares with its monotone functions, rising or falling."""
        if not isinstance(self.axis, ContinuousAxis):
            return None
        ranks = np.round(self.axis.scores, 9) + 0.0
        return min(ranks.tobytes(), (-ranks + 0.0).tobytes())


def make_tested_units(data: Data, units: Units) -> list[TestedUnit]:
    """Make every unit with its axis and its first conditional."""
    regression, found = ScoreRegression(data.X), []
    for number, (name, own) in enumerate(zip(units.names, units.columns, strict=True)):
        rows = data.X[:, list(own)]
        if number in units.categorical and len(own) > 1:
            levels = DiscreteAxis(rows)
            found.append(TestedUnit(number, name, own, levels, *_category_draws(levels, data, own)))
            continue
        mean, root = regression.given_others(own)
        axis: Axis = JointAxis(rows, mean, root) if len(own) > 1 else column_axis(rows)
        draws = axis.draws(mean[:, 0], np.full(len(rows), abs(root[0, 0])))
        found.append(TestedUnit(number, name, own, axis, draws, NORMAL_SCORES))
    return found


def _category_draws(levels: DiscreteAxis, data: Data, own: Sequence[int]) -> tuple[ConditionalDraws, str]:
    """The conditional of a category by a Gaussian process, or by the shares of its levels without other columns."""
    target, others = gp_target(levels), varying_others(data, own)
    if target is None or not others:
        shares = np.broadcast_to(levels.own.mean(axis=0), levels.own.shape)
        return levels.by_probability(shares), OWN_SHARES
    answer = loo_by_gp(data.table(others), *target)
    return draws_from_moments(levels, answer["mean"], answer["var"]), GAUSSIAN_PROCESS


def varying_others(data: Data, columns: Sequence[int]) -> list[int]:
    """All columns that vary, except some."""
    varies = ~constant_columns(data.X)
    varies[list(columns)] = False
    return np.flatnonzero(varies).tolist()


def gp_target(axis: Axis) -> tuple[np.ndarray, str] | None:
    """The target of a Gaussian process for an axis, and its likelihood; None for several columns or one level."""
    if isinstance(axis, ContinuousAxis):
        return axis.scores, "gaussian"
    if not isinstance(axis, DiscreteAxis) or len(axis.values) < 2:
        return None
    if len(axis.values) == 2:
        return axis.codes.astype(float), "bernoulli"
    if axis.rows.shape[1] > 1:
        return axis.codes.astype(float), "softmax"
    return normal_scores(axis.rows)[:, 0], "gaussian"


def draws_from_moments(axis: Axis, mean: np.ndarray, var: np.ndarray) -> ConditionalDraws:
    """The conditional from leave-one-out means and variances of the target of an axis."""
    if isinstance(axis, DiscreteAxis) and (len(axis.values) == 2 or axis.rows.shape[1] > 1):
        return axis.by_probability(np.column_stack([1.0 - mean, mean]) if mean.ndim == 1 else mean)
    return axis.draws(mean, np.sqrt(var))
