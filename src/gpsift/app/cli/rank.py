"""Commands that rank, select and test columns: ``gpsift rank``, ``select``, ``stability`` and ``discover``."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from gpsift.app.analysis import Reading, Selection
from gpsift.app.analysis.run import discover_columns
from gpsift.app.cli import options as o
from gpsift.app.cli.json_answer import discoveries_as_json
from gpsift.app.cli.outputs import (
    add_parts,
    check_writable,
    command_line,
    interruption_note,
    print_answer,
    print_errors,
    print_warnings,
    refuse_beside_model,
    refuse_typed,
    run_analysis,
    save_figure,
    show_plan,
    write_outputs,
)
from gpsift.app.cli.terminal_answer import show_discoveries, show_ranking, show_stability
from gpsift.selection.conditional_test.folds import InOrder

# Options that may be combined with a saved model; the others are about reading a table and fitting.
WITH_A_MODEL = ("file", "model", "measure", "conditional", "intervals", "html", "seed", "json", "quiet")


@o.flatten
def rank(
    context: typer.Context,
    *,
    file: o.OptionalFile = None,
    target: o.OptionalTarget = None,
    reading: o.ReadingOptions,
    scoring: o.MeasureOptions,
    parts: o.PartOptions,
    fit: o.FitOptions,
    html: o.Html = None,
    save: o.Save = None,
    model: Annotated[Path | None, typer.Option(help="A saved model to rank, in place of fitting one.")] = None,
    run: o.RunOptions,
) -> None:
    """Rank the columns of a table by how a prediction of the target reacts to them.

    Example: gpsift rank measurements.csv --target yield
    """
    measure = scoring.make()
    check_writable(html=html, save=save)
    if model is not None:
        refuse_beside_model(context, WITH_A_MODEL)
        from gpsift.app.cli.saved import print_saved_ranking

        with print_errors(), print_warnings(run.quiet):
            print_saved_ranking(model, file, measure, run, html=html, intervals=bool(parts.intervals))
        return
    if file is None or target is None:
        raise typer.BadParameter(o.NO_TABLE)
    if reading.dry_run:
        show_plan(file, target, reading.make(fit.rows), fit.likelihood, run, ranks_only=True)
        return
    with print_errors(), print_warnings(run.quiet):
        analysis = run_analysis(file, target, reading, fit, run, measure=measure)
        analysis = add_parts(analysis, parts, run.work, full=html is not None or run.json)
        write_outputs(analysis, run, html=html, save=save, show=show_ranking)


# Options that may not be combined with --rate.
NOT_WITH_RATE = ("measure", "conditional", "intervals", "effects", "test", "rule", "folds", "samples", "hyper", "save")


class RuleChoice(StrEnum):
    """Rules that decide which size is enough."""

    ONE_SE = "one-se"
    NEGLIGIBLE = "negligible"
    EXPLAINED = "explained"


@o.flatten
def select(
    context: typer.Context,
    *,
    file: o.File,
    target: o.Target,
    reading: o.ReadingOptions,
    scoring: o.MeasureOptions,
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
    parts: o.PartOptions,
    fit: o.FitOptions,
    html: o.Html = None,
    save: o.Save = None,
    run: o.JobOptions,
) -> None:
    """Find out which columns of a table are enough to predict the target.

    Example: gpsift select measurements.csv --target yield --html report.html
    """
    measure = scoring.make()
    check_writable(html=html, save=save)
    if reading.dry_run:
        show_plan(file, target, reading.make(fit.rows), fit.likelihood, run)
        return
    if rate is not None:
        refuse_typed(context, NOT_WITH_RATE, "it", "--rate")
        run_test(file, target, reading.make(fit.rows), fit.likelihood, run, html=html, rate=rate)
        return
    with print_errors(interruption_note(run.checkpoint)), print_warnings(run.quiet):
        selection = Selection(folds, rule.value)
        analysis = run_analysis(file, target, reading, fit, run, select=selection, samples=samples, measure=measure)
        analysis = add_parts(analysis, parts, run.work, full=html is not None or run.json)
        write_outputs(analysis, run, html=html, save=save, show=show_ranking)


@o.flatten
def stability(
    *,
    file: o.File,
    target: o.Target,
    samples: Annotated[int, typer.Option(min=2, help="Random samples of the rows.")] = 50,
    reading: o.ReadingOptions,
    scoring: o.MeasureOptions,
    fit: o.FitOptions,
    html: o.Html = None,
    run: o.JobOptions,
) -> None:
    """Rank the columns on many random samples of the rows, and see what stays.

    Example: gpsift stability measurements.csv --target yield --samples 50
    """
    measure = scoring.make()
    check_writable(html=html)
    if reading.dry_run:
        show_plan(file, target, reading.make(fit.rows), fit.likelihood, run)
        return
    with print_errors(interruption_note(run.checkpoint)), print_warnings(run.quiet):
        analysis = run_analysis(file, target, reading, fit, run, samples=samples, measure=measure)
        write_outputs(analysis, run, html=html, show=show_stability)


@o.flatten
def discover(
    *,
    file: o.File,
    target: o.Target,
    rate: o.Rate = 0.1,
    folds: Annotated[int, typer.Option(min=2, help="Parts of the rows, each tested by a model of the others.")] = 5,
    repeats: Annotated[int, typer.Option(min=1, help="How often the rows are divided anew.")] = 1,
    in_order: Annotated[
        bool,
        typer.Option(
            "--in-order",
            help="Test each part of the rows by a model of those before it: right for any model, and finds less.",
        ),
    ] = False,
    any_dependence: Annotated[
        bool,
        typer.Option(
            "--any-dependence",
            help="A rate that holds however p-values depend on each other (Benjamini and Yekutieli), which names "
            "fewer.",
        ),
    ] = False,
    reading: o.ReadingOptions,
    likelihood: o.Likelihood = None,
    rows: o.Rows = None,
    html: o.Html = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the p-values into this file, such as p.png.")] = None,
    run: o.JobOptions,
) -> None:
    """Test which columns matter for the target given all others, with few expected to be false.

    Example: gpsift discover measurements.csv --target yield --rate 0.1
    """
    check_writable(html=html, plot=plot)
    if reading.dry_run:
        show_plan(file, target, reading.make(rows), likelihood, run)
        return
    run_test(
        file,
        target,
        reading.make(rows),
        likelihood,
        run,
        html=html,
        plot=plot,
        any_dependence=any_dependence,
        rate=rate,
        folds=InOrder(folds) if in_order else folds,
        repeats=repeats,
    )


def run_test(
    file: str,
    target: str,
    reading: Reading,
    likelihood: str | None,
    run: o.JobOptions,
    *,
    html: Path | None,
    plot: Path | None = None,
    any_dependence: bool = False,
    **options: Any,
) -> None:
    """Test the columns, draw, write the page and print."""
    with print_errors(interruption_note(run.checkpoint)), print_warnings(run.quiet):
        found = discover_columns(
            file, target, reading=reading, likelihood=likelihood, seed=run.seed, work=run.work, **options
        )
        answer = replace(found, command=command_line())
        if any_dependence:
            answer = replace(answer, found=answer.found.under_any_dependence())
        if html is not None:
            from gpsift.app.html.answer_pages import write_discoveries

            write_discoveries(answer, html)
        save_figure(answer.found.plot, plot, bbox_inches="tight")
        print_answer(answer, discoveries_as_json, show_discoveries, run, html=html)
