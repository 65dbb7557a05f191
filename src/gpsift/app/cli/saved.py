"""Commands on saved models and answers: ``gpsift compare``, ``gpsift power`` and ``gpsift rank --model``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gpsift._utils.parallel import Work
from gpsift.app.analysis.compare import Comparison
from gpsift.app.analysis.compare import compare as compared
from gpsift.app.analysis.saved_model import rank_saved as ranked_again
from gpsift.app.analysis.saved_model import user_columns
from gpsift.app.cli import options as o
from gpsift.app.cli.json_answer import comparison_as_json, power_as_json, ranked_again_as_json
from gpsift.app.cli.outputs import (
    check_writable,
    command_line,
    kept_fits,
    print_answer,
    print_errors,
    print_warnings,
    save_figure,
)
from gpsift.app.cli.terminal import MOST_ROWS_SHOWN, Output, new_table, print_first_that_fits, shorten
from gpsift.app.cli.terminal_answer import show_power, show_ranked_again
from gpsift.app.tables.read import read_table
from gpsift.reference.base import Reference
from gpsift.reference.ensemble import Ensemble
from gpsift.relevance import Measure
from gpsift.relevance.rank import MeasureName
from gpsift.selection.power_analysis import power as power_of
from gpsift.selection.power_analysis import read_model

# The first bytes of a saved file, which is a ZIP archive.
ZIP_MAGIC = b"PK"


def rank_saved(
    model: Path, file: str | None, measure: Measure, *, json: bool, html: Path | None, quiet: bool, **options: Any
) -> None:
    """Print the ranking of a saved model, at the rows of a table or at those that it was fitted on.

    Options are those of `rank`.
    """
    table = None if file is None else read_table(file)
    answer = ranked_again(load_model(model), table, measure, names=(str(model), file), **options)
    if html is not None:
        from gpsift.app.html.answer_pages import write_ranked_again

        write_ranked_again(replace(answer, command=command_line()), html)
    print_answer(answer, ranked_again_as_json, show_ranked_again, json=json, html=html, quiet=quiet)


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
ComparisonPicture = Annotated[
    Path | None, typer.Option(help="Draw both scores of each column into this file, such as two.png.")
]


def compare(
    first: Saved,
    second: Saved,
    measure: o.MeasureOption = MeasureName.KL,
    conditional: o.ConditionalOption = None,
    intervals: o.Intervals = None,
    html: o.Html = None,
    plot: ComparisonPicture = None,
    seed: o.Seed = 0,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Compare two saved answers: before and after, with and without a column, of two targets.

    Example: gpsift compare before.gpsift after.gpsift
    """
    check_writable("--html", html)
    check_writable("--plot", plot)
    scoring = o.read_measure_choice(measure, conditional)
    with print_errors(), print_warnings(quiet):
        for file in (first, second):
            check_saved(file)
        answer = compared(first, second, scoring, intervals=intervals, seed=seed)
        if html is not None:
            from gpsift.app.html.answer_pages import write_compared

            write_compared(answer, html, command=command_line(), seed=seed)
        save_figure(answer.plot, plot, bbox_inches="tight")
        print_answer(answer, comparison_as_json, show_comparison, json=json, html=html, quiet=quiet)


def show_comparison(answer: Comparison, console: Console) -> None:
    """Print both scores of each column, its ranks, and whether the change is clear."""
    console.print(f"{escape(answer.labels[0])} (first) and {escape(answer.labels[1])} (second), by {answer.measure}.")
    for sentence in answer.sentences:
        console.print(escape(sentence.replace("feature", "column")))
    print_first_that_fits(console, [_table(answer, with_intervals=each) for each in (answer.has_intervals, False)])
    if answer.n_features > MOST_ROWS_SHOWN:
        console.print(f"     ... and {answer.n_features - MOST_ROWS_SHOWN} more\n")
    if answer.has_intervals:
        console.print("[dim]*: the intervals of the two scores do not overlap.[/dim]")


def _table(answer: Comparison, *, with_intervals: bool) -> Table:
    table = new_table(["", "column", "first", "second", "change", "place"])
    for j in answer.order[:MOST_ROWS_SHOWN].tolist():
        scores = [_score(answer, which, j, with_interval=with_intervals) for which in (0, 1)]
        place = f"{answer.ranks[0, j]} → {answer.ranks[1, j]}"
        name = escape(shorten(answer.names[j]))
        table.add_row("*" if answer.is_clear[j] else "", name, *scores, f"{answer.change[j]:+z.3g}", place)
    return table


def _score(answer: Comparison, which: int, j: int, *, with_interval: bool) -> str:
    low, high = answer.intervals[which, j]
    return answer.score_text(which, j) + (f" ({low:.2g} to {high:.2g})" if with_interval else "")


PowerPicture = Annotated[
    Path | None, typer.Option(help="Draw the shares over the rows into this file, such as power.png.")
]


def power(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A saved model, such as rank --save writes.")],
    n: Annotated[list[int], typer.Option(help="Rows of a study; may be given several times.")] = [],  # noqa: B006
    rate: o.Rate = 0.1,
    chance: Annotated[float, typer.Option(help="With which a column should be found.")] = 0.8,
    studies: Annotated[int, typer.Option(min=2, help="Studies that are made up for each number of rows.")] = 50,
    folds: Annotated[int, typer.Option(min=2, help="Parts of the rows, each tested by a model of the others.")] = 5,
    search: Annotated[
        bool, typer.Option(help="Search hyperparameters anew in every study; without, quick guesses.")
    ] = True,
    plot: PowerPicture = None,
    seed: o.Seed = 0,
    jobs: o.Jobs = 1,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Keep finished studies in this file, and go on there.")
    ] = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Say how many rows a study needs until the columns that a model uses are found.

    Example: gpsift power model.gpsift --chance 0.8
    """
    check_writable("--plot", plot)
    options: dict[str, Any] = {"rate": rate, "chance": chance, "studies": studies, "folds": folds, "search": search}
    work = Work(jobs, checkpoint, o.progress_option(quiet))
    with print_errors(kept_fits(checkpoint)), print_warnings(quiet):
        loaded = load_model(model)
        answer = power_of(read_model(loaded), user_columns(loaded), n=n or None, seed=seed, work=work, **options)
        save_figure(answer.plot, plot, bbox_inches="tight")
        if json:
            typer.echo(power_as_json(answer, str(model)))
        else:
            show_power(answer, str(model), Output())
