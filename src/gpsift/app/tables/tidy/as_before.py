"""What a new table needs besides being read: holes, levels and dates as in the table of the fit, told step by step.

The draft of a new table has the recipe of the first one from its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from gpsift._utils.recipe import Recipe
from gpsift.app.findings import FindingKind
from gpsift.app.tables.tabular import Step
from gpsift.app.tables.tabular.prepare import MISSING_LEVEL
from gpsift.app.tables.tidy.changes import replaced
from gpsift.app.tables.tidy.draft import Draft
from gpsift.app.tables.tidy.levels import OTHER


def marked(draft: Draft) -> Iterator[Step]:
    """New columns that say where another one is missing; their values are taken before anything is filled in."""
    marks = {mark: name for mark, name in draft.recipe.marks.items() if _holes(draft.frame, name)}
    if marks:
        detail = {"of": list(dict.fromkeys(marks.values())), "marks": marks}
        yield Step(FindingKind.MISSING_MARKED, tuple(marks), len(marks), detail)


def filled(draft: Draft) -> Iterator[Step]:
    """Missing numbers and dates."""
    fills = {name: fill for name, fill in draft.recipe.fills.items() if _holes(draft.frame, name)}
    if fills:
        columns = {name: draft.frame[name].fillna(_of_kind(fill)) for name, fill in fills.items()}
        count = sum(_holes(draft.frame, name) for name in fills)
        change = partial(replaced, columns=columns)
        yield Step(FindingKind.FILLED_AS_BEFORE, tuple(fills), count, {"fills": fills}, change)


def joined(draft: Draft) -> Iterator[Step]:
    """Levels that were rare in the table of the fit, or that it did not have, in columns of which some were joined."""
    for name in _those_in(draft.frame, draft.recipe.levels):
        column = draft.frame[name]
        rare = column.notna() & ~column.astype(str).isin([*draft.recipe.levels[name], OTHER])
        if rare.any():
            detail = {"text": str(column[rare].iloc[0]), "level": OTHER}
            change = partial(replaced, columns={name: column.mask(rare, OTHER)})
            yield Step(FindingKind.LEVELS_JOINED_AS_BEFORE, (name,), int(rare.sum()), detail, change)


def own_level(draft: Draft) -> Iterator[Step]:
    """Missing values of a category that had some."""
    for name in _those_in(draft.frame, draft.recipe.own_level):
        column = draft.frame[name]
        if _holes(draft.frame, name):
            change = partial(replaced, columns={name: column.where(column.notna(), MISSING_LEVEL)})
            detail = {"column": name}
            yield Step(FindingKind.FILLED_WITH_LEVEL, (name,), _holes(draft.frame, name), detail, change)


FINDERS: Sequence[Callable[[Draft], Iterator[Step]]] = (marked, filled, joined, own_level)


def unknown_levels(frame: pd.DataFrame, known: Mapping[str, Sequence[str]], recipe: Recipe) -> Iterator[Step]:
    """Levels that the table of the fit did not have, by the levels for which the model has columns.

    Of two levels one has a column, and what is not that one is taken for the other.
    """
    for name, levels in known.items():
        base = recipe.base_levels.get(name, ())
        if len(levels) + len(base) < 2:
            continue  # files that do not say what the second level was
        column = frame[name]
        new = column[column.notna() & ~column.astype(str).isin([*levels, *base])]
        if len(new):
            detail = {"text": str(new.iloc[0]), "taken_for": base[0] if base else None}
            yield Step(FindingKind.LEVELS_UNKNOWN, (name,), len(new), detail)


def dates_taken_apart(made: Mapping[str, str], recipe: Recipe) -> Iterator[Step]:
    """The parts of each date; `made` says which of the user's columns each column of the model is made from."""
    parts = {
        name: [feature.removeprefix(f"{name}: ") for feature in made if feature.startswith(f"{name}: ")]
        for name in recipe.first_dates
        if name in made.values()
    }
    if parts:
        yield Step(FindingKind.DATES_TAKEN_APART, tuple(parts), len(parts), {"parts": parts})


def _those_in(frame: pd.DataFrame, names: Sequence[str] | Mapping[str, Any]) -> list[str]:
    return [name for name in names if name in frame]


def _holes(frame: pd.DataFrame, name: str) -> int:
    return int(frame[name].isna().sum()) if name in frame else 0


def _of_kind(fill: float | str) -> Any:
    return pd.Timestamp(fill) if isinstance(fill, str) else fill
