"""Ranking a model from a file, instead of fitting one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from gpsift.analysis.saved_inputs import features_of, inputs_of
from gpsift.cli.machine import ranking_as_json
from gpsift.cli.shown import show_one_ranking
from gpsift.cli.terminal import Output
from gpsift.reference import Reference
from gpsift.relevance import Measure
from gpsift.selection.orders import unit_ranking
from gpsift.storage import load
from gpsift.tabular import read_table


def rank_saved(model: Path, file: str | None, measure: Measure, *, json: bool, **options: Any) -> None:
    """Print the ranking of a saved model, at the rows of a table or at those that it was fitted on.

    Options are those of `rank`.
    """
    loaded = load_model(model)
    X = None if file is None else inputs_of(read_table(file).frame, loaded)
    units = features_of(loaded).units(loaded.inputs.names)
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
