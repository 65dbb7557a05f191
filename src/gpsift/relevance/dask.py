"""Sums over rows of dask collections: aggregated scores, and the levels of categories.

A pass calls a function with each chunk of rows, where these are, and adds up what it returns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gpsift._utils.rows import Rows, Totals
from gpsift.reference.inputs import Inputs
from gpsift.relevance.measure import MOST_LEVELS, Levels

if TYPE_CHECKING:
    from gpsift.reference.dask import ClusterRows


@dataclass(frozen=True, eq=False)
class ScoreSums(Totals):
    """Sum and largest of the pointwise scores of n rows, (p,) each."""

    n: int
    total: np.ndarray
    largest: np.ndarray

    def __add__(self, other: Self) -> Self:
        return type(self)(self.n + other.n, self.total + other.total, np.maximum(self.largest, other.largest))


def aggregate_scores(
    source: ClusterRows, score_rows: Callable[[Rows], np.ndarray], aggregate: str | float
) -> np.ndarray:
    """Return the mean or the largest of the scores over all rows; `score_rows` gives those of a chunk, (n, p)."""
    if not isinstance(aggregate, str):
        raise ValueError(
            f"A quantile, aggregate={aggregate!r}, needs the scores of all rows at once, and these are rows of a dask "
            'collection. Use "mean" or "max", or some of the rows: `rank(..., points=10_000)`.'
        )
    found = source.map_reduce(partial(score_sums, score_rows))
    return found.total / found.n if aggregate == "mean" else found.largest


def score_sums(score_rows: Callable[[Rows], np.ndarray], rows: Rows) -> ScoreSums:
    """Return the sums of a chunk of rows. The name is the title of the pass in dask's dashboard."""
    values = score_rows(rows)
    return ScoreSums(len(values), values.sum(axis=0), values.max(axis=0))


@dataclass(frozen=True, eq=False)
class LevelCounts(Totals):
    """How often each combination of values occurs. Further ones are not counted when there are too many for levels."""

    counts: dict[Any, int]

    def __add__(self, other: Self) -> Self:
        counts = dict(self.counts)
        if len(counts) <= MOST_LEVELS:
            for value, count in other.counts.items():
                counts[value] = counts.get(value, 0) + count
        return type(self)(counts)


def level_counts(columns: tuple[int, ...], rows: Rows) -> LevelCounts:
    """Count the combinations of values of some columns in a chunk of rows."""
    values, counts = np.unique(rows.X[:, list(columns)], axis=0, return_counts=True)
    return LevelCounts(dict(zip(map(tuple, values.tolist()), counts.tolist(), strict=True)))


def training_levels(inputs: Inputs, columns: tuple[int, ...], name: str) -> Levels:
    """Return the levels of a category in the training inputs, which are in this process or in dask partitions."""
    if inputs.X is not None:
        return Levels.from_rows(inputs.X, columns, name)
    counts = inputs.source.map_reduce(partial(level_counts, columns)).counts
    values = sorted(counts)
    return Levels.from_counts(np.array(values), np.array([counts[value] for value in values]), columns, name)
