"""In which order units enter: by a measure on the full model, by re-ranking after every removal, or by projection."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from gpsift.gp import GP, DrawnGP, FittedGP
from gpsift.notices import Notices, messages
from gpsift.reference import MissingCapability, Reference
from gpsift.relevance import Measure, rank, read_measure
from gpsift.results import Ranking
from gpsift.selection.data import Data
from gpsift.selection.forward import forward_projection
from gpsift.selection.submodels import Parent, Result, as_parent, fit_submodel, score
from gpsift.selection.units import Units

PROJECTION = "projection"


def read_order(measure: Any) -> Measure | str:
    """A measure, or "projection", as users ask for it."""
    return PROJECTION if measure == PROJECTION else read_measure(measure, PROJECTION)


def label_of(measure: Measure | str) -> str:
    """The measure as one would type it."""
    return measure if isinstance(measure, str) else measure.label


def lead(
    train: Data,
    test: Data | None,
    model: GP,
    units: Units,
    measure: Measure | str,
    order: Sequence[int] | None,
    largest: int,
    fitted: FittedGP | DrawnGP | None = None,
) -> Result:
    """Fit the full model unless it is there, score it, and put the units in order, unless their order is given."""
    with Notices() as caught:
        columns = units.columns_of(range(len(units)))
        if fitted is None:
            fitted = fit_submodel(train, model, columns, parent=None, starts=None)
        result = {**score(fitted, columns, test), "parent": as_parent(fitted, model.hyper)}
        if order is not None:
            result["order"] = list(order)
        elif measure == PROJECTION:
            if isinstance(fitted, DrawnGP):
                raise ValueError(
                    '"projection" needs one fit: use GP(hyper=MAP()) as `model`, and the draws as `reference`.'
                )
            path = forward_projection(fitted, max_size=largest, force=_forced_names(units), groups=units.groups)
            chosen = [units.names.index(name) for name in path.order]
            result["order"] = [*chosen, *(unit for unit in range(len(units)) if unit not in chosen)]
            result["kl"] = path.kl
        else:
            assert isinstance(measure, Measure)
            result["scores"] = unit_scores(fitted, units, measure)
            result["order"] = units.ordered(result["scores"])
    return {**result, "notices": messages(caught)}


def follow(
    train: Data, test: Data | None, model: GP, columns: Sequence[int], parent: Parent | None, starts: int | None
) -> Result:
    """Fit and score one submodel."""
    with Notices() as caught:
        fitted = fit_submodel(train, model, columns, parent=parent, starts=starts)
        result = score(fitted, columns, test)
    return {**result, "notices": messages(caught)}


def descend(
    train: Data,
    test: Data | None,
    model: GP,
    units: Units,
    kept: Sequence[int],
    measure: Measure,
    parent: Parent | None,
    starts: int | None,
    fitted: FittedGP | DrawnGP | None = None,
) -> Result:
    """Fit the submodel on the units that are left unless it is there, score it, and name the next to go."""
    with Notices() as caught:
        columns = units.columns_of(kept)
        if fitted is None:
            fitted = fit_submodel(train, model, columns, parent=parent, starts=starts)
        result = {**score(fitted, columns, test), "parent": as_parent(fitted, model.hyper)}
        free = [place for place, unit in enumerate(kept) if unit not in units.forced]
        if free:
            left = _only(units, kept, columns)
            scores = unit_scores(fitted, left, measure)
            result["drop"] = kept[min(free, key=lambda place: scores[place])]
    return {**result, "notices": messages(caught)}


def unit_ranking(fitted: Reference, units: Units, measure: Measure, X: Any = None) -> Ranking:
    """Each unit as a whole, a category by its levels or as a group; as its best column by a measure without either."""
    categorical = [units.names[unit] for unit in units.categorical]
    for levels in (categorical, []) if categorical else ([],):
        with suppress(MissingCapability):
            return rank(fitted, X, measure, groups=units.groups, categorical=levels)
    single = rank(fitted, X, measure)
    best = [max(columns, key=lambda column: single.scores[column]) for columns in units.columns]
    return single.of_columns(best, units.names)


def unit_scores(fitted: FittedGP | DrawnGP, units: Units, measure: Measure) -> list[float]:
    """The score of each unit."""
    return [float(value) for value in unit_ranking(fitted, units, measure).scores]


def _only(units: Units, kept: Sequence[int], columns: Sequence[int]) -> Units:
    """The units that are left, in the columns of a submodel."""
    place = {column: number for number, column in enumerate(columns)}
    members = [tuple(place[column] for column in units.columns[unit]) for unit in kept]
    names = [units.names[unit] for unit in kept]
    groups = None
    if units.groups is not None:
        groups = {name: list(where) for name, where in zip(names, members, strict=True) if name in units.groups}
    categorical = tuple(number for number, unit in enumerate(kept) if unit in units.categorical)
    return Units(tuple(names), tuple(members), groups=groups, categorical=categorical)


def _forced_names(units: Units) -> list[str]:
    return [units.names[unit] for unit in units.forced]
