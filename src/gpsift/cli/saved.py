"""Ranking a model from a file, instead of fitting one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from gpsift.analysis.ranked_again import ranked_again
from gpsift.cli.answering import tell, typed
from gpsift.cli.machine import ranked_again_as_json
from gpsift.cli.shown import show_ranked_again
from gpsift.reference import Reference
from gpsift.relevance import Measure
from gpsift.storage import load
from gpsift.tabular import read_table


def rank_saved(
    model: Path, file: str | None, measure: Measure, *, json: bool, html: Path | None, quiet: bool, **options: Any
) -> None:
    """Print the ranking of a saved model, at the rows of a table or at those that it was fitted on.

    Options are those of `rank`.
    """
    table = None if file is None else read_table(file)
    answer = ranked_again(load_model(model), table, measure, names=(str(model), file), **options)
    if html is not None:
        from gpsift.page.ranked_again import write_ranked_again

        write_ranked_again(replace(answer, command=typed()), html)
    tell(answer, ranked_again_as_json, show_ranked_again, json=json, html=html, quiet=quiet)


def load_model(model: Path) -> Reference:
    """The fitted model that a file holds."""
    if not model.is_file():
        raise FileNotFoundError(f"There is no file {model}.")
    loaded = load(model)
    if not isinstance(loaded, Reference):
        raise ValueError(f"{model} holds a {type(loaded).__name__}, which is no fitted model.")
    return loaded
