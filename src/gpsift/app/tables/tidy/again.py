"""New rows in the form that a model was fitted to: what was done with the table of the fit, done again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from gpsift._utils.recipe import Recipe
from gpsift._utils.text import listed
from gpsift.app.findings import FindingKind
from gpsift.app.tables.tabular import Step
from gpsift.app.tables.tabular.date_parts import DAY, HOUR
from gpsift.app.tables.tabular.layout import told_apart
from gpsift.app.tables.tidy import as_before, dates, holes, numbers
from gpsift.app.tables.tidy.draft import Draft
from gpsift.app.tables.tidy.plain import plain

# What is read in a new table as it was in the first one: numbers and dates that are written as texts, infinite cells.
READERS = (numbers.written_as_texts, holes.infinite, dates.written_otherwise)
NO_TARGET = ""


@dataclass(frozen=True, eq=False)
class Tidied:
    """The columns that a model takes, and what was done with a table to have them."""

    X: pd.DataFrame
    steps: tuple[Step, ...] = ()


def tidied_again(frame: pd.DataFrame, features: Sequence[str], recipe: Recipe) -> Tidied:
    """The columns that a model takes, from a table as users have it, and every step on the way to them."""
    unique, new_names = told_apart(list(map(str, frame.columns)))
    table = frame.set_axis(unique, axis=1)
    made = {feature: _source(feature, table, recipe) for feature in features}
    sources = list(dict.fromkeys(made.values()))
    names_told = [Step(FindingKind.NAMES_TOLD_APART, new_names, len(new_names))] if new_names else []
    known = _known_levels(made)
    categories = frozenset([*recipe.codes, *known])
    steps = (*names_told, *set_aside(table, sources))
    begun = Draft(plain(table[sources], categories), NO_TARGET, categories, steps=steps, recipe=recipe)
    read = _with_steps(begun, READERS)
    done = _with_steps(read, as_before.FINDERS)
    columns = {feature: _values(feature, read.frame, done.frame, made[feature], recipe) for feature in features}
    told = (*as_before.unknown_levels(done.frame, known, recipe), *as_before.dates_taken_apart(made, recipe))
    return Tidied(pd.DataFrame(columns, dtype=np.float64), (*done.steps, *told))


def set_aside(table: pd.DataFrame, used: Collection[str]) -> list[Step]:
    """That the model takes some columns of a table and no others, where there are others."""
    others = tuple(str(name) for name in table.columns if name not in used)
    return [Step(FindingKind.COLUMNS_SET_ASIDE, others, len(others))] if others else []


def _with_steps(draft: Draft, finders: Iterable[Callable[[Draft], Iterator[Step]]]) -> Draft:
    for find in finders:
        for step in find(draft):
            draft = draft.with_step(step)
    return draft


def _known_levels(made: Mapping[str, str]) -> dict[str, list[str]]:
    """The levels of each category for which a model has columns."""
    known: dict[str, list[str]] = {}
    for feature, source in made.items():
        if _is_indicator(feature, source):
            known.setdefault(source, []).append(feature.removeprefix(f"{source}="))
    return known


def _source(feature: str, table: pd.DataFrame, recipe: Recipe) -> str:
    """The user's column that a column of the model is made from."""
    if feature in recipe.marks:
        return recipe.marks[feature]
    names = [
        feature,
        feature.partition("=")[0],
        *(name for name in recipe.first_dates if feature.startswith(f"{name}: ")),
    ]
    known = [name for name in names if name in table]
    if known:
        return known[0]
    raise ValueError(
        f"The model was fitted on the column {feature!r}, which the table lacks; it has {listed(table.columns, 12)}."
    )


def _is_indicator(feature: str, source: str) -> bool:
    return feature.startswith(f"{source}=")


def _values(feature: str, read: pd.DataFrame, done: pd.DataFrame, source: str, recipe: Recipe) -> np.ndarray:
    """A column of the model, from the table as it was read, where it is about holes, or with everything done."""
    if feature in recipe.marks:
        return read[source].isna().to_numpy(dtype=float)
    column = done[source]
    if column.isna().any():
        raise ValueError(
            f"The column {source!r} has {int(column.isna().sum())} missing values; it had none, or too few, when the "
            "model was fitted, which has not learned what stands for them. Fill them in, or leave these rows out."
        )
    if _is_indicator(feature, source):
        return (column.astype(str) == feature.removeprefix(f"{source}=")).to_numpy(dtype=float)
    if source in recipe.first_dates:
        return _date_part(feature, column, recipe.first_dates[source])
    if not types.is_float_dtype(column):
        raise ValueError(
            f"The column {source!r} holds texts such as {column.iloc[0]!r}; the model was fitted on numbers."
        )
    return column.to_numpy(dtype=float)


def _date_part(feature: str, column: pd.Series[Any], first: str) -> np.ndarray:
    """Days or hours since the first date of the fit, or a part of the calendar."""
    if not types.is_datetime64_any_dtype(column):
        raise ValueError(
            f"The column {column.name!r} holds no dates, such as {column.iloc[0]!r}; the model was fitted on some."
        )
    part = feature.removeprefix(f"{column.name}: ").rstrip("'")
    since = column.to_numpy(dtype="datetime64[ns]") - np.datetime64(pd.Timestamp(first))
    calendar = {"month": column.dt.month, "weekday": column.dt.day_of_week, "hour": column.dt.hour}
    if part in calendar:
        return calendar[part].to_numpy(dtype=float)
    return np.asarray(since / (HOUR if part == "hours" else DAY), dtype=float)
