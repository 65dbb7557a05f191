r"""This module defines what a ranking scores, groups of features and categories, and the units of their changes.

A ranking has one score for each group of features; a feature that is in no named group is a group of one. There are two
kinds of groups.

A *moving* group takes small steps along the columns of a root L of its covariance, Cov(x_G) = L L^T. With J_G the
derivatives of the predictive parameters along its columns and I their Fisher information, the squared rates along these
directions add up to

.. math:: \sum_c (J_G L_c)^T I \, J_G L_c = \mathrm{trace}(\mathrm{Cov}(x_G) \, J_G^T I \, J_G) .

For one column this is the squared rate per standard deviation. It does not depend on the basis of the group: any
invertible linear mixture of its columns has the same score.

A *category* changes from one level to another. With w_c the share of level c in the training data,

.. math::
    r_i = \sum_c w_c \sqrt{2 \, \mathrm{KL}(p(y \mid x_i) \,\|\, p(y \mid x_i \text{ with level } c))} , \qquad
    \mathrm{VAR}_i = \mathrm{Var}_{c \sim w} \, \mathrm{mean}(x_i \text{ with level } c) ,

where the term of the point's own level is 0. A category is one column of codes, or several columns that code it
together, such as indicators: its levels are the distinct rows of values in them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Self

import numpy as np

from gpsift._utils.rows import Rows
from gpsift._utils.text import join_names
from gpsift._utils.validation import read_groups
from gpsift.reference.inputs import Inputs, Points, standard_units

Units = Literal["sd", "raw"]
Groups = tuple[tuple[int, ...], ...]  # the columns of each group

# A category with more levels is refused.
MOST_LEVELS = 200


@dataclass(frozen=True, eq=False)
class FeatureGroups:
    """The groups to score; features that belong to no named group are groups of one column.

    Parameters
    ----------
    names : tuple of str
    columns : tuple of tuples of int
        The columns of each group.
    levels : mapping of int to Levels
        The levels of the groups that are categories, by the number of the group.
    """

    names: tuple[str, ...]
    columns: Groups
    levels: Mapping[int, Levels]

    @classmethod
    def read(
        cls,
        groups: Mapping[str, Sequence[str | int]] | None,
        categorical: Iterable[str | int] | None,
        inputs: Inputs,
    ) -> Self:
        """Read groups and categories as users name them; by default the categories are those of the model."""
        names, columns = read_groups(groups, inputs.names)
        if categorical is None:
            own = set(inputs.categorical)
            categories = tuple(k for k, members in enumerate(columns) if own.issuperset(members))
        else:
            categories = read_categories(categorical, names, columns, inputs.names)
        return cls(names, columns, {k: training_levels(inputs, columns[k], names[k]) for k in categories})

    def select(self, *numbers: int) -> FeatureGroups:
        """Return some of the groups."""
        levels = {position: self.levels[k] for position, k in enumerate(numbers) if k in self.levels}
        return FeatureGroups(tuple(self.names[k] for k in numbers), tuple(self.columns[k] for k in numbers), levels)

    def on_columns(self, columns: Sequence[int]) -> tuple[list[int], FeatureGroups]:
        """Return the numbers of the groups with any of the columns, and these groups in a table of these columns."""
        position = {column: number for number, column in enumerate(columns)}
        members = [tuple(position[j] for j in group if j in position) for group in self.columns]
        kept = [k for k, some in enumerate(members) if some]
        levels = {}
        for number, k in enumerate(kept):
            if k in self.levels:
                whole = self.levels[k]
                coding = [i for i, column in enumerate(whole.columns) if column in position]
                levels[number] = Levels(
                    tuple(position[whole.columns[i]] for i in coding), whole.values[:, coding], whole.shares
                )
        return kept, FeatureGroups(tuple(self.names[k] for k in kept), tuple(members[k] for k in kept), levels)

    def ungroup(self, feature_names: Sequence[str]) -> FeatureGroups:
        """Return single features in place of moving groups; categories do not change."""
        names: list[str] = []
        columns: list[tuple[int, ...]] = []
        levels: dict[int, Levels] = {}
        for k, (name, members) in enumerate(zip(self.names, self.columns, strict=True)):
            if k in self.levels:
                levels[len(names)] = self.levels[k]
            is_one = k in self.levels or len(members) == 1
            names += [name] if is_one else [feature_names[j] for j in members]
            columns += [members] if is_one else [(j,) for j in members]
        return FeatureGroups(tuple(names), tuple(columns), levels)


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of a category.

    Parameters
    ----------
    columns : tuple of int
        The columns that code the category.
    values : array (L, k)
        The values of these columns at each level.
    shares : array (L,)
        The share of each level in the training data.
    """

    columns: tuple[int, ...]
    values: np.ndarray
    shares: np.ndarray

    def replacements(self, points: np.ndarray) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
        """Yield for each level its share, the points with that level, and which of them had another one before."""
        columns = list(self.columns)
        for value, share in zip(self.values, self.shares, strict=True):
            moved = points.copy()
            moved[:, columns] = value
            yield float(share), moved, np.any(points[:, columns] != value, axis=1)


