"""``gpsift explain``: what moves the prediction of some rows."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import pandas as pd
import typer

from gpsift._utils.parallel import Work
from gpsift.app.analysis import Reading
from gpsift.app.analysis.rows import explain_rows as explain_rows
from gpsift.app.cli import options as o
from gpsift.app.cli.answering import analysed, remarks
from gpsift.app.cli.dry_run import show_plan
from gpsift.app.cli.errors import clear_errors
from gpsift.app.cli.local_shown import show_local
from gpsift.app.cli.machine import local_as_json
from gpsift.app.cli.terminal import Output
from gpsift.app.tables.conditions import select_rows
from gpsift.app.tables.encode import ModelTable


def explain(
    file: o.File,
    target: o.Target,
    row: Annotated[int | None, typer.Option(min=1, help="A row, counted from 1 below the header.")] = None,
    where: Annotated[str | None, typer.Option(help='A condition on rows, such as "age > 60".')] = None,
    drop: o.Drop = [],  # noqa: B006
    categorical: o.Categorical = [],  # noqa: B006
    task: o.TaskOption = o.TaskChoice.AUTO,
    missing: o.MissingOption = o.MissingChoice.AUTO,
    strict: o.Strict = False,
    dry_run: o.DryRun = False,
    table: o.PartOfFile = None,
    likelihood: o.Likelihood = None,
    hyper: o.HyperOption = o.HyperChoice.SIFT,
    rows: o.Rows = None,
    seed: o.Seed = 0,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Take the prediction of one row, or of some rows, apart: what each column adds to the average, and how it reacts.

    Example: gpsift explain measurements.csv --target yield --row 17
    """
    if (row is None) == (where is None):
        raise typer.BadParameter('say which rows: either --row 17 or --where "age > 60"')
    reading = Reading(drop, categorical, task.value, missing.value, rows, strict, table)
    if dry_run:
        show_plan(file, target, reading, likelihood=likelihood, seed=seed, json=json, ranks_only=True)
        return
    with clear_errors(), remarks(quiet):
        read = reading.load(file, target)
        prepared = reading.clean(read, target).table
        places = _places(prepared, read.frame, row, where)
        analysis = analysed(
            prepared,
            None,
            select=False,
            likelihood=likelihood,
            hyper=hyper.made(seed, quiet=quiet),
            reading=Reading(most_rows=rows, strict=strict),
            seed=seed,
            work=Work(progress=o.shown(quiet)),
        )
        local = explain_rows(analysis, prepared.X.iloc[places], prepared.y[places])
        what = f"row {row}" if row is not None else f"{len(places)} rows where {where}"
        if json:
            typer.echo(local_as_json(analysis, local, what))
        else:
            show_local(analysis, local, what, prepared.rows.iloc[places], Output())


def _places(table: ModelTable, frame: pd.DataFrame, row: int | None, where: str | None) -> np.ndarray:
    """Positions in the prepared table, whose index counts the rows of the file; conditions may name all its columns."""
    n_read = len(frame)
    if where is not None:
        places = np.flatnonzero(select_rows(frame.loc[table.rows.index].assign(**table.rows), where))
        if places.size == 0:
            raise ValueError(f"No row satisfies {where!r}.")
        return places
    assert row is not None
    if row > n_read:
        raise ValueError(f"There is no row {row}; the table has {n_read}.")
    places = np.flatnonzero(table.rows.index == row)
    if places.size == 0:
        raise ValueError(f"Row {row} has missing values and was left out; see --missing and --dry-run.")
    return places
