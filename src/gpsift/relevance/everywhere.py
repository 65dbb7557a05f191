"""Scores of all rows of dask collections, as sums over their partitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from gpsift.cluster import ClusterRows
from gpsift.inputs import Inputs
from gpsift.reference import Reference
from gpsift.relevance.categories import MOST_LEVELS, Levels
from gpsift.relevance.measure import Groups, Measure
from gpsift.relevance.scored import relevance_of
from gpsift.sparse.rows import Rows, Totals


@dataclass(frozen=True, eq=False)
class ScoreSums(Totals):
    """Sum and largest of the scores of some rows."""

    n: int
    total: np.ndarray
    largest: np.ndarray

    def __add__(self, other: Self) -> Self:
        return type(self)(self.n + other.n, self.total + other.total, np.maximum(self.largest, other.largest))


def score_sums(
    measure: Measure, model: Reference, units: Groups, levels: Mapping[int, Levels], rows: Rows
) -> ScoreSums:
    """The visit of a chunk of rows."""
    values = relevance_of(measure, model, model.inputs.points(rows.X, size=rows.size), units, levels).values
    return ScoreSums(len(values), values.sum(axis=0), values.max(axis=0))


def scores_everywhere(
    source: ClusterRows,
    measure: Measure,
    model: Reference,
    units: Groups,
    levels: Mapping[int, Levels],
    aggregate: str | float,
) -> np.ndarray:
    """The scores of the units, aggregated over all rows."""
    if not isinstance(aggregate, str):
        raise ValueError(
            f"A quantile, aggregate={aggregate!r}, needs the scores of all rows at once, and these are rows of a dask "
            'collection. Use "mean" or "max", or some of the rows: `rank(..., points=10_000)`.'
        )
    light: Any = model
    if model.inputs.source is not None:  # without its own rows it is light enough to be sent to them
        light = replace(light, inputs=replace(model.inputs, source=None))
    found = source.total(partial(score_sums, measure, light, units, levels))
    return found.total / found.n if aggregate == "mean" else found.largest


@dataclass(frozen=True, eq=False)
class LevelCounts(Totals):
    """How often each combination of values occurs, while they are few enough for levels."""

    counts: dict[Any, int]

    def __add__(self, other: Self) -> Self:
        counts = dict(self.counts)
        if len(counts) <= MOST_LEVELS:
            for value, count in other.counts.items():
                counts[value] = counts.get(value, 0) + count
        return type(self)(counts)


def level_counts(columns: tuple[int, ...], rows: Rows) -> LevelCounts:
    """The visit of a chunk of rows."""
    values, counts = np.unique(rows.X[:, list(columns)], axis=0, return_counts=True)
    return LevelCounts(dict(zip(map(tuple, values.tolist()), counts.tolist(), strict=True)))


def training_levels(inputs: Inputs, columns: tuple[int, ...], name: str) -> Levels:
    """The levels of a category in the training inputs, wherever they are."""
    if inputs.X is not None:
        return Levels.found(inputs.X, columns, name)
    counts = inputs.source.total(partial(level_counts, columns)).counts
    values = sorted(counts)
    return Levels.counted(np.array(values), np.array([counts[value] for value in values]), columns, name)
