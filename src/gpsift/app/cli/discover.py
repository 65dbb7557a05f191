"""``gpsift discover``: which columns matter at all, at a rate of false discoveries."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from gpsift._utils.parallel import Work
from gpsift.app.analysis import Reading
from gpsift.app.analysis.run import discover_columns
from gpsift.app.cli import options as o
from gpsift.app.cli.answering import check_writable, remarks, tell, typed
from gpsift.app.cli.dry_run import show_plan
from gpsift.app.cli.errors import KEPT, clear_errors
from gpsift.app.cli.machine import discovered_as_json
from gpsift.app.cli.shown import show_discovered
from gpsift.selection.conditional_test.division import InOrder

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
Picture = Annotated[Path | None, typer.Option(help="Draw the p-values into this file, such as p.png.")]


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
    plot: Picture = None,
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
    discovered(
        file,
        target,
        rate=rate,
        folds=InOrder(folds) if in_order else folds,
        repeats=repeats,
        likelihood=likelihood,
        reading=reading,
        seed=seed,
        work=Work(jobs, checkpoint, o.shown(quiet)),
        any_dependence=any_dependence,
        html=html,
        plot=plot,
        json=json,
        quiet=quiet,
    )


def discovered(
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
    """Test, draw, write the page and print."""
    with clear_errors(*(() if work.checkpoint is None else (KEPT,))), remarks(quiet):
        answer = replace(discover_columns(file, target, work=work, **options), command=typed())
        if any_dependence:
            answer = replace(answer, found=answer.found.under_any_dependence())
        if html is not None:
            from gpsift.app.html.discovered import write_discovered

            write_discovered(answer, html)
        if plot is not None:
            answer.found.plot().figure.savefig(plot, bbox_inches="tight", dpi=150)  # type: ignore[union-attr]
        tell(answer, discovered_as_json, show_discovered, json=json, html=html, quiet=quiet)
