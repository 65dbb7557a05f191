"""Ranking a model from a file, instead of fitting one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer

from gpsift.cli.machine import ranking_as_json
from gpsift.cli.shown import show_one_ranking
from gpsift.cli.terminal import Output
from gpsift.reference import Reference
from gpsift.relevance import Measure
from gpsift.selection.orders import unit_ranking
from gpsift.selection.units import Features
from gpsift.storage import load
from gpsift.tabular import read_table


def rank_saved(model: Path, file: str | None, measure: Measure, *, json: bool, **options: Any) -> None:
    """Print the ranking of a saved model, at the rows of a table or at those that it was fitted on.

    Options are those of `rank`.
    """
    loaded = load_model(model)
    X = None if file is None else inputs_of(read_table(file).frame, loaded.inputs.names)
    groups = categories_of(loaded)
    units = Features.with_indicators(groups).units(loaded.inputs.names)
    ranking = unit_ranking(loaded, units, measure, X, **options)
    if json:
        typer.echo(ranking_as_json(ranking, source=str(model)))
    else:
        show_one_ranking(ranking, f"{model}, {len(ranking.points)} rows", Output())


def load_model(model: Path) -> Reference:
    """The fitted model that a file holds."""
    if not model.is_file():
        raise FileNotFoundError(f"There is no file {model}.")
    loaded = load(model)
    if not isinstance(loaded, Reference):
        raise ValueError(f"{model} holds a {type(loaded).__name__}, which is no fitted model.")
    return loaded


def categories_of(model: Reference) -> dict[str, list[str]]:
    """Which columns of a model are indicators, such as "colour=red", by the name of the column of texts."""
    groups: dict[str, list[str]] = {}
    inputs = model.inputs.sample if model.inputs.X is None else model.inputs.X
    assert inputs is not None  # a fitted model of ours has rows, or some of them
    for feature, values in zip(model.inputs.names, inputs.T, strict=True):
        name, sign, _ = feature.partition("=")
        if sign and np.isin(values, (0.0, 1.0)).all():
            groups.setdefault(name, []).append(feature)
    return groups


def inputs_of(frame: pd.DataFrame, features: tuple[str, ...]) -> pd.DataFrame:
    """The columns that a model was fitted on; indicators such as "colour=red" are made from the column of texts."""
    columns: dict[str, Any] = {}
    for feature in features:
        name, _, level = feature.partition("=")
        if feature in frame:
            numbers = pd.to_numeric(frame[feature], errors="coerce")
            if numbers.isna().any():
                raise ValueError(
                    f"The column {feature!r} has missing values or texts; the model was fitted on numbers."
                )
            columns[feature] = numbers.to_numpy(dtype=float)
        elif level and name in frame:
            columns[feature] = (frame[name].astype(str) == level).to_numpy(dtype=float)
        else:
            known = ", ".join(map(str, frame.columns[:12]))
            raise ValueError(f"The model was fitted on the column {feature!r}, which the table lacks; it has {known}.")
    return pd.DataFrame(columns, dtype=np.float64)
