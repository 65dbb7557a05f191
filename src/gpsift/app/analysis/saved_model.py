"""A saved model ranked again: at the rows that it was fitted on, or at those of another table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from gpsift.app.analysis.analysis import MOST_FIRST
from gpsift.app.analysis.cautions import column_notes, find_discrepancy
from gpsift.app.findings import Finding
from gpsift.app.tables.new_rows import CleanedRows, apply_recipe, note_unused_columns
from gpsift.app.tables.steps import RawTable
from gpsift.reference.base import Reference
from gpsift.relevance import Measure
from gpsift.relevance.ranking import Ranking
from gpsift.selection.orders import unit_ranking
from gpsift.selection.units import Features


@dataclass(frozen=True, eq=False)
class SavedModelRanking:
    """What is shown of it.

    Attributes
    ----------
    model : str
        The file of the model.
    table : str or None
        That of the rows; None where they are those of the fit.
    leading : Ranking
        Of the user's columns.
    cautions : tuple of Finding
        What a reader should know, what was done with the table among it.
    seed : int
    command : str or None
        What to type to have the same again.
    """

    model: str
    table: str | None
    leading: Ranking
    cautions: tuple[Finding, ...] = ()
    seed: int = 0
    command: str | None = None
    seconds: float = 0.0

    @property
    def source(self) -> str:
        return self.model if self.table is None else f"{self.table}, by {self.model}"

    @property
    def target(self) -> str:
        """What is explained; a model knows no name for it."""
        return f"the target of {self.model}"

    @property
    def n_rows(self) -> int:
        return len(self.leading.points)

    @cached_property
    def shown_rankings(self) -> Mapping[str, Ranking]:
        """The ranking of the columns that deserve a line each, by the name of its measure."""
        shown = self.leading.order[: self.leading.n_told].tolist()
        told = self.leading.of_columns(shown, [self.leading.names[j] for j in shown])
        return {self.leading.measure.split("(")[0]: told}

    @property
    def shown(self) -> Ranking:
        """The same ranking without its name."""
        return next(iter(self.shown_rankings.values()))

    @cached_property
    def odd_columns(self) -> tuple[Finding, ...]:
        """What is odd about single columns, in their order."""
        return column_notes(self.shown_rankings)

    @property
    def n_first(self) -> int:
        """The k of "among the first k", at most five."""
        return max(1, min(MOST_FIRST, len(self.leading.names) // 2))


def rank_saved(
    model: Reference, table: RawTable | None, measure: Measure, *, names: tuple[str, str | None], **options: Any
) -> SavedModelRanking:
    """Rank a saved model; `names` are those of the files of model and table, and options those of `rank`."""
    tidied = None if table is None else table_to_inputs(table, model)
    units = user_columns(model).units(model.inputs.names)
    ranking = unit_ranking(model, units, measure, None if tidied is None else tidied.X, **options)
    steps = () if tidied is None else (step.finding for step in tidied.steps)
    cautions = (*find_discrepancy(ranking), *steps)
    return SavedModelRanking(*names, ranking.with_other_way(), cautions, options.get("seed", 0))


def _find_categories(model: Reference) -> dict[str, list[str]]:
    """Which columns of a model are indicators, such as "colour=red", by the name of the column of texts."""
    groups: dict[str, list[str]] = {}
    inputs = model.inputs.sample if model.inputs.X is None else model.inputs.X
    assert inputs is not None  # a fitted model of ours has rows, or some of them
    for feature, values in zip(model.inputs.names, inputs.T, strict=True):
        name, sign, _ = feature.partition("=")
        if sign and np.isin(values, (0.0, 1.0)).all():
            groups.setdefault(name, []).append(feature)
    return groups


def _find_dates(model: Reference) -> dict[str, list[str]]:
    """Which columns of a model are parts of a date, such as "day: month", by the name of the column of dates."""
    known = () if model.inputs.recipe is None else model.inputs.recipe.first_dates
    return {name: [feature for feature in model.inputs.names if feature.startswith(f"{name}: ")] for name in known}


def user_columns(model: Reference) -> Features:
    """The user's columns: categories and dates are several columns of the model each."""
    categories = _find_categories(model)
    return Features({**categories, **_find_dates(model)}, list(categories))


def table_to_inputs(table: RawTable, model: Reference) -> CleanedRows:
    """The columns that a model was fitted on, from a table; as its own table was treated, where its file says how."""
    recipe, names = model.inputs.recipe, model.inputs.names
    tidied = _without_recipe(table.frame, names) if recipe is None else apply_recipe(table.frame, names, recipe)
    return CleanedRows(tidied.X, (*table.steps, *tidied.steps))


def _without_recipe(frame: pd.DataFrame, features: tuple[str, ...]) -> CleanedRows:
    """Numbers as they are; indicators such as "colour=red" are made from the column of texts."""
    columns: dict[str, Any] = {}
    used = []
    for feature in features:
        name, _, level = feature.partition("=")
        if feature in frame:
            numbers = pd.to_numeric(frame[feature], errors="coerce")
            if numbers.isna().any():
                raise ValueError(
                    f"The column {feature!r} has missing values or texts; the model was fitted on numbers."
                )
            columns[feature] = numbers.to_numpy(dtype=float)
            used.append(feature)
        elif level and name in frame:
            columns[feature] = (frame[name].astype(str) == level).to_numpy(dtype=float)
            used.append(name)
        else:
            known = ", ".join(map(str, frame.columns[:12]))
            raise ValueError(f"The model was fitted on the column {feature!r}, which the table lacks; it has {known}.")
    return CleanedRows(pd.DataFrame(columns, dtype=np.float64), tuple(note_unused_columns(frame, used)))
