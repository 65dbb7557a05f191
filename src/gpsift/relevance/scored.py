"""What is scored, features, groups of them and categories, and a measure applied to all of them in their order."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from gpsift._utils.validation import read_groups
from gpsift.reference.base import Reference
from gpsift.reference.inputs import Inputs, Points
from gpsift.relevance.categories import Levels, own_categories, read_categories
from gpsift.relevance.measure import Groups, Measure, Relevance
from gpsift.relevance.training_levels import training_levels


@dataclass(frozen=True, eq=False)
class ScoredUnits:
    """What is scored: features, or groups of them, some of which are categories."""

    names: tuple[str, ...]
    columns: Groups
    levels: Mapping[int, Levels]  # of those that are categories, by their position

    @classmethod
    def read(
        cls,
        groups: Mapping[str, Sequence[str | int]] | None,
        categorical: Iterable[str | int] | None,
        inputs: Inputs,
    ) -> Self:
        """As users name groups and categories; by default the categories that the model itself has."""
        names, columns = read_groups(groups, inputs.names)
        if categorical is None:
            categories = own_categories(inputs.categorical, columns)
        else:
            categories = read_categories(categorical, names, columns, inputs.names)
        return cls(names, columns, {k: training_levels(inputs, columns[k], names[k]) for k in categories})

    def only(self, *units: int) -> ScoredUnits:
        """Some of the units alone."""
        levels = {place: self.levels[unit] for place, unit in enumerate(units) if unit in self.levels}
        return ScoredUnits(tuple(self.names[u] for u in units), tuple(self.columns[u] for u in units), levels)

    def opened(self, feature_names: Sequence[str]) -> ScoredUnits:
        """The same with each column of a group that is no category by itself."""
        names: list[str] = []
        columns: list[tuple[int, ...]] = []
        levels: dict[int, Levels] = {}
        for unit, (name, its_columns) in enumerate(zip(self.names, self.columns, strict=True)):
            if unit in self.levels:
                levels[len(names)] = self.levels[unit]
            is_one = unit in self.levels or len(its_columns) == 1
            names += [name] if is_one else [feature_names[j] for j in its_columns]
            columns += [its_columns] if is_one else [(j,) for j in its_columns]
        return ScoredUnits(tuple(names), tuple(columns), levels)

    @property
    def n_levels(self) -> Mapping[str, int]:
        """Number of levels of each category."""
        return {self.names[unit]: len(each.shares) for unit, each in self.levels.items()}


def relevance_of(measure: Measure, model: Reference, points: Points, units: ScoredUnits) -> Relevance:
    """Scores of the units: categories by their levels, all others as they move."""
    moving = tuple(columns for unit, columns in enumerate(units.columns) if unit not in units.levels)
    found = _moving_relevance(measure, model, points, moving) if moving else None
    if not units.levels:
        assert found is not None
        return found
    changing = {unit: measure.category_relevance(model, points, each) for unit, each in units.levels.items()}
    return _merged(found, changing, len(units.columns))


def _moving_relevance(measure: Measure, model: Reference, points: Points, units: Groups) -> Relevance:
    """Units of one column each, whatever they are called, are the features themselves."""
    if any(len(unit) > 1 for unit in units):
        return measure.group_relevance(model, points, units)
    found = measure.relevance(model, points)
    columns = [unit[0] for unit in units]
    if len(columns) == points.inputs.n_features:
        return found
    terms = {name: term[..., columns] for name, term in found.terms.items()}
    return replace(found, values=found.values[..., columns], terms=terms)


def _merged(moving: Relevance | None, changing: Mapping[int, Relevance], n_units: int) -> Relevance:
    """The scores of both kinds of units in the order of the units."""
    first = moving if moving is not None else next(iter(changing.values()))
    others = [unit for unit in range(n_units) if unit not in changing]

    def joined(part: Callable[[Relevance], np.ndarray]) -> np.ndarray:
        columns = {unit: part(each) for unit, each in changing.items()}
        if moving is not None:
            columns |= dict(zip(others, part(moving).T, strict=True))
        return np.column_stack([columns[unit] for unit in range(n_units)])

    units = first.units
    for each in changing.values():
        units = units if each.units in units else f"{units}, of categories {each.units}"
    terms = {name: joined(operator.methodcaller("term", name)) for name in first.terms}
    return replace(first, values=joined(operator.attrgetter("values")), units=units, terms=terms)
