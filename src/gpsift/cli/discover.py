"""``gpsift discover``: which columns matter at all, at a rate of false discoveries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gpsift.analysis import Reading
from gpsift.analysis.discovered import discover_columns
from gpsift.cli import options as o
from gpsift.cli.answering import check_writable, remarks
from gpsift.cli.errors import KEPT, clear_errors
from gpsift.cli.machine import discovered_as_json
from gpsift.cli.shown import show_discovered
from gpsift.cli.terminal import Output
from gpsift.work import Work

Picture = Annotated[Path | None, typer.Option(help="Draw the p-values into this file, such as p.png.")]


def discover(
    file: o.File,
    target: o.Target,
    rate: o.Rate = 0.1,
    folds: Annotated[int, typer.Option(min=2, help="Parts of the rows, each tested by a model of the others.")] = 5,
    repeats: Annotated[int, typer.Option(min=1, help="How often the rows are divided anew.")] = 1,
    drop: o.Drop = [],  # noqa: B006
    categorical: o.Categorical = [],  # noqa: B006
    task: o.TaskOption = o.TaskChoice.AUTO,
    missing: o.MissingOption = o.MissingChoice.REFUSE,
    likelihood: o.Likelihood = None,
    rows: o.Rows = None,
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
    check_writable("--plot", plot)
    discovered(
        file,
        target,
        rate=rate,
        folds=folds,
        repeats=repeats,
        likelihood=likelihood,
        reading=Reading(drop, categorical, task.value, missing.value, rows),
        seed=seed,
        work=Work(jobs, checkpoint, o.shown(quiet)),
        plot=plot,
        json=json,
        quiet=quiet,
    )


def discovered(
    file: str, target: str, *, work: Work, json: bool, quiet: bool, plot: Path | None = None, **options: Any
) -> None:
    """Test, draw and print."""
    with clear_errors(*(() if work.checkpoint is None else (KEPT,))), remarks(quiet):
        answer = discover_columns(file, target, work=work, **options)
        if plot is not None:
            answer.found.plot().figure.savefig(plot, bbox_inches="tight", dpi=150)  # type: ignore[union-attr]
        if json:
            typer.echo(discovered_as_json(answer))
        else:
            show_discovered(answer, Output())
