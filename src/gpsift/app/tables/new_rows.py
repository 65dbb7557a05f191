"""Bring new rows into the form of the table that a model was fitted to, by the recipe of that table.

The recipe holds the fill values, levels and first dates of the table of the fit. Texts are read as numbers and dates by
the steps of `steps.py`; the new table changes nothing in the recipe.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from pandas.api import types

from gpsift._utils.recipe import CleaningRecipe
from gpsift._utils.text import join_names
from gpsift.app.findings import FindingKind
from gpsift.app.tables.columns import date_part, to_basic_types
from gpsift.app.tables.layout import rename_repeated
from gpsift.app.tables.steps import (
    OTHER,
    CleaningState,
    CleaningStep,
    clear_infinite,
    fill,
    fill_level,
    parse_dates,
    parse_numbers,
    set_columns,
)

NO_TARGET = ""


@dataclass(frozen=True, eq=False)
class CleanedRows:
    """New rows in the form that a model takes, and the steps that were done."""

    X: pd.DataFrame
    steps: tuple[CleaningStep, ...] = ()


def apply_recipe(frame: pd.DataFrame, features: Sequence[str], recipe: CleaningRecipe) -> CleanedRows:
    """Turn a table into the features of a model, by the recipe of the table that the model was fitted to."""
    table, renamed = rename_repeated(frame)
    source_of = {feature: _source(feature, table, recipe) for feature in features}
    sources = list(dict.fromkeys(source_of.values()))
    known = _known_levels(source_of)
    codes = frozenset([*recipe.codes, *known])
    steps = (*renamed, *note_unused_columns(table, sources))
    state = CleaningState(to_basic_types(table[sources], codes), NO_TARGET, codes, steps=steps, recipe=recipe)
    read = state.apply((parse_numbers, clear_infinite, parse_dates))
    done = read.apply((_note_indicators, _fill_as_learned, _join_levels_as_learned, _fill_own_level))
    columns = {name: _feature(name, read.frame, done.frame, source, recipe) for name, source in source_of.items()}
    notes = (*_note_unknown_levels(done.frame, known, recipe), *_note_date_features(source_of, recipe))
    return CleanedRows(pd.DataFrame(columns, dtype=np.float64), (*done.steps, *notes))


def note_unused_columns(table: pd.DataFrame, used: Collection[str]) -> Iterator[CleaningStep]:
    """Yield the step that sets aside the columns that a model does not take, if there are any."""
    others = tuple(str(name) for name in table.columns if name not in used)
    if others:
        yield CleaningStep(FindingKind.COLUMNS_SET_ASIDE, others, len(others))


def _source(feature: str, table: pd.DataFrame, recipe: CleaningRecipe) -> str:
    """Return the column of the table that a feature of the model is made from."""
    if feature in recipe.marks:
        return recipe.marks[feature]
    dates = [name for name in recipe.first_dates if feature.startswith(f"{name}: ")]
    for name in (feature, feature.partition("=")[0], *dates):
        if name in table:
            return name
    raise ValueError(
        f"The model was fitted on the column {feature!r}, which the table lacks; it has "
        f"{join_names(table.columns, 12)}."
    )


def _known_levels(source_of: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the levels for which the model has an indicator, by category."""
    known: dict[str, list[str]] = {}
    for feature, source in source_of.items():
        if feature.startswith(f"{source}="):
            known.setdefault(source, []).append(feature.removeprefix(f"{source}="))
    return known


