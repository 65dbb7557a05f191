"""What `gpsift effects` and `gpsift interactions` have in common: fit or load a model, ask, draw, print."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd
import typer
from rich.console import Console

from gpsift._utils.atomic import written_whole
from gpsift._utils.parallel import Work, share_bar
from gpsift.app.analysis import Analysis, Reading
from gpsift.app.analysis.explained import explain as explain_rows
from gpsift.app.analysis.record import Shape
from gpsift.app.analysis.saved_inputs import features_of, inputs_of
from gpsift.app.analysis.shape import unit_options, with_shape
from gpsift.app.cli import options as o
from gpsift.app.cli.json_answer import local_as_json, saved_shape_as_json, shape_as_json
from gpsift.app.cli.outputs import analysed, answered, check_writable, clear_errors, refuse_typed, remarks, show_plan
from gpsift.app.cli.saved import load_model
from gpsift.app.cli.terminal import Output
from gpsift.app.cli.terminal_answer import say_cautions, show_effects, show_interactions, show_local, show_model
from gpsift.app.tables.tabular import Prepared, matching_rows, read_table
from gpsift.decomposition.average import effects as effects_of
from gpsift.decomposition.pairs import interactions as interactions_of
from gpsift.decomposition.shares import variance_shares

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What can be said of a saved model; the rest is about reading a table and fitting.
ASKED_OF_A_MODEL = ("file", "model", "plot", "seed", "json", "quiet")


@dataclass(frozen=True)
class Given:
    """What is given to both commands: a table with its target or a saved model, and where the answer goes."""

    file: str | None
    target: str | None
    model: Path | None
    html: Path | None
    plot: Path | None
    save: Path | None
    dry_run: bool
    json: bool
    quiet: bool

    def check(self, context: typer.Context) -> None:
        """Refuse what could not be done, before the work begins."""
        for option, path in (("--html", self.html), ("--plot", self.plot), ("--save", self.save)):
            check_writable(option, path)
        if self.model is not None:
            others = [name for name in context.params if name not in ASKED_OF_A_MODEL]
            refuse_typed(context, others, "a saved model", "--model")
        elif self.file is None or self.target is None:
            raise typer.BadParameter("a table and its --target are needed, or a saved --model")


@dataclass(frozen=True)
class Question:
    """What is asked of a model, how the answer is shown beside what is predicted, and how it is drawn."""

    asked: Callable[..., Shape]
    show: Callable[[Shape, str, Console], None]
    drawn: Callable[[Shape], Figure]

    def answer(self, context: typer.Context, given: Given, seed: int, **options: Any) -> None:
        """Ask, draw, write page and model, and print; options are those of `analyse`."""
        given.check(context)
        with clear_errors(), remarks(given.quiet):
            if given.model is not None:
                self._of_model(given.model, given, seed)
            else:
                self._of_table(given, seed=seed, **options)

    def _of_table(self, given: Given, **options: Any) -> None:
        assert given.file is not None
        assert given.target is not None
        if given.dry_run:
            plan = {name: options[name] for name in ("likelihood", "seed")}
            show_plan(given.file, given.target, options["reading"], json=given.json, ranks_only=True, **plan)
            return
        work = Work(progress=o.shown(given.quiet))
        analysis = analysed(given.file, given.target, select=False, work=work, **options)
        with share_bar("curves and pairs", work.progress):
            shape = self.asked(analysis.model_with_recipe, seed=analysis.seed, **unit_options(analysis))
        self._draw(shape, given.plot)
        if given.html is not None:
            analysis = with_shape(replace(analysis, shape=shape), True, work)

        def show(analysis: Analysis, console: Console) -> None:
            show_model(analysis, console)
            self.show(shape, analysis.predicted, console)
            say_cautions(analysis.cautions, console)

        answered(
            analysis,
            json=given.json,
            quiet=given.quiet,
            html=given.html,
            save=given.save,
            show=show,
            dumped=lambda analysis: shape_as_json(analysis, shape),
        )

    def _of_model(self, model: Path, given: Given, seed: int) -> None:
        loaded = load_model(model)
        tidied = None if given.file is None else inputs_of(read_table(given.file), loaded)
        X, cautions = (None, ()) if tidied is None else (tidied.X, [step.finding for step in tidied.steps])
        features = features_of(loaded)
        shape = self.asked(loaded, X, seed=seed, groups=features.groups, categorical=features.categorical)
        self._draw(shape, given.plot)
        if given.json:
            typer.echo(saved_shape_as_json(shape, str(model), given.file, cautions))
            return
        console = Output()
        self.show(shape, "the target", console)
        say_cautions(cautions, console)

    def _draw(self, shape: Shape, plot: Path | None) -> None:
        if plot is None:
            return
        import matplotlib

        matplotlib.use("Agg")
        with written_whole(plot) as part:
            self.drawn(shape).savefig(part, bbox_inches="tight", dpi=150)


EffectsPicture = Annotated[Path | None, typer.Option(help="Draw the curves into this file, such as curves.png.")]


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
    plot: EffectsPicture = None,
    save: o.Save = None,
    model: o.ModelToAsk = None,
    seed: o.Seed = 0,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Say how the prediction of the target changes along each column: up, down, where it turns, and how far.

    Example: gpsift effects measurements.csv --target yield --plot curves.png
    """
    Question(_ask_effects, _show_effects, _draw_effects).answer(
        context,
        Given(file, target, model, html, plot, save, dry_run, json, quiet),
        seed=seed,
        likelihood=likelihood,
        hyper=hyper.made(seed, quiet=quiet),
        reading=Reading(drop, categorical, task.value, missing.value, rows, strict, table),
    )


