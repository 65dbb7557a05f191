"""Commands about saved models and answers: ``gpsift compare``, ``gpsift power`` and ``gpsift rank --model``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from gpsift.app.analysis import compare as comparison
from gpsift.app.analysis import saved_model
from gpsift.app.cli import options as o
from gpsift.app.cli.json_answer import comparison_as_json, power_as_json, saved_ranking_as_json
from gpsift.app.cli.outputs import (
    check_writable,
    command_line,
    interruption_note,
    print_answer,
    print_errors,
    print_warnings,
    save_figure,
)
from gpsift.app.cli.terminal_answer import show_comparison, show_power, show_saved_ranking
from gpsift.app.tables.read import read_table
from gpsift.reference.base import Reference
from gpsift.reference.ensemble import Ensemble
from gpsift.relevance import Measure
from gpsift.selection import power_analysis

# The first bytes of a saved file, which is a ZIP archive.
ZIP_MAGIC = b"PK"


def print_saved_ranking(
    model: Path, file: str | None, measure: Measure, run: o.RunOptions, *, html: Path | None, intervals: bool
) -> None:
    """Print the ranking of a saved model, at the rows of a table or at those that it was fitted on."""
    table = None if file is None else read_table(file)
    names = (str(model), file)
    answer = saved_model.rank_model(load_model(model), table, measure, names=names, intervals=intervals, seed=run.seed)
    if html is not None:
        from gpsift.app.html.answer_pages import write_saved_ranking

        write_saved_ranking(replace(answer, command=command_line()), html)
    print_answer(answer, saved_ranking_as_json, show_saved_ranking, run, html=html)


def load_model(model: Path) -> Reference | Ensemble:
    """Load the fitted model that a file holds."""
    check_saved(model)
    from gpsift.io.files import load  # it takes a while to load

    loaded = load(model)
    if not isinstance(loaded, Reference | Ensemble):
        raise ValueError(f"{model} holds a {type(loaded).__name__}, which is no fitted model.")
    return loaded


def check_saved(file: Path) -> None:
    """Refuse a path that is no file, and a file that this package did not save, such as a table."""
    if not file.is_file():
        raise FileNotFoundError(f"There is no file {file}.")
    with file.open("rb") as stream:
        if stream.read(len(ZIP_MAGIC)) != ZIP_MAGIC:
            raise ValueError(
                f"{file} is no saved model. `gpsift rank FILE --target COLUMN --save model.gpsift` fits one to a table "
                "and keeps it."
            )


Saved = Annotated[Path, typer.Argument(help="A saved model or ranking, such as rank --save writes.")]


@o.flatten
def compare(
    *,
    first: Saved,
    second: Saved,
    scoring: o.MeasureOptions,
    intervals: o.Intervals = None,
    html: o.Html = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw both scores of each column into this file, such as two.png.")
    ] = None,
    run: o.RunOptions,
) -> None:
    """Compare two saved answers: before and after, with and without a column, of two targets.

    Example: gpsift compare before.gpsift after.gpsift
    """
    check_writable(html=html, plot=plot)
    measure = scoring.make()
    with print_errors(), print_warnings(run.quiet):
        for file in (first, second):
            check_saved(file)
        answer = comparison.compare(first, second, measure, intervals=intervals, seed=run.seed)
        if html is not None:
            from gpsift.app.html.answer_pages import write_comparison

            write_comparison(answer, html, command=command_line(), seed=run.seed)
        save_figure(answer.plot, plot, bbox_inches="tight")
        print_answer(answer, comparison_as_json, show_comparison, run, html=html)


@dataclass(frozen=True)
class StudyOptions(o.JobOptions):
    """Options of `power`, whose checkpoint is a file."""

    checkpoint: Annotated[Path | None, typer.Option(help="Keep finished studies in this file, and go on there.")] = None


@o.flatten
def power(
    *,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A saved model, such as rank --save writes.")],
    n: Annotated[list[int], typer.Option(help="Rows of a study; may be given several times.")] = [],  # noqa: B006
    rate: o.Rate = 0.1,
    chance: Annotated[float, typer.Option(help="With which a column should be found.")] = 0.8,
    studies: Annotated[int, typer.Option(min=2, help="Studies that are made up for each number of rows.")] = 50,
    folds: Annotated[int, typer.Option(min=2, help="Parts of the rows, each tested by a model of the others.")] = 5,
    search: Annotated[
        bool, typer.Option(help="Search hyperparameters anew in every study; without, quick guesses.")
    ] = True,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the shares over the rows into this file, such as power.png.")
    ] = None,
    run: StudyOptions,
) -> None:
    """Say how many rows a study needs until the columns that a model uses are found.

    Example: gpsift power model.gpsift --chance 0.8
    """
    check_writable(plot=plot)
    with print_errors(interruption_note(run.checkpoint)), print_warnings(run.quiet):
        loaded = load_model(model)
        answer = power_analysis.power(
            power_analysis.read_model(loaded),
            saved_model.user_columns(loaded),
            n=n or None,
            rate=rate,
            chance=chance,
            studies=studies,
            folds=folds,
            search=search,
            seed=run.seed,
            work=run.work,
        )
        save_figure(answer.plot, plot, bbox_inches="tight")
        print_answer(
            answer,
            lambda power: power_as_json(power, str(model)),
            lambda power, console: show_power(power, str(model), console),
            run,
        )
