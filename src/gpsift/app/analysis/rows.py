"""Rows of an analysis: their values, predictions and pointwise relevance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpsift.app.analysis.record import Analysis
from gpsift.gp.fitted import Prediction
from gpsift.relevance.ranking import Ranking

MOST_ROWS = 2000
# Rows times columns that are shown: about 2 MB of text, with what each column adds there.
MOST_CELLS = 30_000


@dataclass(frozen=True, eq=False)
class Rows:
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
class ShownRows:
    """Which rows and columns are shown."""

    order: np.ndarray  # numbers of the columns in the ranking, most relevant first
    places: np.ndarray  # which of the ranking's points
    positions: np.ndarray  # which rows of the table
    inputs: pd.DataFrame | np.ndarray  # these as the model takes them


def shown_rows(analysis: Analysis) -> ShownRows | None:
    """The rows of the leading ranking, thinned where there are many; None if it has no pointwise scores."""
    ranking = analysis.leading_told
    if ranking.pointwise is None:
        return None
    order = np.array([j for j in ranking.order if ranking.is_used(j)] or ranking.order)
    places = thinned(len(ranking.pointwise), len(order), analysis.seed)
    positions = ranking.rows[places]
    inputs = analysis.X.iloc[positions]
    return ShownRows(order, places, positions, inputs if analysis.model.inputs.names_given else inputs.to_numpy())


def rows_of(analysis: Analysis) -> Rows | None:
    """What there is to see at the rows that are shown; None if the leading ranking has no pointwise scores."""
    ranking, shown = analysis.leading_told, shown_rows(analysis)
    if ranking.pointwise is None or shown is None:
        return None
    order, places, positions = shown.order, shown.places, shown.positions
    values = [_column(analysis, ranking, int(j), places) for j in order]
    shares = ranking.mean_shares
    names = tuple(ranking.names[j] for j in order)
    added, added_sd = _added(analysis, names)
    return Rows(
        places=places,
        total=len(ranking.pointwise),
        names=names,
        labels=analysis.rows.index[positions],
        values=values,
        shades=np.array([shade(each) for each in values]),
        relevance=ranking.pointwise[places][:, order].T,
        average=ranking.pointwise.mean(axis=0)[order],
        mean_share=None if shares is None else shares[places][:, order].T,
        prediction=analysis.model.predict(shown.inputs),
        observed=analysis.y[positions],
        added=added,
        added_sd=added_sd,
    )


def _added(analysis: Analysis, names: Sequence[str]) -> tuple[np.ndarray | None, np.ndarray | None]:
    """What these columns add to the prediction of each row, and the standard deviations of that, where it is known."""
    apart = None if analysis.shape is None else analysis.shape.rows
    if apart is None or not set(names) <= set(apart.names):
        return None, None
    columns = [apart.names.index(name) for name in names]
    return apart.values[:, columns].T, apart.sd[:, columns].T


def thinned(n: int, p: int, seed: int) -> np.ndarray:
    """Which of n rows to show: all, or a random sample in their order."""
    most = max(1, min(MOST_ROWS, MOST_CELLS // max(p, 1)))
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, size=most, replace=False))


def shade(values: pd.Series) -> np.ndarray:
    """Where each value lies among all, from 0 to 1, by rank; text and categories by their level in order."""
    if pd.api.types.is_numeric_dtype(values):
        # By rank and not by value: one outlier would leave all others in one shade.
        places = values.rank(method="average").to_numpy(dtype=float)
    else:
        places = pd.Categorical(values.astype(str)).codes.astype(float)
    low, high = np.nanmin(places), np.nanmax(places)
    return np.full(places.shape, 0.5) if high == low else np.nan_to_num((places - low) / (high - low), nan=0.5)


def _column(analysis: Analysis, ranking: Ranking, j: int, places: np.ndarray) -> pd.Series:
    """The user's values of a unit of the ranking; of a group that is no column, its coordinate."""
    name = ranking.names[j]
    if name in analysis.rows.columns:
        return analysis.rows[name].iloc[ranking.rows[places]].reset_index(drop=True)
    return pd.Series(ranking.points[places, j])
