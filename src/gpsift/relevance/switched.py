"""Models with features that are switched off: scores cost, and are those of, the model of the others alone.

A feature that is off is no part of the model: its score is exactly 0, and what is said of the others does not depend on
it. The conditionals of VAR, too, are given the features that are on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from gpsift.reference.base import Reference, Switched
from gpsift.reference.inputs import Points
from gpsift.relevance.categories import Levels
from gpsift.relevance.measure import Measure, Relevance
from gpsift.relevance.scored import ScoredUnits, relevance_of


def relevance_of_used(measure: Measure, model: Reference, points: Points, units: ScoredUnits) -> Relevance:
    """The scores of all units, of those that are switched off exactly 0."""
    if not isinstance(model, Switched) or len(model.used) == points.inputs.n_features or points.inputs.X is None:
        return relevance_of(measure, model, points, units)
    columns = model.used or (0,)  # some column has to be there
    smaller = model.on_columns(columns)
    if smaller is None:
        return relevance_of(measure, model, points, units)
    kept, fewer = units_on_columns(units, columns)
    found = relevance_of(measure, smaller, points.on_columns(columns), fewer)
    kept = kept if model.used else []

    def spread(values: np.ndarray) -> np.ndarray:
        return among_all(values[..., : len(kept)], kept, len(units.columns))

    terms = {name: spread(term) for name, term in found.terms.items()}
    return replace(found, values=spread(found.values), terms=terms)


def among_all(values: np.ndarray, kept: Sequence[int], n_units: int) -> np.ndarray:
    """Scores of some units, (..., k), among those of all, which are 0."""
    wide = np.zeros((*values.shape[:-1], n_units))
    wide[..., list(kept)] = values
    return wide


def units_on_columns(units: ScoredUnits, columns: tuple[int, ...]) -> tuple[list[int], ScoredUnits]:
    """Which units have some of the columns, and these units in a table of those columns alone."""
    place = {column: number for number, column in enumerate(columns)}
    members = [tuple(place[j] for j in unit if j in place) for unit in units.columns]
    kept = [unit for unit, some in enumerate(members) if some]
    levels = {number: _levels_on(units.levels[unit], place) for number, unit in enumerate(kept) if unit in units.levels}
    return kept, ScoredUnits(tuple(units.names[u] for u in kept), tuple(members[u] for u in kept), levels)


def _levels_on(levels: Levels, place: Mapping[int, int]) -> Levels:
    """The levels of a category as some of its columns show them."""
    shown = [number for number, column in enumerate(levels.columns) if column in place]
    return Levels(tuple(place[levels.columns[k]] for k in shown), levels.values[:, shown], levels.shares)


def used_units(model: Reference, units: ScoredUnits) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Which units a model, or one of its draws, uses, and slopes of the others; None where all are used."""
    on = set(used_columns(model))
    if len(on) == model.inputs.n_features:
        return None, None
    used = np.array([bool(on.intersection(columns)) for columns in units.columns])
    slopes = slopes_of(model)
    of_units = np.array([slopes[list(columns)].max() for columns in units.columns])
    return used, np.where(used, -np.inf, of_units)


def used_columns(model: Reference) -> tuple[int, ...]:
    """The columns that a model, or one of its draws, uses: all of them, unless they can be switched off."""
    members = _switched(model)
    if not members:
        return tuple(range(model.inputs.n_features))
    return tuple(sorted({column for member in members for column in member.used}))


def slopes_of(model: Reference) -> np.ndarray:
    """Of the log evidence as each column is switched on, which all draws of a model share."""
    members = _switched(model)
    return members[0].slopes if members else np.full(model.inputs.n_features, -np.inf)


def _switched(model: Reference) -> list[Switched]:
    """The model, or its draws, if columns can be switched off."""
    return [member for member in model.draws or (model,) if isinstance(member, Switched)]
