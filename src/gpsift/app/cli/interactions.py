"""``gpsift interactions``: which columns act together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from gpsift.app.analysis import Reading
from gpsift.app.analysis.analysis import ColumnEffects
from gpsift.app.cli import options as o
from gpsift.app.cli.shape_shown import show_interactions
from gpsift.app.cli.shaped import Given, Question
from gpsift.decomposition.pairs import interactions as interactions_of
from gpsift.decomposition.shares import variance_shares

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Picture = Annotated[
    Path | None,
    typer.Option(help="Draw the shares of all pairs, and the surface of the strongest, into this file: pairs.png."),
]


def interactions(
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
    """Find the columns that act together, and the share of the variance that is due to each.

    Example: gpsift interactions measurements.csv --target yield --plot pairs.png
    """
    Question(_asked, _shown, _drawn).answer(
        context,
        Given(file, target, model, html, plot, save, dry_run, json, quiet),
        seed=seed,
        likelihood=likelihood,
        hyper=hyper.made(seed, quiet=quiet),
        reading=Reading(drop, categorical, task.value, missing.value, rows, strict, table),
    )


def _asked(model: Any, X: Any = None, *, seed: int, **units: Any) -> ColumnEffects:
    return ColumnEffects(
        interactions=interactions_of(model, X, **units), variance_shares=variance_shares(model, X, seed=seed, **units)
    )


def _shown(shape: ColumnEffects, _predicted: str, console: Console) -> None:
    assert shape.interactions is not None
    assert shape.variance_shares is not None
    show_interactions(shape.interactions, shape.variance_shares, console)


def _drawn(shape: ColumnEffects) -> Figure:
    from gpsift.decomposition.plots import pairs_with_surface

    assert shape.interactions is not None
    return pairs_with_surface(shape.interactions)
