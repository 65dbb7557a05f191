"""``gpsift select``: which columns matter, and how many are enough."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from gpsift._utils.parallel import Work
from gpsift.app.analysis import Reading, Selection
from gpsift.app.analysis.intervals import with_intervals
from gpsift.app.cli import options as o
from gpsift.app.cli.answering import analysed, answered, check_writable, refuse_typed, remarks
from gpsift.app.cli.discover import discovered
from gpsift.app.cli.dry_run import show_plan
from gpsift.app.cli.errors import KEPT, clear_errors
from gpsift.app.cli.shown import show_ranking
from gpsift.relevance.rank import MeasureName

# What says nothing about a test at a rate.
FOR_SUBMODELS = ("measure", "conditional", "intervals", "effects", "test", "rule", "folds", "samples", "hyper", "save")


class RuleChoice(StrEnum):
    """What is enough."""

    ONE_SE = "one-se"
    NEGLIGIBLE = "negligible"
    EXPLAINED = "explained"


def select(
    context: typer.Context,
    file: o.File,
    target: o.Target,
    drop: o.Drop = [],  # noqa: B006
    categorical: o.Categorical = [],  # noqa: B006
    task: o.TaskOption = o.TaskChoice.AUTO,
    missing: o.MissingOption = o.MissingChoice.AUTO,
    strict: o.Strict = False,
    dry_run: o.DryRun = False,
    table: o.PartOfFile = None,
    measure: o.MeasureOption = MeasureName.KL,
    conditional: o.ConditionalOption = None,
    rule: Annotated[
        RuleChoice,
        typer.Option(
            help="What is enough: elpd within one standard error of all columns, a negligible loss, or most of what "
            "all explain."
        ),
    ] = RuleChoice.ONE_SE,
    folds: Annotated[
        int | None, typer.Option(min=2, help="Folds that judge submodels; leave-one-out if not said.")
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=0.999,
            help="Name the columns that matter instead, with this share of them expected to be false, as gpsift "
            "discover does.",
        ),
    ] = None,
    samples: Annotated[int, typer.Option(min=0, help="Random samples of the rows on which to rank again.")] = 0,
    intervals: o.Intervals = None,
    effects: o.Effects = None,
    test: o.TestOption = None,
    likelihood: o.Likelihood = None,
    hyper: o.HyperOption = o.HyperChoice.SIFT,
    rows: o.Rows = None,
    html: o.Html = None,
    save: o.Save = None,
    seed: o.Seed = 0,
    jobs: o.Jobs = 1,
    checkpoint: o.Checkpoint = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Find out which columns of a table are enough to predict the target.

    Example: gpsift select measurements.csv --target yield --html report.html
    """
    scoring = o.chosen_measure(measure, conditional)
    check_writable("--html", html)
    check_writable("--save", save)
    reading = Reading(drop, categorical, task.value, missing.value, rows, strict, table)
    if dry_run:
        show_plan(file, target, reading, likelihood=likelihood, seed=seed, json=json)
        return
    if rate is not None:
        refuse_typed(context, FOR_SUBMODELS, "it", "--rate")
        discovered(
            file,
            target,
            rate=rate,
            likelihood=likelihood,
            reading=reading,
            seed=seed,
            work=Work(jobs, checkpoint, o.shown(quiet)),
            html=html,
            json=json,
            quiet=quiet,
        )
        return
    with clear_errors(*(() if checkpoint is None else (KEPT,))), remarks(quiet):
        analysis = analysed(
            file,
            target,
            select=Selection(folds, rule.value),
            samples=samples,
            measure=scoring,
            likelihood=likelihood,
            hyper=hyper.made(seed, quiet=quiet),
            reading=reading,
            seed=seed,
            work=Work(jobs, checkpoint, o.shown(quiet)),
        )
        analysis = with_intervals(analysis, intervals, Work(progress=o.shown(quiet)))
        if html is not None or json:
            from gpsift.app.analysis.shape import with_shape  # for those who look at more than a table
            from gpsift.app.analysis.tested import with_test

            analysis = with_test(analysis, test, Work(jobs, checkpoint, o.shown(quiet)))
            analysis = with_shape(analysis, effects, Work(progress=o.shown(quiet)))
        answered(analysis, json=json, quiet=quiet, html=html, save=save, show=show_ranking)