def _ask_effects(model: Any, X: Any = None, **options: Any) -> Shape:
    return Shape(effects=effects_of(model, X, **options))


def _show_effects(shape: Shape, predicted: str, console: Console) -> None:
    assert shape.effects is not None
    show_effects(shape.effects, predicted, console)


def _draw_effects(shape: Shape) -> Figure:
    assert shape.effects is not None
    return shape.effects.plot()


PairsPicture = Annotated[
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
    plot: PairsPicture = None,
    save: o.Save = None,
    model: o.ModelToAsk = None,
    seed: o.Seed = 0,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Find the columns that act together, and the share of the variance that is due to each.

    Example: gpsift interactions measurements.csv --target yield --plot pairs.png
    """
    Question(_ask_interactions, _show_interactions, _draw_interactions).answer(
        context,
        Given(file, target, model, html, plot, save, dry_run, json, quiet),
        seed=seed,
        likelihood=likelihood,
        hyper=hyper.made(seed, quiet=quiet),
        reading=Reading(drop, categorical, task.value, missing.value, rows, strict, table),
    )


def _ask_interactions(model: Any, X: Any = None, *, seed: int, **units: Any) -> Shape:
    return Shape(
        interactions=interactions_of(model, X, **units), variance_shares=variance_shares(model, X, seed=seed, **units)
    )


def _show_interactions(shape: Shape, _predicted: str, console: Console) -> None:
    assert shape.interactions is not None
    assert shape.variance_shares is not None
    show_interactions(shape.interactions, shape.variance_shares, console)


def _draw_interactions(shape: Shape) -> Figure:
    from gpsift.decomposition.plots import pairs_with_surface

    assert shape.interactions is not None
    return pairs_with_surface(shape.interactions)


def explain(
    file: o.File,
    target: o.Target,
    row: Annotated[int | None, typer.Option(min=1, help="A row, counted from 1 below the header.")] = None,
    where: Annotated[str | None, typer.Option(help='A condition on rows, such as "age > 60".')] = None,
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
    seed: o.Seed = 0,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Take the prediction of one row, or of some rows, apart: what each column adds to the average, and how it reacts.

    Example: gpsift explain measurements.csv --target yield --row 17
    """
    if (row is None) == (where is None):
        raise typer.BadParameter('say which rows: either --row 17 or --where "age > 60"')
    reading = Reading(drop, categorical, task.value, missing.value, rows, strict, table)
    if dry_run:
        show_plan(file, target, reading, likelihood=likelihood, seed=seed, json=json, ranks_only=True)
        return
    with clear_errors(), remarks(quiet):
        read = reading.found(file, target)
        prepared = reading.planned(read, target).prepared
        places = _places(prepared, read.frame, row, where)
        analysis = analysed(
            prepared,
            None,
            select=False,
            likelihood=likelihood,
            hyper=hyper.made(seed, quiet=quiet),
            reading=Reading(most_rows=rows, strict=strict),
            seed=seed,
            work=Work(progress=o.shown(quiet)),
        )
        local = explain_rows(analysis, prepared.X.iloc[places], prepared.y[places])
        what = f"row {row}" if row is not None else f"{len(places)} rows where {where}"
        if json:
            typer.echo(local_as_json(analysis, local, what))
        else:
            show_local(analysis, local, what, prepared.rows.iloc[places], Output())


def _places(table: Prepared, frame: pd.DataFrame, row: int | None, where: str | None) -> np.ndarray:
    """Positions in the prepared table, whose index counts the rows of the file; conditions may name all its columns."""
    n_read = len(frame)
    if where is not None:
        places = np.flatnonzero(matching_rows(frame.loc[table.rows.index].assign(**table.rows), where))
        if places.size == 0:
            raise ValueError(f"No row satisfies {where!r}.")
        return places
    assert row is not None
    if row > n_read:
        raise ValueError(f"There is no row {row}; the table has {n_read}.")
    places = np.flatnonzero(table.rows.index == row)
    if places.size == 0:
        raise ValueError(f"Row {row} has missing values and was left out; see --missing and --dry-run.")
    return places
