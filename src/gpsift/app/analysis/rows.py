"""Rows of an analysis: their values, predictions and pointwise relevance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from gpsift.app.analysis.analysis import Analysis
from gpsift.decomposition.explain import explain
from gpsift.decomposition.record_attribution import Attribution
from gpsift.gp.record_prediction import Prediction
from gpsift.reference.base import MissingCapability
from gpsift.relevance import KL, rank
from gpsift.relevance.ranking import Ranking

MOST_ROWS = 2000
# RowDetails times columns that are shown: about 2 MB of text, with what each column adds there.
MOST_CELLS = 30_000


@dataclass(frozen=True, eq=False)
class RowDetails:
    """The rows of the leading ranking, or m of them, with the columns that are used.

    Where none is used, those that came close are there.
    """

    places: np.ndarray  # which of the ranking's points they are
    total: int  # points of the ranking
    names: tuple[str, ...]  # the columns, most relevant first
    labels: pd.Index  # what each row is called in the user's table
    values: list[pd.Series]  # the user's, by column
    shades: (
        np.ndarray
    )  # (p, m), where each value lies among those of its column, from 0 to 1; categories by their level
    relevance: np.ndarray  # (p, m)
    average: np.ndarray  # (p,), over all rows of the ranking
    mean_share: np.ndarray | None  # (p, m), of the squared relevance what moves the mean, where it has such parts
    prediction: Prediction
    observed: np.ndarray
    added: np.ndarray | None = None  # (p, m), what each column adds to the prediction less its average
    added_sd: np.ndarray | None = None  # (p, m), what the data leave open of that

    @property
    def is_thinned(self) -> bool:
        """Whether some rows are not shown."""
        return len(self.places) < self.total

    @property
    def largest(self) -> float:
        """The largest relevance of all."""
        return float(max(self.relevance.max(initial=0.0), self.average.max(initial=0.0)))


@dataclass(frozen=True, eq=False)
class RowSample:
    """Which rows and columns are shown."""

    order: np.ndarray  # numbers of the columns in the ranking, most relevant first
    places: np.ndarray  # which of the ranking's points
    positions: np.ndarray  # which rows of the table
    inputs: pd.DataFrame | np.ndarray  # these as the model takes them


def sample_rows(analysis: Analysis) -> RowSample | None:
    """The rows of the leading ranking, subsample where there are many; None if it has no pointwise scores."""
    ranking = analysis.shown
    if ranking.pointwise is None:
        return None
    order = np.array([j for j in ranking.order if ranking.is_used(j)] or ranking.order)
    places = subsample(len(ranking.pointwise), len(order), analysis.seed)
    positions = ranking.rows[places]
    inputs = analysis.X.iloc[positions]
    return RowSample(order, places, positions, inputs if analysis.model.inputs.names_given else inputs.to_numpy())


def row_details(analysis: Analysis) -> RowDetails | None:
    """What there is to see at the rows that are shown; None if the leading ranking has no pointwise scores."""
    ranking, shown = analysis.shown, sample_rows(analysis)
    if ranking.pointwise is None or shown is None:
        return None
    order, places, positions = shown.order, shown.places, shown.positions
    values = [_user_values(analysis, ranking, int(j), places) for j in order]
    shares = ranking.mean_shares
    names = tuple(ranking.names[j] for j in order)
    added, added_sd = _contributions(analysis, names)
    return RowDetails(
        places=places,
        total=len(ranking.pointwise),
        names=names,
        labels=analysis.rows.index[positions],
        values=values,
        shades=np.array([color_rank(each) for each in values]),
        relevance=ranking.pointwise[places][:, order].T,
        average=ranking.pointwise.mean(axis=0)[order],
        mean_share=None if shares is None else shares[places][:, order].T,
        prediction=analysis.model.predict(shown.inputs),
        observed=analysis.y[positions],
        added=added,
        added_sd=added_sd,
    )


def _contributions(analysis: Analysis, names: Sequence[str]) -> tuple[np.ndarray | None, np.ndarray | None]:
    """What these columns add to the prediction of each row, and the standard deviations of that, where it is known."""
    apart = None if analysis.column_effects is None else analysis.column_effects.rows
    if apart is None or not set(names) <= set(apart.names):
        return None, None
    columns = [apart.names.index(name) for name in names]
    return apart.values[:, columns].T, apart.sd[:, columns].T


def subsample(n: int, p: int, seed: int) -> np.ndarray:
    """Which of n rows to show: all, or a random sample in their order."""
    most = max(1, min(MOST_ROWS, MOST_CELLS // max(p, 1)))
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, size=most, replace=False))


def color_rank(values: pd.Series) -> np.ndarray:
    """Where each value lies among all, from 0 to 1, by rank; text and categories by their level in order."""
    if pd.api.types.is_numeric_dtype(values):
        # By rank and not by value: one outlier would leave all others in one color_rank.
        places = values.rank(method="average").to_numpy(dtype=float)
    else:
        places = pd.Categorical(values.astype(str)).codes.astype(float)
    low, high = np.nanmin(places), np.nanmax(places)
    return np.full(places.shape, 0.5) if high == low else np.nan_to_num((places - low) / (high - low), nan=0.5)


def _user_values(analysis: Analysis, ranking: Ranking, j: int, places: np.ndarray) -> pd.Series:
    """The user's values of a unit of the ranking; of a group that is no column, its coordinate."""
    name = ranking.names[j]
    if name in analysis.rows.columns:
        return analysis.rows[name].iloc[ranking.rows[places]].reset_index(drop=True)
    return pd.Series(ranking.points[places, j])


