"""``gpsift compare``: what changed between two saved answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gpsift.app.analysis.compared import compare as compared
from gpsift.app.analysis.record_comparison import Comparison
from gpsift.app.cli import options as o
from gpsift.app.cli.answering import check_writable, remarks, tell, typed
from gpsift.app.cli.errors import clear_errors
from gpsift.app.cli.machine import comparison_as_json
from gpsift.app.cli.saved import check_saved
from gpsift.app.cli.terminal import MOST_ROWS_SHOWN, new_table, print_first_that_fits, shortened
from gpsift.relevance.rank import MeasureName

Saved = Annotated[Path, typer.Argument(help="A saved model or ranking, such as rank --save writes.")]
Picture = Annotated[Path | None, typer.Option(help="Draw both scores of each column into this file, such as two.png.")]


def compare(
    first: Saved,
    second: Saved,
    measure: o.MeasureOption = MeasureName.KL,
    conditional: o.ConditionalOption = None,
    intervals: o.Intervals = None,
    html: o.Html = None,
    plot: Picture = None,
    seed: o.Seed = 0,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Compare two saved answers: before and after, with and without a column, of two targets.

    Example: gpsift compare before.gpsift after.gpsift
    """
    check_writable("--html", html)
    check_writable("--plot", plot)
    scoring = o.chosen_measure(measure, conditional)
    with clear_errors(), remarks(quiet):
        for file in (first, second):
            check_saved(file)
        answer = compared(first, second, scoring, intervals=intervals, seed=seed)
        if html is not None:
            from gpsift.app.html.compared import write_compared

            write_compared(answer, html, command=typed(), seed=seed)
        if plot is not None:
            answer.plot().figure.savefig(plot, bbox_inches="tight", dpi=150)  # type: ignore[union-attr]
        tell(answer, comparison_as_json, show_comparison, json=json, html=html, quiet=quiet)


def show_comparison(answer: Comparison, console: Console) -> None:
    """Both scores of each column, its places, and whether the change is clear."""
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
        name = escape(shortened(answer.names[j]))
        table.add_row("*" if answer.is_clear[j] else "", name, *scores, f"{answer.change[j]:+z.3g}", place)
    return table


def _score(answer: Comparison, which: int, j: int, *, with_interval: bool) -> str:
    low, high = answer.intervals[which, j]
    return answer.score_text(which, j) + (f" ({low:.2g} to {high:.2g})" if with_interval else "")