def _feature(feature: str, read: pd.DataFrame, done: pd.DataFrame, source: str, recipe: CleaningRecipe) -> np.ndarray:
    """Return a feature, from the table before (`read`) and after (`done`) missing values are filled in."""
    if feature in recipe.marks:
        return read[source].isna().to_numpy(dtype=float)
    column = done[source]
    if column.isna().any():
        raise ValueError(
            f"The column {source!r} has {int(column.isna().sum())} missing values; it had none, or too few, when the "
            "model was fitted, which has not learned what stands for them. Fill them in, or leave these rows out."
        )
    if feature.startswith(f"{source}="):
        return (column.astype(str) == feature.removeprefix(f"{source}=")).to_numpy(dtype=float)
    if source in recipe.first_dates:
        if not types.is_datetime64_any_dtype(column):
            raise ValueError(
                f"The column {source!r} holds no dates, such as {column.iloc[0]!r}; the model was fitted on some."
            )
        part = feature.removeprefix(f"{source}: ").rstrip("'")
        return date_part(column, part, pd.Timestamp(recipe.first_dates[source]))
    if not types.is_float_dtype(column):
        raise ValueError(
            f"The column {source!r} holds texts such as {column.iloc[0]!r}; the model was fitted on numbers."
        )
    return column.to_numpy(dtype=float)


def _note_indicators(state: CleaningState) -> Iterator[CleaningStep]:
    """Note which indicators of missing values are not all 0; `_feature` computes them."""
    marks = {mark: name for mark, name in state.recipe.marks.items() if _n_missing(state.frame, name)}
    if marks:
        detail = {"of": list(dict.fromkeys(marks.values())), "marks": marks}
        yield CleaningStep(FindingKind.MISSING_MARKED, tuple(marks), len(marks), detail)


def _fill_as_learned(state: CleaningState) -> Iterator[CleaningStep]:
    """Fill in missing numbers and dates by the values of the recipe."""
    frame = state.frame
    fills = {name: value for name, value in state.recipe.fills.items() if _n_missing(frame, name)}
    count = sum(_n_missing(frame, name) for name in fills)
    yield from set_columns(FindingKind.FILLED_AS_BEFORE, fill(frame, fills), {"fills": fills}, count)


def _join_levels_as_learned(state: CleaningState) -> Iterator[CleaningStep]:
    """Join levels that were rare in the table of the fit, or that it did not have."""
    for name, levels in state.recipe.levels.items():
        if name not in state.frame:
            continue
        column = state.frame[name]
        rare = column.notna() & ~column.astype(str).isin([*levels, OTHER])
        if rare.any():
            detail = {"text": str(column[rare].iloc[0]), "level": OTHER}
            columns = {name: column.mask(rare, OTHER)}
            yield from set_columns(FindingKind.LEVELS_JOINED_AS_BEFORE, columns, detail, int(rare.sum()))


def _fill_own_level(state: CleaningState) -> Iterator[CleaningStep]:
    """Make missing values of a category a level, if the table of the fit had some."""
    for name in state.recipe.own_level:
        if name in state.frame:
            yield from fill_level(state.frame[name])


def _note_unknown_levels(
    frame: pd.DataFrame, known: Mapping[str, Sequence[str]], recipe: CleaningRecipe
) -> Iterator[CleaningStep]:
    """Note levels that the table of the fit did not have.

    A category of two levels has one indicator, so any unknown level is encoded like the one without an indicator.
    """
    for name, levels in known.items():
        base = recipe.base_levels.get(name, ())
        if len(levels) + len(base) < 2:
            continue  # an older file, which does not say what the second level was
        column = frame[name]
        new = column[column.notna() & ~column.astype(str).isin([*levels, *base])]
        if len(new):
            detail = {"text": str(new.iloc[0]), "taken_for": base[0] if base else None}
            yield CleaningStep(FindingKind.LEVELS_UNKNOWN, (name,), len(new), detail)


def _note_date_features(source_of: Mapping[str, str], recipe: CleaningRecipe) -> Iterator[CleaningStep]:
    """Note which features encode each date."""
    parts = {
        name: [feature.removeprefix(f"{name}: ") for feature in source_of if feature.startswith(f"{name}: ")]
        for name in recipe.first_dates
        if name in source_of.values()
    }
    if parts:
        yield CleaningStep(FindingKind.DATES_TAKEN_APART, tuple(parts), len(parts), {"parts": parts})


def _n_missing(frame: pd.DataFrame, name: str) -> int:
    return int(frame[name].isna().sum()) if name in frame else 0
