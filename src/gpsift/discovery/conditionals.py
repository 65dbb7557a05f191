"""What values a feature could have had, given the others: by regression of normal scores, or by a Gaussian process.

The first is cheap and right where normal scores of the columns are jointly normal (a Gaussian copula). A column that is
a curved function of others is not described by it; a Gaussian process of its normal scores on the other columns does,
by the means and variances of rows that are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpsift.discovery.axes import Axis, Continuous, Levels, Redraws
from gpsift.gp import GP, MAP
from gpsift.hyper import Hyper, Sift
from gpsift.hyper.screening import normal_scores
from gpsift.input_moments import InputMoments, standard_units
from gpsift.relevance.conditionals import fit_conditionals
from gpsift.user_arrays import ReadTable, column_sd

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
    """Conditional means (n, p) and standard deviations (p,) of the normal scores of each column given all others."""

    mean: np.ndarray
    sd: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray) -> ScoreRegression:
        n, p = X.shape
        scores = normal_scores(X)
        if n >= ROWS_FOR_ALL_COLUMNS * p:
            found = fit_conditionals(InputMoments.of(scores), "auto")
            return cls(found.mean(scores), found.sd)
        return cls(*on_neighbours(scores, min(p - 1, max(LEAST_NEIGHBOURS, n // ROWS_FOR_A_NEIGHBOUR))))


def on_neighbours(scores: np.ndarray, n_neighbours: int) -> tuple[np.ndarray, np.ndarray]:
    """Regression of each column on those that it correlates with most: means (n, p) and residual deviations (p,)."""
    n, p = scores.shape
    center, scale = scores.mean(axis=0), column_sd(scores)
    Z = standard_units(scores, center, scale)
    correlation = Z.T @ Z / n
    np.fill_diagonal(correlation, 0.0)
    mean, sd = np.empty_like(Z), np.empty(p)
    for j in range(p):
        near = np.argsort(-np.abs(correlation[j]), kind="stable")[:n_neighbours]
        gram = correlation[np.ix_(near, near)] + (1.0 + RIDGE) * np.eye(near.size)
        mean[:, j] = Z[:, near] @ np.linalg.solve(gram, correlation[near, j])
        sd[j] = np.sqrt(np.sum((Z[:, j] - mean[:, j]) ** 2) / (n - near.size))
    return center + scale * mean, scale * sd


def by_gp(axis: Axis, others: ReadTable) -> Redraws:
    """The redraws of a unit by a Gaussian process on the other columns, each row predicted from all others."""
    n, p = others.values.shape
    model = GP(hyper=quick_hyper(n, p))
    if isinstance(axis, Levels) and (len(axis.values) == 2 or axis.rows.shape[1] > 1):
        n_levels = len(axis.values)
        chosen = GP(hyper=model.hyper, likelihood="bernoulli" if n_levels == 2 else "softmax")
        second = chosen.fit(others, axis.codes).quality.loo_mean
        return axis.by_probability(np.column_stack([1.0 - second, second]) if n_levels == 2 else second)
    x = axis.x if isinstance(axis, Continuous) else axis.rows[:, 0]  # type: ignore[attr-defined]
    quality = model.fit(others, normal_scores(x[:, None])[:, 0]).quality
    return axis.redraws(quality.loo_mean, np.sqrt(quality.loo_var))
