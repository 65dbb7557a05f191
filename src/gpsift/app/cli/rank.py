"""Commands that rank, select and test columns: ``gpsift rank``, ``select``, ``stability`` and ``discover``."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from gpsift._utils.parallel import Work
from gpsift.app.analysis import Reading, Selection
from gpsift.app.analysis.run import discover_columns
from gpsift.app.cli import options as o
from gpsift.app.cli.json_answer import discovered_as_json
from gpsift.app.cli.outputs import (
    add_parts,
    check_writable,
    command_line,
    kept_fits,
    print_answer,
    print_errors,
    print_warnings,
    refuse_typed,
    run_analysis,
    save_figure,
    show_plan,
    write_outputs,
)
from gpsift.app.cli.terminal_answer import show_discovered, show_ranking, show_stability
from gpsift.relevance.rank import MeasureName
from gpsift.selection.conditional_test.folds import InOrder

# Options that go with a saved model; the others are about reading a table and fitting.
WITH_A_MODEL = ("file", "model", "measure", "conditional", "intervals", "html", "seed", "json", "quiet")


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
    scoring = o.read_measure_choice(measure, conditional)
    check_writable("--html", html)
    check_writable("--save", save)
    if model is not None:
        others = [name for name in context.params if name not in WITH_A_MODEL]
        refuse_typed(context, others, "a saved model", "--model")
        from gpsift.app.cli.saved import rank_saved

        with print_errors(), print_warnings(quiet):
            rank_saved(model, file, scoring, json=json, html=html, quiet=quiet, intervals=bool(intervals), seed=seed)
        return
    if file is None or target is None:
        raise typer.BadParameter("a table and its --target are needed, or a saved --model")
    reading = Reading(drop, categorical, task.value, missing.value, rows, strict, table)
    if dry_run:
        show_plan(file, target, reading, likelihood=likelihood, seed=seed, json=json, ranks_only=True)
        return
    work = Work(progress=o.progress_option(quiet))
    with print_errors(), print_warnings(quiet):
        analysis = run_analysis(
            file,
            target,
            select=False,
            measure=scoring,
            likelihood=likelihood,
            hyper=hyper.make(seed, quiet=quiet),
            reading=reading,
            seed=seed,
            work=work,
        )
        full = html is not None or json
        analysis = add_parts(analysis, intervals=intervals, test=test, effects=effects, full=full, work=work)
        write_outputs(analysis, json=json, quiet=quiet, html=html, save=save, show=show_ranking)


# Options that do not go with a test at a rate.
FOR_SUBMODELS = ("measure", "conditional", "intervals", "effects", "test", "rule", "folds", "samples", "hyper", "save")


class RuleChoice(StrEnum):
    """Rules by which a model is large enough."""

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
    scoring = o.read_measure_choice(measure, conditional)
    check_writable("--html", html)
    check_writable("--save", save)
    reading = Reading(drop, categorical, task.value, missing.value, rows, strict, table)
    if dry_run:
        show_plan(file, target, reading, likelihood=likelihood, seed=seed, json=json)
        return
    work = Work(jobs, checkpoint, o.progress_option(quiet))
    if rate is not None:
        refuse_typed(context, FOR_SUBMODELS, "it", "--rate")
        run_test(
            file,
            target,
            rate=rate,
            likelihood=likelihood,
            reading=reading,
            seed=seed,
            work=work,
            html=html,
            json=json,
            quiet=quiet,
        )
        return
    with print_errors(kept_fits(checkpoint)), print_warnings(quiet):
        analysis = run_analysis(
            file,
            target,
            select=Selection(folds, rule.value),
            samples=samples,
            measure=scoring,
            likelihood=likelihood,
            hyper=hyper.make(seed, quiet=quiet),
            reading=reading,
            seed=seed,
            work=work,
        )
        full = html is not None or json
        analysis = add_parts(analysis, intervals=intervals, test=test, effects=effects, full=full, work=work)
        write_outputs(analysis, json=json, quiet=quiet, html=html, save=save, show=show_ranking)


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
    scoring = o.read_measure_choice(measure, conditional)
    check_writable("--html", html)
    reading = Reading(drop, categorical, task.value, missing.value, rows, strict, table)
    if dry_run:
        show_plan(file, target, reading, likelihood=likelihood, seed=seed, json=json)
        return
    with print_errors(kept_fits(checkpoint)), print_warnings(quiet):
        analysis = run_analysis(
            file,
            target,
            select=False,
            samples=samples,
            measure=scoring,
            likelihood=likelihood,
            hyper=hyper.make(seed, quiet=quiet),
            reading=reading,
            seed=seed,
            work=Work(jobs, checkpoint, o.progress_option(quiet)),
        )
        write_outputs(analysis, json=json, quiet=quiet, html=html, save=None, show=show_stability)


Ordered = Annotated[
    bool,
    typer.Option(
        "--in-order",
        help="Test each part of the rows by a model of those before it: right for any model, and finds less.",
    ),
]
AnyDependence = Annotated[
    bool,
    typer.Option(
        "--any-dependence",
        help="A rate that holds however p-values depend on each other (Benjamini and Yekutieli), which names fewer.",
    ),
]
TestPicture = Annotated[Path | None, typer.Option(help="Draw the p-values into this file, such as p.png.")]


def discover(
    file: o.File,
    target: o.Target,
    rate: o.Rate = 0.1,
    folds: Annotated[int, typer.Option(min=2, help="Parts of the rows, each tested by a model of the others.")] = 5,
    repeats: Annotated[int, typer.Option(min=1, help="How often the rows are divided anew.")] = 1,
    in_order: Ordered = False,
    any_dependence: AnyDependence = False,
    drop: o.Drop = [],  # noqa: B006
    categorical: o.Categorical = [],  # noqa: B006
    task: o.TaskOption = o.TaskChoice.AUTO,
    missing: o.MissingOption = o.MissingChoice.AUTO,
    strict: o.Strict = False,
    dry_run: o.DryRun = False,
    table: o.PartOfFile = None,
    likelihood: o.Likelihood = None,
    rows: o.Rows = None,
    html: o.Html = None,
    plot: TestPicture = None,
    seed: o.Seed = 0,
    jobs: o.Jobs = 1,
    checkpoint: o.Checkpoint = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Test which columns matter for the target given all others, with few expected to be false.

    Example: gpsift discover measurements.csv --target yield --rate 0.1
    """
    check_writable("--html", html)
    check_writable("--plot", plot)
    reading = Reading(drop, categorical, task.value, missing.value, rows, strict, table)
    if dry_run:
        show_plan(file, target, reading, likelihood=likelihood, seed=seed, json=json)
        return
    run_test(
        file,
        target,
        rate=rate,
        folds=InOrder(folds) if in_order else folds,
        repeats=repeats,
        likelihood=likelihood,
        reading=reading,
        seed=seed,
        work=Work(jobs, checkpoint, o.progress_option(quiet)),
        any_dependence=any_dependence,
        html=html,
        plot=plot,
        json=json,
        quiet=quiet,
    )


def run_test(
    file: str,
    target: str,
    *,
    work: Work,
    json: bool,
    quiet: bool,
    any_dependence: bool = False,
    html: Path | None = None,
    plot: Path | None = None,
    **options: Any,
) -> None:
    """Test the columns, draw, write the page and print."""
    with print_errors(kept_fits(work.checkpoint)), print_warnings(quiet):
        answer = replace(discover_columns(file, target, work=work, **options), command=command_line())
        if any_dependence:
            answer = replace(answer, found=answer.found.under_any_dependence())
        if html is not None:
            from gpsift.app.html.answer_pages import write_discovered

            write_discovered(answer, html)
        save_figure(answer.found.plot, plot, bbox_inches="tight")
        print_answer(answer, discovered_as_json, show_discovered, json=json, html=html, quiet=quiet)
