"""``gpsift stability``: how much the order depends on the rows."""

from __future__ import annotations

from typing import Annotated

import typer

from gpsift._utils.parallel import Work
from gpsift.app.analysis import Reading
from gpsift.app.cli import options as o
from gpsift.app.cli.answering import analysed, answered, check_writable, remarks
from gpsift.app.cli.dry_run import show_plan
from gpsift.app.cli.errors import KEPT, clear_errors
from gpsift.app.cli.shown import show_stability
from gpsift.relevance.rank import MeasureName


def stability(
    file: o.File,
    target: o.Target,
    samples: Annotated[int, typer.Option(min=2, help="Random samples of the rows.")] = 50,
    drop: o.Drop = [],  # noqa: B006
    categorical: o.Categorical = [],  # noqa: B006
    task: o.TaskOption = o.TaskChoice.AUTO,
    missing: o.MissingOption = o.MissingChoice.AUTO,
    strict: o.Strict = False,
    dry_run: o.DryRun = False,
    table: o.PartOfFile = None,
    measure: o.MeasureOption = MeasureName.KL,
    conditional: o.ConditionalOption = None,
    likelihood: o.Likelihood = None,
    hyper: o.HyperOption = o.HyperChoice.SIFT,
    rows: o.Rows = None,
    html: o.Html = None,
    seed: o.Seed = 0,
    jobs: o.Jobs = 1,
    checkpoint: o.Checkpoint = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Rank the columns on many random samples of the rows, and see what stays.

    Example: gpsift stability measurements.csv --target yield --samples 50
    """
    scoring = o.chosen_measure(measure, conditional)
    check_writable("--html", html)
    reading = Reading(drop, categorical, task.value, missing.value, rows, strict, table)
    if dry_run:
        show_plan(file, target, reading, likelihood=likelihood, seed=seed, json=json)
        return
    with clear_errors(*(() if checkpoint is None else (KEPT,))), remarks(quiet):
        analysis = analysed(
            file,
            target,
            select=False,
            samples=samples,
            measure=scoring,
            likelihood=likelihood,
            hyper=hyper.made(seed, quiet=quiet),
            reading=reading,
            seed=seed,
            work=Work(jobs, checkpoint, o.shown(quiet)),
        )
        answered(analysis, json=json, quiet=quiet, html=html, save=None, show=show_stability)
