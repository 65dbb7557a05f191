"""New rows in the form that a model was fitted to: what was done with the table of the fit, done again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from gpsift.recipe import Recipe
from gpsift.tabular.date_parts import DAY, HOUR
from gpsift.tabular.layout import told_apart
from gpsift.tabular.prepare import MISSING_LEVEL
from gpsift.tidy import dates, holes, numbers
from gpsift.tidy.draft import Draft
from gpsift.tidy.levels import OTHER
from gpsift.tidy.plain import plain
from gpsift.words import listed

# What is read in a new table as it was in the first one: numbers and dates that are written as texts, infinite cells.
READERS = (numbers.written_as_texts, holes.infinite, dates.written_otherwise)
NO_TARGET = ""


def tidied_again(frame: pd.DataFrame, features: Sequence[str], recipe: Recipe) -> pd.DataFrame:
    """The columns that a model takes, from a table as users have it."""
    unique, _ = told_apart(list(map(str, frame.columns)))
    table = frame.set_axis(unique, axis=1)
    made = {feature: _source(feature, table, recipe) for feature in features}
    sources = list(dict.fromkeys(made.values()))
    categories = {made[feature] for feature in features if _is_indicator(feature, made[feature])}
    filled = _filled(_read(table[sources], frozenset([*recipe.codes, *categories])), recipe)
    columns = {feature: _values(feature, filled, made[feature], recipe) for feature in features}
    return pd.DataFrame(columns, dtype=np.float64)


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


def _read(table: pd.DataFrame, categories: frozenset[str]) -> pd.DataFrame:
    draft = Draft(plain(table, categories), NO_TARGET, categories)
    for find in READERS:
        for step in find(draft):
            draft = draft.with_step(step)
    return draft.frame


def _filled(frame: pd.DataFrame, recipe: Recipe) -> pd.DataFrame:
    """Marks of what is missing first, then what stands for it; levels that were joined are joined."""
    columns: dict[str, pd.Series[Any]] = {}
    for mark, source in recipe.marks.items():
        if source in frame:
            columns[mark] = frame[source].isna().astype(float)
    for name in frame.columns:
        column = frame[name]
        if name in recipe.fills:
            column = column.fillna(_of_kind(recipe.fills[name]))
        if name in recipe.levels:
            column = column.where(column.astype(str).isin(recipe.levels[name]) | column.isna(), OTHER)
        if name in recipe.own_level:
            column = column.where(column.notna(), MISSING_LEVEL)
        columns[str(name)] = column
    return pd.DataFrame(columns)


def _of_kind(fill: float | str) -> Any:
    return pd.Timestamp(fill) if isinstance(fill, str) else fill


def _values(feature: str, frame: pd.DataFrame, source: str, recipe: Recipe) -> np.ndarray:
    if feature in recipe.marks:
        return frame[feature].to_numpy(dtype=float)
    column = frame[source]
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
