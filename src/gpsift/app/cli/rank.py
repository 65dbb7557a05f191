"""``gpsift rank``: which columns matter."""

from __future__ import annotations

import typer

from gpsift._utils.parallel import Work
from gpsift.app.analysis import Reading
from gpsift.app.analysis.intervals import with_intervals
from gpsift.app.cli import options as o
from gpsift.app.cli.answering import analysed, answered, check_writable, refuse_typed, remarks
from gpsift.app.cli.dry_run import show_plan
from gpsift.app.cli.errors import clear_errors
from gpsift.app.cli.shown import show_ranking
from gpsift.relevance.rank import MeasureName

# What can be said of a saved model; the rest is about reading a table and fitting.
BESIDE_A_MODEL = ("file", "model", "measure", "conditional", "intervals", "html", "seed", "json", "quiet")


def rank(
    context: typer.Context,
    file: o.OptionalFile = None,
    target: o.OptionalTarget = None,
    drop: o.Drop = [],  # noqa: B006  # typer reads it and makes a new one
    categorical: o.Categorical = [],  # noqa: B006
    task: o.TaskOption = o.TaskChoice.AUTO,
    missing: o.MissingOption = o.MissingChoice.AUTO,
    strict: o.Strict = False,
    dry_run: o.DryRun = False,
    table: o.PartOfFile = None,
    measure: o.MeasureOption = MeasureName.KL,
    conditional: o.ConditionalOption = None,
    intervals: o.Intervals = None,
    effects: o.Effects = None,
    test: o.TestOption = None,
    likelihood: o.Likelihood = None,
    hyper: o.HyperOption = o.HyperChoice.SIFT,
    rows: o.Rows = None,
    html: o.Html = None,
    save: o.Save = None,
    model: o.Model = None,
    seed: o.Seed = 0,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Rank the columns of a table by how a prediction of the target reacts to them.

    Example: gpsift rank measurements.csv --target yield
    """
    scoring = o.chosen_measure(measure, conditional)
    check_writable("--html", html)
    check_writable("--save", save)
    if model is not None:
        others = [name for name in context.params if name not in BESIDE_A_MODEL]
        refuse_typed(context, others, "a saved model", "--model")
        from gpsift.app.cli.saved import rank_saved

        with clear_errors(), remarks(quiet):
            rank_saved(model, file, scoring, json=json, html=html, quiet=quiet, intervals=bool(intervals), seed=seed)
        return
    if file is None or target is None:
        raise typer.BadParameter("a table and its --target are needed, or a saved --model")
    reading = Reading(drop, categorical, task.value, missing.value, rows, strict, table)
    if dry_run:
        show_plan(file, target, reading, likelihood=likelihood, seed=seed, json=json, ranks_only=True)
        return
    with clear_errors(), remarks(quiet):
        analysis = analysed(
            file,
            target,
            select=False,
            measure=scoring,
            likelihood=likelihood,
            hyper=hyper.made(seed, quiet=quiet),
            reading=reading,
            seed=seed,
            work=Work(progress=o.shown(quiet)),
        )
        analysis = with_intervals(analysis, intervals, Work(progress=o.shown(quiet)))
        if html is not None or json:
            from gpsift.app.analysis.shape import with_shape  # for those who look at more than a table
            from gpsift.app.analysis.tested import with_test

            analysis = with_test(analysis, test, Work(progress=o.shown(quiet)))
            analysis = with_shape(analysis, effects, Work(progress=o.shown(quiet)))
        answered(analysis, json=json, quiet=quiet, html=html, save=save, show=show_ranking)
