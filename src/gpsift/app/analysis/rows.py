"""Describe single rows: a sample with predictions and pointwise relevance, and the explanation of some rows."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from gpsift.app.analysis.analysis import Analysis
from gpsift.decomposition.shapley import Attribution, explain
from gpsift.gp.fitted import Prediction
from gpsift.reference.base import MissingCapability
from gpsift.relevance import KL, rank

MOST_ROWS = 2000
# A page shows at most this many cells: about 2 MB of text with the contribution of each column.
MOST_CELLS = 30_000


@dataclass(frozen=True, eq=False)
class RowDetails:
    """A sample of m rows of the leading ranking, with the columns that the model uses.

    If the model uses none, the columns that came close are shown.
    """

    point_positions: np.ndarray  # the positions of the rows among the points of the ranking
    total: int  # number of points of the ranking
    names: tuple[str, ...]  # the columns, most relevant first
    labels: pd.Index  # the names of the rows in the user's table
    values: list[pd.Series]  # of the user's table, by column
    color_ranks: np.ndarray  # (p, m), the rank of each value in its column, from 0 to 1
    relevance: np.ndarray  # (p, m)
    average: np.ndarray  # (p,), over all rows of the ranking
    mean_share: np.ndarray | None  # (p, m), the share of squared relevance due to the mean
    prediction: Prediction
    observed: np.ndarray
    added: np.ndarray | None = None  # (p, m), the contribution of each column to the prediction
    added_sd: np.ndarray | None = None  # (p, m), its standard deviation

    @property
    def is_subsample(self) -> bool:
        """True if some rows are not shown."""
        return len(self.point_positions) < self.total

    @property
    def largest(self) -> float:
        """The largest relevance."""
        return float(max(self.relevance.max(initial=0.0), self.average.max(initial=0.0)))


@dataclass(frozen=True, eq=False)
class RowSample:
    """The rows and columns of a sample."""

    order: np.ndarray  # the columns of the ranking, most relevant first
    point_positions: np.ndarray  # positions among the points of the ranking
    row_positions: np.ndarray  # positions among the rows of the table
    inputs: pd.DataFrame | np.ndarray  # the rows in the form that the model takes


def sample_rows(analysis: Analysis) -> RowSample | None:
    """Sample rows of the leading ranking if there are many; return None if it has no pointwise scores."""
    ranking = analysis.shown
    if ranking.pointwise is None:
        return None
    order = np.array([j for j in ranking.order if ranking.is_used(j)] or ranking.order)
    at_points = subsample(len(ranking.pointwise), len(order), analysis.seed)
    at_rows = ranking.rows[at_points]
    inputs = analysis.X.iloc[at_rows]
    return RowSample(order, at_points, at_rows, inputs if analysis.model.inputs.names_given else inputs.to_numpy())


def row_details(analysis: Analysis) -> RowDetails | None:
    """Return the details of the sampled rows; None if the leading ranking has no pointwise scores."""
    ranking, shown = analysis.shown, sample_rows(analysis)
    if ranking.pointwise is None or shown is None:
        return None
    order, at_points, at_rows = shown.order, shown.point_positions, shown.row_positions
    names, shares = tuple(ranking.names[j] for j in order), ranking.mean_shares
    # The user's values of a column; a group that is no column has coordinates instead.
    values = [
        analysis.rows[name].iloc[at_rows].reset_index(drop=True)
        if name in analysis.rows.columns
        else pd.Series(ranking.points[at_points, j])
        for name, j in zip(names, order, strict=True)
    ]
    added, added_sd = None, None
    attribution = None if analysis.column_effects is None else analysis.column_effects.rows
    if attribution is not None and set(names) <= set(attribution.names):
        columns = [attribution.names.index(name) for name in names]
        added, added_sd = attribution.values[:, columns].T, attribution.sd[:, columns].T
    return RowDetails(
        point_positions=at_points,
        total=len(ranking.pointwise),
        names=names,
        labels=analysis.rows.index[at_rows],
        values=values,
        color_ranks=np.array([color_rank(each) for each in values]),
        relevance=ranking.pointwise[at_points][:, order].T,
        average=ranking.pointwise.mean(axis=0)[order],
        mean_share=None if shares is None else shares[at_points][:, order].T,
        prediction=analysis.model.predict(shown.inputs),
        observed=analysis.y[at_rows],
        added=added,
        added_sd=added_sd,
    )


def subsample(n: int, p: int, seed: int) -> np.ndarray:
    """Return the positions of the rows to show: all of n, or a sorted random sample."""
    most = max(1, min(MOST_ROWS, MOST_CELLS // max(p, 1)))
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, size=most, replace=False))


def color_rank(values: pd.Series) -> np.ndarray:
    """Return the rank of each value as a number from 0 to 1; texts and categories by the order of their levels."""
    if pd.api.types.is_numeric_dtype(values):
        # By values, one outlier would give all others the same colour.
        ranks = values.rank(method="average").to_numpy(dtype=float)
    else:
        ranks = pd.Categorical(values.astype(str)).codes.astype(float)
    low, high = np.nanmin(ranks), np.nanmax(ranks)
    return np.full(ranks.shape, 0.5) if high == low else np.nan_to_num((ranks - low) / (high - low), nan=0.5)


@dataclass(frozen=True, eq=False)
class Explanation:
    """KL relevances of the columns at some rows, with predictions and the contributions of the columns to them.

    `moves_mean` and `moves_variance` are shares of the squared relevance; None if predictions have no such parts.
    """

    names: tuple[str, ...]
    scores: np.ndarray
    average: np.ndarray  # scores over all rows of the fit
    used: np.ndarray  # whether the model uses the column
    moves_mean: np.ndarray | None
    moves_variance: np.ndarray | None
    prediction: np.ndarray  # means (n,), or probabilities of several classes (n, C)
    sd: np.ndarray
    observed: np.ndarray
    attribution: Attribution | None = None  # of the predictions, if the model has it in closed form

    @property
    def n_rows(self) -> int:
        return len(self.observed)

    @property
    def order(self) -> np.ndarray:
        """Columns by decreasing relevance at these rows, unused ones last."""
        return np.lexsort((-self.scores, ~self.used))

    @property
    def added(self) -> np.ndarray | None:
        """The mean contribution of each column to the predictions of these rows, (p,)."""
        return None if self.attribution is None else self.attribution.values.mean(axis=0)

    @property
    def shown_order(self) -> np.ndarray:
        """Columns by the size of their contribution if it is known, else by relevance."""
        return self.order if self.added is None else np.lexsort((-np.abs(self.added), ~self.used))


def explain_rows(analysis: Analysis, X: pd.DataFrame, y: np.ndarray) -> Explanation:
    """Explain rows in the form of `Analysis.X`, which need not be rows of the fit."""
    options = analysis.unit_options
    local, overall = rank(analysis.model, X, KL(), **options), rank(analysis.model, measure=KL(), **options)
    prediction = analysis.model.predict(X)
    attribution = None
    with suppress(MissingCapability):  # the model has no closed form for it
        found = explain(analysis.model, X, **options)
        columns = {name: j for j, name in enumerate(found.names)}
        kept = np.array([columns.get(name, -1) for name in local.names])
        # An attribution may leave out unused columns. They contribute nothing, and get an additional column of zeros.
        zeros = np.zeros((len(X), 1))
        values, sd, points = (np.hstack([each, zeros])[:, kept] for each in (found.values, found.sd, found.points))
        attribution = replace(found, names=local.names, values=values, sd=sd, points=points)
    return Explanation(
        names=local.names,
        scores=local.scores,
        average=overall.scores,
        used=np.ones(len(local.names), dtype=bool) if local.used is None else local.used,
        moves_mean=local.shares.get("mean"),
        moves_variance=local.shares.get("variance"),
        prediction=prediction.mean,
        sd=np.sqrt(prediction.var),
        observed=np.asarray(y),
        attribution=attribution,
    )
