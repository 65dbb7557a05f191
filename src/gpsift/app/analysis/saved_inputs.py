"""The columns of a saved model: which of them code a category, and how a table is brought into their form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from gpsift.app.tables.tabular import Table
from gpsift.app.tables.tidy.again import Tidied, set_aside, tidied_again
from gpsift.reference.base import Reference
from gpsift.reference.ensemble import Ensemble
from gpsift.selection.units import Features


def categories_of(model: Reference | Ensemble) -> dict[str, list[str]]:
    """Which columns of a model are indicators, such as "colour=red", by the name of the column of texts."""
    groups: dict[str, list[str]] = {}
    inputs = model.inputs.sample if model.inputs.X is None else model.inputs.X
    assert inputs is not None  # a fitted model of ours has rows, or some of them
    for feature, values in zip(model.inputs.names, inputs.T, strict=True):
        name, sign, _ = feature.partition("=")
        if sign and np.isin(values, (0.0, 1.0)).all():
            groups.setdefault(name, []).append(feature)
    return groups


def dates_of(model: Reference | Ensemble) -> dict[str, list[str]]:
    """Which columns of a model are parts of a date, such as "day: month", by the name of the column of dates."""
    known = () if model.inputs.recipe is None else model.inputs.recipe.first_dates
    return {name: [feature for feature in model.inputs.names if feature.startswith(f"{name}: ")] for name in known}


def features_of(model: Reference | Ensemble) -> Features:
    """The user's columns: categories and dates are several columns of the model each."""
    categories = categories_of(model)
    return Features({**categories, **dates_of(model)}, list(categories))


def inputs_of(table: Table, model: Reference | Ensemble) -> Tidied:
    """The columns that a model was fitted on, from a table; as its own table was treated, where its file says how."""
    recipe, names = model.inputs.recipe, model.inputs.names
    tidied = _as_it_is(table.frame, names) if recipe is None else tidied_again(table.frame, names, recipe)
    return Tidied(tidied.X, (*table.steps, *tidied.steps))


def _as_it_is(frame: pd.DataFrame, features: tuple[str, ...]) -> Tidied:
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
    return Tidied(pd.DataFrame(columns, dtype=np.float64), tuple(set_aside(frame, used)))
