"""Rows of an analysis: their values, predictions and pointwise relevance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpsift.analysis.record import Analysis
from gpsift.results import Prediction

MOST_ROWS = 2000
# Rows times columns that are shown: about 3 MB of text.
MOST_CELLS = 200_000


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of the leading ranking, or a sample of them.

    Attributes
    ----------
    places : array (m,)
        Which of the ranking's points they are.
    total : int
        How many points the ranking has.
    names : tuple of str
        The columns, most relevant first.
    labels : index (m,)
        What each row is called in the user's table.
    values : list of series (m,)
        The user's values, by column.
    shades : array (p, m)
        Where each value lies among those of its column, from 0 to 1; categories by their level.
    relevance : array (p, m)
    average : array (p,)
        The same over all rows of the ranking.
    mean_share : array (p, m) or None
        How much of the squared relevance moves the mean; None where it has no such parts.
    prediction : Prediction
        At these rows.
    observed : array (m,)
    """

    places: np.ndarray
    total: int
    names: tuple[str, ...]
    labels: pd.Index
    values: list[pd.Series]
    shades: np.ndarray
    relevance: np.ndarray
    average: np.ndarray
    mean_share: np.ndarray | None
    prediction: Prediction
    observed: np.ndarray

    @property
    def is_thinned(self) -> bool:
        """Whether some rows are not shown."""
        return len(self.places) < self.total

    @property
    def largest(self) -> float:
        """The largest relevance of all."""
        return float(max(self.relevance.max(initial=0.0), self.average.max(initial=0.0)))


def rows_of(analysis: Analysis) -> Rows | None:
    """The rows of the leading ranking, thinned where there are many; None if it has no pointwise scores."""
    ranking = analysis.leading
    if ranking.pointwise is None:
        return None
    total, p = ranking.pointwise.shape
    places = thinned(total, p, analysis.seed)
    order = ranking.order
    positions = ranking.rows[places]
    values = [_column(analysis, int(j), places) for j in order]
    shares = ranking.mean_shares
    inputs = analysis.X.iloc[positions]
    return Rows(
        places=places,
        total=total,
        names=tuple(ranking.names[j] for j in order),
        labels=analysis.rows.index[positions],
        values=values,
        shades=np.array([shade(each) for each in values]),
        relevance=ranking.pointwise[places][:, order].T,
        average=ranking.pointwise.mean(axis=0)[order],
        mean_share=None if shares is None else shares[places][:, order].T,
        prediction=analysis.model.predict(inputs if analysis.model.inputs.names_given else inputs.to_numpy()),
        observed=analysis.y[positions],
    )


def thinned(n: int, p: int, seed: int) -> np.ndarray:
    """Which of n rows to show: all, or a random sample in their order."""
    most = max(1, min(MOST_ROWS, MOST_CELLS // max(p, 1)))
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, size=most, replace=False))


def shade(values: pd.Series) -> np.ndarray:
    """Where each value lies among all, from 0 to 1, by rank; text and categories by their level in order."""
    if not pd.api.types.is_numeric_dtype(values):
        values = pd.Series(pd.Categorical(values.astype(str)).codes)
        return _spread(values.to_numpy(dtype=float))
    # By rank and not by value: one outlier would leave all others in one shade.
    return _spread(values.rank(method="average").to_numpy(dtype=float))


def _spread(values: np.ndarray) -> np.ndarray:
    low, high = np.nanmin(values), np.nanmax(values)
    return np.full(values.shape, 0.5) if high == low else np.nan_to_num((values - low) / (high - low), nan=0.5)


def _column(analysis: Analysis, j: int, places: np.ndarray) -> pd.Series:
    """The user's values of a unit of the ranking; of a group that is no column, its coordinate."""
    ranking = analysis.leading
    name = ranking.names[j]
    if name in analysis.rows.columns:
        return analysis.rows[name].iloc[ranking.rows[places]].reset_index(drop=True)
    return pd.Series(ranking.points[places, j])
