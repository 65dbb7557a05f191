"""``gpsift effects``: how the prediction changes along each column."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from gpsift.app.analysis import Reading
from gpsift.app.analysis.analysis import ColumnEffects
from gpsift.app.cli import options as o
from gpsift.app.cli.shape_shown import show_effects
from gpsift.app.cli.shaped import Given, Question
from gpsift.decomposition.average import effects as effects_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Picture = Annotated[Path | None, typer.Option(help="Draw the curves into this file, such as curves.png.")]


def effects(
    context: typer.Context,
    file: o.OptionalFile = None,
    target: o.OptionalTarget = None,
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
    html: o.Html = None,
    plot: Picture = None,
    save: o.Save = None,
    model: o.ModelToAsk = None,
    seed: o.Seed = 0,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Say how the prediction of the target changes along each column: up, down, where it turns, and how far.

    Example: gpsift effects measurements.csv --target yield --plot curves.png
    """
    Question(_asked, _shown, _drawn).answer(
        context,
        Given(file, target, model, html, plot, save, dry_run, json, quiet),
        seed=seed,
        likelihood=likelihood,
        hyper=hyper.made(seed, quiet=quiet),
        reading=Reading(drop, categorical, task.value, missing.value, rows, strict, table),
    )


def _asked(model: Any, X: Any = None, **options: Any) -> ColumnEffects:
    return ColumnEffects(effects=effects_of(model, X, **options))


def _shown(shape: ColumnEffects, predicted: str, console: Console) -> None:
    assert shape.effects is not None
    show_effects(shape.effects, predicted, console)


def _drawn(shape: ColumnEffects) -> Figure:
    assert shape.effects is not None
    return shape.effects.plot()