def training_levels(inputs: Inputs, columns: tuple[int, ...], name: str) -> Levels:
    """Return the levels of a category in the training inputs, which are in this process or in dask partitions."""
    if inputs.X is not None:
        values, counts = np.unique(inputs.X[:, list(columns)], axis=0, return_counts=True)
    else:
        found = sorted(inputs.source.map_reduce(partial(level_counts, columns)).items())
        values, counts = np.array([value for value, _ in found]), np.array([count for _, count in found])
    if len(values) > MOST_LEVELS:
        raise ValueError(
            f"`categorical` names {name!r}, which has {len(values)} different values in {counts.sum()} rows; more "
            f"than {MOST_LEVELS} levels are no category. Leave it out to score it as a number."
        )
    return Levels(columns, values, counts / counts.sum())


class LevelCounts(Counter[tuple[float, ...]]):
    """The number of rows with each combination of values. With too many combinations the count stops."""

    def __add__(self, other: LevelCounts) -> LevelCounts:  # type: ignore[override]
        return self if len(self) > MOST_LEVELS else LevelCounts(super().__add__(other))


def level_counts(columns: tuple[int, ...], rows: Rows) -> LevelCounts:
    """Count the combinations of values of some columns in a chunk of rows. Dask's dashboard shows this name."""
    values, counts = np.unique(rows.X[:, list(columns)], axis=0, return_counts=True)
    return LevelCounts(dict(zip(map(tuple, values.tolist()), counts.tolist(), strict=True)))


def read_categories(
    categorical: Any, names: Sequence[str], columns: Sequence[tuple[int, ...]], features: Sequence[str]
) -> tuple[int, ...]:
    """Read which of the groups with these names and columns are categories: features or groups, as users name them."""
    if isinstance(categorical, str) or not isinstance(categorical, Iterable):
        raise TypeError(f'`categorical` must list features or groups, such as ["colour"], got {categorical!r}.')
    categories = set()
    for item in categorical:
        if isinstance(item, str) and item in names:
            categories.add(list(names).index(item))
            continue
        column = list(features).index(item) if item in features else item
        if not isinstance(column, int | np.integer) or isinstance(column, bool) or not 0 <= column < len(features):
            raise ValueError(
                f"`categorical` names {item!r}, which is no feature or group; they are {join_names(names)}."
            )
        number = next(k for k, members in enumerate(columns) if column in members)
        if len(columns[number]) > 1:
            raise ValueError(
                f"`categorical` names {item!r}, a column of the group {names[number]!r}. Name the group: its columns "
                "change their level together."
            )
        categories.add(number)
    return tuple(sorted(categories))


def feature_scale(points: Points, units: Units) -> np.ndarray:
    """Return the length of one unit along each feature: its standard deviation in the training data, or 1.

    It is 0 for a constant feature, which the data cannot score.
    """
    sd = points.inputs.sd
    return sd if units == "sd" else np.where(sd > 0, 1.0, 0.0)


def group_directions(points: Points, groups: Groups) -> np.ndarray:
    """Return the directions in which each group moves, as columns: a root of its covariance, (p, number of columns).

    A group has one direction for each of its columns; they are in the order of the groups, see `sum_over_groups`.
    """
    sd = feature_scale(points, "sd")
    directions = np.zeros((sd.size, sum(map(len, groups))))
    start = 0
    for group in groups:
        variances, axes = _principal_axes(points, group)
        directions[list(group), start : start + len(group)] = sd[list(group), None] * axes * np.sqrt(variances)
        start += len(group)
    return directions


def sum_over_groups(values: np.ndarray, groups: Groups) -> np.ndarray:
    """Return sums over the directions of each group, (n, number of groups)."""
    starts = np.cumsum([0, *(len(group) for group in groups[:-1])])
    return np.add.reduceat(values, starts, axis=1)


def group_coordinates(points: Points, groups: Groups) -> np.ndarray:
    """Return one coordinate for each group at the points: its column, or the first principal component."""
    X = points.X
    if all(len(group) == 1 for group in groups):
        return X
    sd, center = feature_scale(points, "sd"), points.inputs.center
    coordinates = np.empty((len(X), len(groups)))
    for k, group in enumerate(groups):
        columns = list(group)
        if len(columns) == 1:
            coordinates[:, k] = X[:, columns[0]]
            continue
        axis = _principal_axes(points, group)[1][:, -1]
        axis = axis * np.sign(axis[np.argmax(np.abs(axis))])  # the sign of an axis is arbitrary
        coordinates[:, k] = standard_units(X[:, columns], center[columns], sd[columns]) @ axis
    return coordinates


def _principal_axes(points: Points, group: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues, ascending, and eigenvectors of the correlation matrix, 0 for constant columns."""
    variances, axes = np.linalg.eigh(points.inputs.correlation_of(group))
    return np.maximum(variances, 0.0), axes
