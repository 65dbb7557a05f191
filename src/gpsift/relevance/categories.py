r"""Features whose values are levels: they do not move by a small step, they change from one level to another.

With w_c the share of level c in the training data,

.. math::
    r_i = \sum_c w_c \sqrt{2 \, \mathrm{KL}(p(y \mid x_i) \,\|\, p(y \mid x_i \text{ with level } c))} , \qquad
    \mathrm{VAR}_i = \mathrm{Var}_{c \sim w} \, \mathrm{mean}(x_i \text{ with level } c) ,

where the point's own level counts 0 in the first. A category is one column of codes, or several columns that code it
together, such as indicators: its levels are the rows of values that occur in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gpsift._utils.text import join_names

MOST_LEVELS = 200


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of a category.

    Parameters
    ----------
    columns : tuple of int
        The columns that code it.
    values : array (L, k)
        What they hold at each level.
    shares : array (L,)
        How often each occurs in the training data, as parts of 1.
    """

    columns: tuple[int, ...]
    values: np.ndarray
    shares: np.ndarray

    @classmethod
    def found(cls, X: np.ndarray, columns: tuple[int, ...], name: str) -> Self:
        """Those that occur in the rows of X."""
        return cls.counted(*np.unique(X[:, list(columns)], axis=0, return_counts=True), columns, name)

    @classmethod
    def counted(cls, values: np.ndarray, counts: np.ndarray, columns: tuple[int, ...], name: str) -> Self:
        """Those that occur `counts` times each."""
        if len(values) > MOST_LEVELS:
            raise ValueError(
                f"`categorical` names {name!r}, which has {len(values)} different values in {counts.sum()} rows; more "
                f"than {MOST_LEVELS} levels are no category. Leave it out to score it as a number."
            )
        return cls(columns, values, counts / counts.sum())

    def changed(self, points: np.ndarray) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
        """For each level: its share, the points with that level, and which of them had another one before."""
        columns = list(self.columns)
        for value, share in zip(self.values, self.shares, strict=True):
            moved = points.copy()
            moved[:, columns] = value
            yield float(share), moved, np.any(points[:, columns] != value, axis=1)


def own_categories(categorical: Sequence[int], columns: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The units whose columns the model itself takes as categories."""
    own = set(categorical)
    return tuple(unit for unit, members in enumerate(columns) if own.issuperset(members))


def read_categories(
    categorical: Any, names: Sequence[str], columns: Sequence[tuple[int, ...]], features: Sequence[str]
) -> tuple[int, ...]:
    """Which of the units are categories, as users name them.

    Parameters
    ----------
    categorical : iterable of names or indices of features, or names of groups
    names, columns
        The units: features, and groups of them.
    features : sequence of str
        All features.
    """
    if isinstance(categorical, str) or not isinstance(categorical, Iterable):
        raise TypeError(f'`categorical` must list features or groups, such as ["colour"], got {categorical!r}.')
    return tuple(sorted({_unit(item, names, columns, tuple(features)) for item in categorical}))


def _unit(item: Any, names: Sequence[str], columns: Sequence[tuple[int, ...]], features: Sequence[str]) -> int:
    if isinstance(item, str) and item in names:
        return list(names).index(item)
    column = features.index(item) if item in features else item
    if not isinstance(column, int | np.integer) or isinstance(column, bool) or not 0 <= column < len(features):
        raise ValueError(f"`categorical` names {item!r}, which is no feature or group; they are {join_names(names)}.")
    unit = next(unit for unit, members in enumerate(columns) if column in members)
    if len(columns[unit]) > 1:
        raise ValueError(
            f"`categorical` names {item!r}, a column of the group {names[unit]!r}. Name the group: its columns change "
            "their level together."
        )
    return unit
