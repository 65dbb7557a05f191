"""Scores of all rows of dask collections, as sums over their partitions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from gpsift._utils.rows import Rows, Totals
from gpsift.reference import dask as cluster
from gpsift.reference.base import Reference
from gpsift.relevance.measure import Measure
from gpsift.relevance.scored import ScoredUnits, relevance_of


@dataclass(frozen=True, eq=False)
class ScoreSums(Totals):
    """Sum and largest of the scores of some rows."""

    n: int
    total: np.ndarray
    largest: np.ndarray

    def __add__(self, other: Self) -> Self:
        return type(self)(self.n + other.n, self.total + other.total, np.maximum(self.largest, other.largest))


def score_sums(measure: Measure, model: Reference, units: ScoredUnits, rows: Rows) -> ScoreSums:
    """The visit of a chunk of rows."""
    values = relevance_of(measure, model, model.inputs.points(rows.X, size=rows.size), units).values
    return ScoreSums(len(values), values.sum(axis=0), values.max(axis=0))


def scores_everywhere(
    source: cluster.ClusterRows, measure: Measure, model: Reference, units: ScoredUnits, aggregate: str | float
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
    found = source.map_reduce(partial(score_sums, measure, light, units))
    return found.total / found.n if aggregate == "mean" else found.largest
