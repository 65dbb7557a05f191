"""A measure applied to what is scored: features, groups of them, and categories, in their order."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from gpsift.inputs import Points
from gpsift.reference import Reference
from gpsift.relevance.categories import Levels
from gpsift.relevance.measure import Groups, Measure, Relevance


def relevance_of(
    measure: Measure, model: Reference, points: Points, units: Groups, levels: Mapping[int, Levels]
) -> Relevance:
    """Scores of the units: categories by their levels, all others as they move."""
    moving = tuple(unit for number, unit in enumerate(units) if number not in levels)
    found = _moving_relevance(measure, model, points, moving) if moving else None
    if not levels:
        assert found is not None
        return found
    changing = {unit: measure.category_relevance(model, points, each) for unit, each in levels.items()}
    return _merged(found, changing, len(units))


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
