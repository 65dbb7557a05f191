"""What each step of a plan learns from the table, for rows that come later."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import pandas as pd

from gpsift._utils.recipe import Recipe
from gpsift.app.findings import FindingKind
from gpsift.app.tables.tabular import Step


def learned(recipe: Recipe, step: Step, frame: pd.DataFrame) -> Recipe:
    """The recipe with what a step has learned from the table that it is done with."""
    learn = LEARNED.get(step.kind)
    return recipe if learn is None else learn(recipe, step, frame)


def with_fills(recipe: Recipe, values: Mapping[str, float | pd.Timestamp]) -> Recipe:
    """With what stands for missing values of some columns."""
    plain = {name: str(each) if isinstance(each, pd.Timestamp) else float(each) for name, each in values.items()}
    return replace(recipe, fills={**recipe.fills, **plain})


def with_dates(recipe: Recipe, frame: pd.DataFrame, names: Iterable[str]) -> Recipe:
    """With the first date of some columns."""
    return replace(recipe, first_dates={name: str(frame[name].min()) for name in names})


def with_base_levels(recipe: Recipe, frame: pd.DataFrame, names: Iterable[str]) -> Recipe:
    """With the first level of categories that have two, for which one column is made."""
    levels = {name: sorted(set(frame[name].astype(str))) for name in names}
    return replace(recipe, base_levels={name: (two[0],) for name, two in levels.items() if len(two) == 2})


def _medians(recipe: Recipe, step: Step, frame: pd.DataFrame) -> Recipe:
    return with_fills(recipe, {name: frame[name].median() for name in step.columns})


def _marks(recipe: Recipe, step: Step, _: pd.DataFrame) -> Recipe:
    return replace(recipe, marks=dict(step.detail["marks"]))


def _own_level(recipe: Recipe, step: Step, _: pd.DataFrame) -> Recipe:
    return replace(recipe, own_level=(*recipe.own_level, *step.columns))


def _levels(recipe: Recipe, step: Step, frame: pd.DataFrame) -> Recipe:
    after, joined = step.change(frame), {step.detail["level"]}
    kept = {name: tuple(sorted(set(after[name].dropna().astype(str)) - joined)) for name in step.columns}
    return replace(recipe, levels=kept)


LEARNED: Mapping[FindingKind, Callable[[Recipe, Step, pd.DataFrame], Recipe]] = {
    FindingKind.FILLED_WITH_MEDIAN: _medians,
    FindingKind.MISSING_MARKED: _marks,
    FindingKind.FILLED_WITH_LEVEL: _own_level,
    FindingKind.LEVELS_JOINED: _levels,
}
