"""Rows: their values, predictions and pointwise relevance, for the dots and for the explanation of one row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from gpsift.page.words import number, percent, shortened, value_text

if TYPE_CHECKING:
    from gpsift.analysis.record import Analysis

MOST_ROWS = 2000
# Rows times columns that a page carries: about 3 MB of text.
MOST_CELLS = 200_000
DIGITS = 3
LEVEL = 0.9


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows that a page shows.

    Attributes
    ----------
    places : array (m,)
        Which of the ranking's points they are.
    total : int
        How many points the ranking has.
    names : tuple of str
        The columns, most relevant first.
    labels : list of str
        What each row is called in the user's table.
    values : list of lists of str
        By column, then by row, as text.
    shades : array (p, m)
        Where each value lies among those of its column, from 0 to 1; categories by their level.
    relevance : array (p, m)
    average : array (p,)
        The same over all rows of the ranking.
    mean_share : array (p, m) or None
        How much of the squared relevance moves the mean; None where it has no such parts.
    predictions, observed : list of str
    """

    places: np.ndarray
    total: int
    names: tuple[str, ...]
    labels: list[str]
    values: list[list[str]]
    shades: np.ndarray
    relevance: np.ndarray
    average: np.ndarray
    mean_share: np.ndarray | None
    predictions: list[str]
    observed: list[str]

    @property
    def is_thinned(self) -> bool:
        return len(self.places) < self.total

    def payload(self) -> dict[str, Any]:
        """What the script of the page needs to explain a row."""
        largest = self.relevance.max(initial=0.0)
        return {
            "names": list(self.names),
            "short": [shortened(name) for name in self.names],
            "labels": self.labels,
            "values": self.values,
            "relevance": _rounded(self.relevance),
            "average": _rounded(self.average[None])[0],
            "meanShare": None if self.mean_share is None else np.round(self.mean_share, 2).tolist(),
            "largest": float(max(largest, self.average.max(initial=0.0))),
            "predictions": self.predictions,
            "observed": self.observed,
        }


def shown_rows(analysis: Analysis) -> Rows | None:
    """The rows of the leading ranking, thinned where there are many; None if it has no pointwise scores."""
    ranking = analysis.leading
    if ranking.pointwise is None:
        return None
    total, p = ranking.pointwise.shape
    places = thinned(total, p, analysis.seed)
    order = ranking.order
    positions = ranking.rows[places]
    cells = [_column(analysis, int(j), places) for j in order]
    shares = None
    if set(ranking.terms) == {"mean", "variance"}:
        mean, variance = (ranking.terms[term][places][:, order].T for term in ("mean", "variance"))
        shares = mean / np.where(mean + variance > 0, mean + variance, 1.0)
    return Rows(
        places=places,
        total=total,
        names=tuple(ranking.names[j] for j in order),
        labels=[value_text(label) for label in analysis.rows.index[positions]],
        values=[[value_text(value) for value in cell.tolist()] for cell in cells],
        shades=np.array([shade(cell) for cell in cells]),
        relevance=ranking.pointwise[places][:, order].T,
        average=ranking.pointwise.mean(axis=0)[order],
        mean_share=shares,
        predictions=predictions(analysis, positions),
        observed=[_observed(analysis, position) for position in positions],
    )


def thinned(n: int, p: int, seed: int) -> np.ndarray:
    """Which of n rows to show: all, or a random sample in their order."""
    most = max(1, min(MOST_ROWS, MOST_CELLS // max(p, 1)))
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, size=most, replace=False))


def predictions(analysis: Analysis, positions: np.ndarray) -> list[str]:
    """What the model predicts at these rows, in words."""
    frame = analysis.X.iloc[positions]
    found = analysis.model.predict(frame if analysis.model.inputs.names_given else frame.to_numpy())
    if analysis.task == "classification":
        mean = found.mean if found.mean.ndim == 2 else np.column_stack([1.0 - found.mean, found.mean])
        best = mean.argmax(axis=1)
        return [f"{_class(analysis, k)} with probability {percent(mean[i, k])}" for i, k in enumerate(best)]
    limits = found.interval(LEVEL)
    return [
        f"{number(mean)} ({percent(LEVEL)} between {number(low)} and {number(high)})"
        for mean, (low, high) in zip(found.mean, limits, strict=True)
    ]


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


def _class(analysis: Analysis, code: int) -> str:
    return shortened(analysis.classes[code]) if analysis.classes else str(code)


def _observed(analysis: Analysis, position: int) -> str:
    y = analysis.y[position]
    return _class(analysis, int(y)) if analysis.task == "classification" else value_text(float(y))


def _rounded(values: np.ndarray) -> list[list[float]]:
    """Numbers with few digits: the page carries very many of them."""
    return [[float(f"{value:.{DIGITS}g}") for value in line] for line in values.tolist()]
