"""Ranking a model from a file, instead of fitting one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from gpsift.app.analysis.ranked_again import ranked_again
from gpsift.app.cli.answering import tell, typed
from gpsift.app.cli.machine import ranked_again_as_json
from gpsift.app.cli.shown import show_ranked_again
from gpsift.app.tables.tabular import read_table
from gpsift.reference.base import Reference
from gpsift.reference.ensemble import Ensemble
from gpsift.relevance import Measure

# Of every file that was saved, which is a ZIP archive.
BEGINNING = b"PK"


def rank_saved(
    model: Path, file: str | None, measure: Measure, *, json: bool, html: Path | None, quiet: bool, **options: Any
) -> None:
    """Print the ranking of a saved model, at the rows of a table or at those that it was fitted on.

    Options are those of `rank`.
    """
    table = None if file is None else read_table(file)
    answer = ranked_again(load_model(model), table, measure, names=(str(model), file), **options)
    if html is not None:
        from gpsift.app.html.ranked_again import write_ranked_again

        write_ranked_again(replace(answer, command=typed()), html)
    tell(answer, ranked_again_as_json, show_ranked_again, json=json, html=html, quiet=quiet)


def load_model(model: Path) -> Reference | Ensemble:
    """The fitted model that a file holds."""
    check_saved(model)
    from gpsift.io import load  # knows every class that is kept, which takes a while to load

    loaded = load(model)
    if not isinstance(loaded, Reference | Ensemble):
        raise ValueError(f"{model} holds a {type(loaded).__name__}, which is no fitted model.")
    return loaded


def check_saved(file: Path) -> None:
    """Refuse what is no file, and what was never saved by this package, such as the table of a model."""
    if not file.is_file():
        raise FileNotFoundError(f"There is no file {file}.")
    with file.open("rb") as stream:
        if stream.read(len(BEGINNING)) != BEGINNING:
            raise ValueError(
                f"{file} is no saved model. `gpsift rank FILE --target COLUMN --save model.gpsift` fits one to a table "
                "and keeps it."
            )