@dataclass(frozen=True, eq=False)
class Explanation:
    """KL relevances of the columns at some rows, what is predicted there, and what each column adds to that.

    `moves_mean` and `moves_variance` are shares of the squared relevance; None where predictions have no such parts.
    """

    names: tuple[str, ...]
    scores: np.ndarray
    average: np.ndarray  # over all rows of the model
    used: np.ndarray  # whether the model uses the column at all
    moves_mean: np.ndarray | None
    moves_variance: np.ndarray | None
    prediction: np.ndarray  # means (n,), or probabilities of several classes (n, C)
    sd: np.ndarray
    observed: np.ndarray
    apart: Attribution | None = None  # the predictions taken apart, where the model has that in closed form

    @property
    def n_rows(self) -> int:
        return len(self.observed)

    @property
    def order(self) -> np.ndarray:
        """Columns by falling relevance at these rows, those that are not used last."""
        return np.lexsort((-self.scores, ~self.used))

    @property
    def added(self) -> np.ndarray | None:
        """What each column adds to the prediction on average over these rows, (p,)."""
        return None if self.apart is None else self.apart.values.mean(axis=0)

    @property
    def shown_order(self) -> np.ndarray:
        """Columns by the size of what they add, where that is known; else by relevance."""
        return self.order if self.added is None else np.lexsort((-np.abs(self.added), ~self.used))


def explain_rows(analysis: Analysis, X: pd.DataFrame, y: np.ndarray) -> Explanation:
    """The relevances at rows in the form of `Analysis.X`, which need not be among those of the fit."""
    options = analysis.unit_options
    here, everywhere = rank(analysis.model, X, KL(), **options), rank(analysis.model, measure=KL(), **options)
    shares = here.shares
    prediction = analysis.model.predict(X)
    return Explanation(
        names=here.names,
        scores=here.scores,
        average=everywhere.scores,
        used=np.ones(len(here.names), dtype=bool) if here.used is None else here.used,
        moves_mean=shares.get("mean"),
        moves_variance=shares.get("variance"),
        prediction=prediction.mean,
        sd=np.sqrt(prediction.var),
        observed=np.asarray(y),
        apart=_attribute(analysis, X, here.names),
    )


def _attribute(analysis: Analysis, X: pd.DataFrame, names: tuple[str, ...]) -> Attribution | None:
    """The rows taken apart into what each of these columns adds; None where the model has no closed form of that."""
    try:
        found = explain(analysis.model, X, **analysis.unit_options)
    except MissingCapability:
        return None
    places = {name: place for place, name in enumerate(found.names)}
    kept = np.array([places.get(name, -1) for name in names])
    # Of many columns those that are not used are not told of. They add nothing: the last column of zeros is theirs.
    nothing = np.zeros((len(X), 1))
    values, sd, points = (np.hstack([each, nothing])[:, kept] for each in (found.values, found.sd, found.points))
    return replace(found, names=names, values=values, sd=sd, points=points)
