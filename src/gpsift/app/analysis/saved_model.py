"""Rank a saved model, at the rows that it was fitted to or at the rows of another table.

`table_to_inputs` makes the inputs of the model from a table; `user_columns` says which features code one column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from gpsift.app.analysis.analysis import MOST_FIRST, ShownRankings
from gpsift.app.findings import Finding
from gpsift.app.tables.new_rows import CleanedRows, apply_recipe, note_unused_columns
from gpsift.app.tables.steps import RawTable
from gpsift.reference.base import Reference
from gpsift.reference.ensemble import Ensemble
from gpsift.relevance import Measure
from gpsift.relevance.ranking import Ranking
from gpsift.selection.data import Features
from gpsift.selection.orders import rank_units


@dataclass(frozen=True, eq=False)
class SavedModelRanking(ShownRankings):
    """The ranking of a saved model, as the command line and the page show it."""

    model: str  # its file
    table: str | None  # the file of the rows; None for the rows of the fit
    leading: Ranking
    cautions: tuple[Finding, ...] = ()  # with the steps of cleaning the table
    seed: int = 0
    command: str | None = None
    seconds: float = 0.0

    @property
    def source(self) -> str:
        return self.model if self.table is None else f"{self.table}, by {self.model}"

    @property
    def target(self) -> str:
        """The target in words: a model has no name for it."""
        return f"the target of {self.model}"

    @property
    def n_rows(self) -> int:
        return len(self.leading.points)

    @cached_property
    def shown_rankings(self) -> Mapping[str, Ranking]:
        """The ranking of the columns that are shown, by the name of the measure."""
        shown = self.leading.order[: self.leading.n_shown].tolist()
        ranking = self.leading.of_columns(shown, [self.leading.names[j] for j in shown])
        return {self.leading.measure.split("(")[0]: ranking}

    @property
    def n_first(self) -> int:
        """The number k in "among the first k", at most five."""
        return max(1, min(MOST_FIRST, len(self.leading.names) // 2))


def rank_model(
    model: Reference | Ensemble,
    table: RawTable | None,
    measure: Measure,
    *,
    names: tuple[str, str | None],
    **options: Any,
) -> SavedModelRanking:
    """Rank a saved model. `names` are the files of model and table; the options are those of `rank`."""
    new = None if table is None else table_to_inputs(table, model)
    units = user_columns(model).units(model.inputs.names)
    ranking = rank_units(model, units, measure, None if new is None else new.X, **options)
    cautions = () if new is None else tuple(step.finding for step in new.steps)
    return SavedModelRanking(*names, ranking, cautions, options.get("seed", 0))


def user_columns(model: Reference | Ensemble) -> Features:
    """Return the user's columns as units of features: a category or a date has several features.

    Indicators such as "colour=red" belong to a category, features such as "day: month" to a date.
    """
    names, recipe = model.inputs.names, model.inputs.recipe
    inputs = model.inputs.sample if model.inputs.X is None else model.inputs.X
    assert inputs is not None  # a fitted GP keeps its rows, or a sample of them
    categories: dict[str, list[str]] = {}
    for feature, values in zip(names, inputs.T, strict=True):
        name, sign, _ = feature.partition("=")
        if sign and np.isin(values, (0.0, 1.0)).all():
            categories.setdefault(name, []).append(feature)
    dates = {
        name: [feature for feature in names if feature.startswith(f"{name}: ")]
        for name in (() if recipe is None else recipe.first_dates)
    }
    return Features({**categories, **dates}, list(categories))


def table_to_inputs(table: RawTable, model: Reference | Ensemble) -> CleanedRows:
    """Turn a table into the features of a model, by the recipe of the model if its file has one."""
    recipe, names = model.inputs.recipe, model.inputs.names
    rows = _encode_without_recipe(table.frame, names) if recipe is None else apply_recipe(table.frame, names, recipe)
    return CleanedRows(rows.X, (*table.steps, *rows.steps))


def _encode_without_recipe(frame: pd.DataFrame, features: tuple[str, ...]) -> CleanedRows:
    """Copy columns of numbers, and make indicators such as "colour=red" from columns of texts."""
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
