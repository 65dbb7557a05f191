"""``gpsift power``: how many rows until a column is found, by a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gpsift._utils.parallel import Work
from gpsift.app.analysis.saved_model import user_columns
from gpsift.app.cli import options as o
from gpsift.app.cli.answering import check_writable, remarks
from gpsift.app.cli.errors import KEPT, clear_errors
from gpsift.app.cli.machine import power_as_json
from gpsift.app.cli.saved import load_model
from gpsift.app.cli.shown import show_power
from gpsift.app.cli.terminal import Output
from gpsift.selection.power.power import power as power_of
from gpsift.selection.power.power import read_model

Picture = Annotated[Path | None, typer.Option(help="Draw the shares over the rows into this file, such as power.png.")]


def power(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A saved model, such as rank --save writes.")],
    n: Annotated[list[int], typer.Option(help="Rows of a study; may be given several times.")] = [],  # noqa: B006
    rate: o.Rate = 0.1,
    chance: Annotated[float, typer.Option(help="With which a column should be found.")] = 0.8,
    studies: Annotated[int, typer.Option(min=2, help="Studies that are made up for each number of rows.")] = 50,
    folds: Annotated[int, typer.Option(min=2, help="Parts of the rows, each tested by a model of the others.")] = 5,
    search: Annotated[
        bool, typer.Option(help="Search hyperparameters anew in every study; without, quick guesses.")
    ] = True,
    plot: Picture = None,
    seed: o.Seed = 0,
    jobs: o.Jobs = 1,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Keep finished studies in this file, and go on there.")
    ] = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Say how many rows a study needs until the columns that a model uses are found.

    Example: gpsift power model.gpsift --chance 0.8
    """
    check_writable("--plot", plot)
    options: dict[str, Any] = {"rate": rate, "chance": chance, "studies": studies, "folds": folds, "search": search}
    work = Work(jobs, checkpoint, o.shown(quiet))
    with clear_errors(*(() if checkpoint is None else (KEPT,))), remarks(quiet):
        loaded = load_model(model)
        answer = power_of(read_model(loaded), user_columns(loaded), n=n or None, seed=seed, work=work, **options)
        if plot is not None:
            answer.plot().figure.savefig(plot, bbox_inches="tight", dpi=150)  # type: ignore[union-attr]
        if json:
            typer.echo(power_as_json(answer, str(model)))
        else:
            show_power(answer, str(model), Output())
