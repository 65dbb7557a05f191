r"""Groups of features and categories: what a ranking scores, and how a measure is applied to it.

A ranking has one score for each group of features; a feature that is in no named group is a group of its own. A group
is scored in one of two ways.

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

where the point's own level counts 0 in the first. A category is one column of codes, or several columns that code it
together, such as indicators: its levels are the rows of values that occur in them.

A feature that the model does not use is no part of it. Its score is exactly 0, and the scores of the others are those
of the smaller model without it (`score_groups`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from gpsift._utils.text import join_names
from gpsift._utils.validation import read_groups
from gpsift.reference.base import Reference
from gpsift.reference.inputs import Inputs, Points, standard_units
from gpsift.relevance.dask import training_levels
from gpsift.relevance.measure import Groups, Levels, Measure, Relevance, Units, feature_scale


@dataclass(frozen=True, eq=False)
class FeatureGroups:
    """The groups that are scored; features that belong to no named group are groups of one column.

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
        """Read groups and categories as users name them; by default the categories are those of the model itself."""
        names, columns = read_groups(groups, inputs.names)
        if categorical is None:
            own = set(inputs.categorical)
            categories = tuple(number for number, members in enumerate(columns) if own.issuperset(members))
        else:
            categories = read_categories(categorical, names, columns, inputs.names)
        return cls(names, columns, {k: training_levels(inputs, columns[k], names[k]) for k in categories})

    @property
    def n_levels(self) -> Mapping[str, int]:
        """Number of levels of each category."""
        return {self.names[number]: len(each.shares) for number, each in self.levels.items()}

    def select(self, *numbers: int) -> FeatureGroups:
        """Return some of the groups."""
        levels = {place: self.levels[number] for place, number in enumerate(numbers) if number in self.levels}
        return FeatureGroups(tuple(self.names[k] for k in numbers), tuple(self.columns[k] for k in numbers), levels)

    def on_columns(self, columns: Sequence[int]) -> tuple[list[int], FeatureGroups]:
        """Return the numbers of the groups that have some of the columns, and these groups in a table of them alone."""
        place = {column: number for number, column in enumerate(columns)}
        members = [tuple(place[j] for j in group if j in place) for group in self.columns]
        kept = [number for number, some in enumerate(members) if some]
        levels = {k: _levels_on(self.levels[number], place) for k, number in enumerate(kept) if number in self.levels}
        return kept, FeatureGroups(tuple(self.names[k] for k in kept), tuple(members[k] for k in kept), levels)

    def ungrouped(self, feature_names: Sequence[str]) -> FeatureGroups:
        """Return single features in place of moving groups; a category stays as it is."""
        names: list[str] = []
        columns: list[tuple[int, ...]] = []
        levels: dict[int, Levels] = {}
        for number, (name, its_columns) in enumerate(zip(self.names, self.columns, strict=True)):
            if number in self.levels:
                levels[len(names)] = self.levels[number]
            is_one = number in self.levels or len(its_columns) == 1
            names += [name] if is_one else [feature_names[j] for j in its_columns]
            columns += [its_columns] if is_one else [(j,) for j in its_columns]
        return FeatureGroups(tuple(names), tuple(columns), levels)


def score_groups(measure: Measure, model: Reference, points: Points, groups: FeatureGroups) -> Relevance:
    """Score all groups by the smaller model of the columns in use; groups without any of them score exactly 0.

    The conditionals of VAR, too, are then given the columns in use only.
    """
    used = model.used
    if len(used) == points.inputs.n_features or points.inputs.X is None:
        return apply_measure(measure, model, points, groups)
    columns = used or (0,)  # a model needs some column
    smaller = model.on_columns(columns)
    if smaller is None:
        return apply_measure(measure, model, points, groups)
    kept, fewer = groups.on_columns(columns)
    found = apply_measure(measure, smaller, points.on_columns(columns), fewer)
    kept = kept if used else []

    def among_all(values: np.ndarray) -> np.ndarray:
        return scatter_scores(values[..., : len(kept)], kept, len(groups.columns))

    terms = {name: among_all(term) for name, term in found.terms.items()}
    return replace(found, values=among_all(found.values), terms=terms)


def scatter_scores(values: np.ndarray, kept: Sequence[int], n_groups: int) -> np.ndarray:
    """Put the scores of some groups, (..., k), among those of all groups, which are 0."""
    wide = np.zeros((*values.shape[:-1], n_groups))
    wide[..., list(kept)] = values
    return wide


