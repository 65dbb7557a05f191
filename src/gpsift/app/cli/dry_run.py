"""``--dry-run``: what would be done with a table, without a fit."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.markup import escape

from gpsift.app.analysis.options import Reading
from gpsift.app.analysis.run import AnalysisPlan, plan_analysis
from gpsift.app.cli.errors import clear_errors
from gpsift.app.cli.machine import plan_as_json
from gpsift.app.cli.shown import say_cautions, say_table
from gpsift.app.cli.terminal import MOST_ROWS_SHOWN, Output, new_table, shortened


def show_plan(
    file: str,
    target: str,
    reading: Reading,
    *,
    likelihood: str | None,
    seed: int,
    json: bool,
    ranks_only: bool = False,
) -> None:
    """Print what would be done with a table."""
    with clear_errors():
        plan = plan_analysis(file, target, reading, likelihood=likelihood, seed=seed, ranks_only=ranks_only)
        if json:
            typer.echo(plan_as_json(plan))
        else:
            _print(plan, Output())


def _print(plan: AnalysisPlan, console: Console) -> None:
    say_table(plan, console)
    table = new_table(["column", "taken as"], texts=("column", "taken as"))
    for name, kind in list(plan.kinds.items())[:MOST_ROWS_SHOWN]:
        table.add_row(escape(shortened(name)), kind)
    if len(plan.kinds) > MOST_ROWS_SHOWN:
        table.add_row(f"... and {len(plan.kinds) - MOST_ROWS_SHOWN} more", "")
    console.print(table)
    if not plan.cautions:
        console.print("Nothing needs to be done with the table.")
    say_cautions(plan.cautions, console)
