"""The levels of categories in training inputs, wherever these are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from gpsift._utils.rows import Rows, Totals
from gpsift.reference.inputs import Inputs
from gpsift.relevance.categories import MOST_LEVELS, Levels


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
    counts = inputs.source.map_reduce(partial(level_counts, columns)).counts
    values = sorted(counts)
    return Levels.counted(np.array(values), np.array([counts[value] for value in values]), columns, name)