def apply_measure(measure: Measure, model: Reference, points: Points, groups: FeatureGroups) -> Relevance:
    """Score the groups by a measure of the model as it is: categories by their levels, all others as they move."""
    moving = tuple(columns for number, columns in enumerate(groups.columns) if number not in groups.levels)
    found = _score_moving(measure, model, points, moving) if moving else None
    if not groups.levels:
        assert found is not None
        return found
    categories = {k: measure.category_relevance(model, points, levels) for k, levels in groups.levels.items()}
    return _merge(found, categories, len(groups.columns))


def _score_moving(measure: Measure, model: Reference, points: Points, groups: Groups) -> Relevance:
    """Groups of one column each, whatever their names, are the features themselves."""
    if any(len(group) > 1 for group in groups):
        return measure.group_relevance(model, points, groups)
    found = measure.relevance(model, points)
    columns = [group[0] for group in groups]
    if len(columns) == points.inputs.n_features:
        return found
    terms = {name: term[..., columns] for name, term in found.terms.items()}
    return replace(found, values=found.values[..., columns], terms=terms)


def _merge(moving: Relevance | None, categories: Mapping[int, Relevance], n_groups: int) -> Relevance:
    """Put the scores of both kinds of groups in the order of all groups."""
    first = moving if moving is not None else next(iter(categories.values()))
    others = [number for number in range(n_groups) if number not in categories]

    def merged(part: Callable[[Relevance], np.ndarray]) -> np.ndarray:
        columns = {number: part(each) for number, each in categories.items()}
        if moving is not None:
            columns |= dict(zip(others, part(moving).T, strict=True))
        return np.column_stack([columns[number] for number in range(n_groups)])

    units = first.units
    for each in categories.values():
        units = units if each.units in units else f"{units}, of categories {each.units}"
    terms = {name: merged(operator.methodcaller("term", name)) for name in first.terms}
    return replace(first, values=merged(operator.attrgetter("values")), units=units, terms=terms)


def group_directions(points: Points, groups: Groups) -> np.ndarray:
    """The directions in which each group moves, as columns: a root of its covariance, (p, number of columns).

    A group has as many of them as columns, one after another in the order of the groups; see `sum_over_groups`.
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
    """Sums over the directions of each group, (n, number of groups)."""
    starts = np.cumsum([0, *(len(group) for group in groups[:-1])])
    return np.add.reduceat(values, starts, axis=1)


def group_coordinates(points: Points, groups: Groups) -> np.ndarray:
    """One coordinate for each group at the points: the column itself, or the first principal one of several."""
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
        axis = axis * np.sign(axis[np.argmax(np.abs(axis))])  # an axis has no sign; this one is as good as any
        coordinates[:, k] = standard_units(X[:, columns], center[columns], sd[columns]) @ axis
    return coordinates


def refuse_raw_units(measure: str, units: Units) -> None:
    """Refuse scores per raw unit: the columns of a group have only their standard deviations in common."""
    if units == "raw":
        raise ValueError(
            f'{measure} has no score of a group, whose columns share no raw unit. Use `units="sd"`, the default.'
        )


def read_categories(
    categorical: Any, names: Sequence[str], columns: Sequence[tuple[int, ...]], features: Sequence[str]
) -> tuple[int, ...]:
    """Read which groups are categories, as users name them.

    Parameters
    ----------
    categorical : iterable of names or indices of features, or names of groups
    names, columns
        The groups.
    features : sequence of str
        All features.
    """
    if isinstance(categorical, str) or not isinstance(categorical, Iterable):
        raise TypeError(f'`categorical` must list features or groups, such as ["colour"], got {categorical!r}.')
    return tuple(sorted({_read_category(item, names, columns, tuple(features)) for item in categorical}))


def _read_category(item: Any, names: Sequence[str], columns: Sequence[tuple[int, ...]], features: Sequence[str]) -> int:
    if isinstance(item, str) and item in names:
        return list(names).index(item)
    column = features.index(item) if item in features else item
    if not isinstance(column, int | np.integer) or isinstance(column, bool) or not 0 <= column < len(features):
        raise ValueError(f"`categorical` names {item!r}, which is no feature or group; they are {join_names(names)}.")
    number = next(number for number, members in enumerate(columns) if column in members)
    if len(columns[number]) > 1:
        raise ValueError(
            f"`categorical` names {item!r}, a column of the group {names[number]!r}. Name the group: its columns "
            "change their level together."
        )
    return number


def _levels_on(levels: Levels, place: Mapping[int, int]) -> Levels:
    """The levels of a category in those of its columns that are kept."""
    shown = [number for number, column in enumerate(levels.columns) if column in place]
    return Levels(tuple(place[levels.columns[k]] for k in shown), levels.values[:, shown], levels.shares)


def _principal_axes(points: Points, group: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, ascending, and eigenvectors of the correlation matrix; a constant column correlates with nothing."""
    variances, axes = np.linalg.eigh(points.inputs.correlation_of(group))
    return np.maximum(variances, 0.0), axes
