"""Commands about how columns act: ``gpsift effects``, ``gpsift interactions`` and ``gpsift explain``.

The first two fit a model to a table or load a saved one, compute effects, draw them, and print them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd
import typer
from rich.console import Console

from gpsift._utils.parallel import Work
from gpsift._utils.progress import progress_bar
from gpsift.app.analysis import Analysis, Reading
from gpsift.app.analysis.analysis import ColumnEffects
from gpsift.app.analysis.parts import add_effects
from gpsift.app.analysis.rows import explain_rows as explain_rows
from gpsift.app.analysis.saved_model import table_to_inputs, user_columns
from gpsift.app.cli import options as o
from gpsift.app.cli.json_answer import local_as_json, saved_shape_as_json, shape_as_json
from gpsift.app.cli.outputs import (
    check_writable,
    print_errors,
    print_warnings,
    refuse_typed,
    run_analysis,
    save_figure,
    show_plan,
    write_outputs,
)
from gpsift.app.cli.saved import load_model
from gpsift.app.cli.terminal import Output
from gpsift.app.cli.terminal_answer import print_cautions, show_effects, show_interactions, show_local, show_model
from gpsift.app.tables.conditions import select_rows
from gpsift.app.tables.encode import ModelTable
from gpsift.app.tables.read import read_table
from gpsift.decomposition.effects import effects as effects_of
from gpsift.decomposition.interactions import interactions as interactions_of
from gpsift.decomposition.sobol import variance_shares

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Options that go with a saved model; the others are about reading a table and fitting.
WITH_A_MODEL = ("file", "model", "plot", "seed", "json", "quiet")


@dataclass(frozen=True)
class Arguments:
    """Arguments of both commands: a table with its target or a saved model, and where the answer goes."""

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
        """Refuse impossible arguments before the work begins."""
        for option, path in (("--html", self.html), ("--plot", self.plot), ("--save", self.save)):
            check_writable(option, path)
        if self.model is not None:
            others = [name for name in context.params if name not in WITH_A_MODEL]
            refuse_typed(context, others, "a saved model", "--model")
        elif self.file is None or self.target is None:
            raise typer.BadParameter("a table and its --target are needed, or a saved --model")


@dataclass(frozen=True)
class Question:
    """A question to a model: how to compute the answer, how to print it, and how to draw it."""

    compute: Callable[..., ColumnEffects]
    show: Callable[[ColumnEffects, str, Console], None]
    draw: Callable[[ColumnEffects], Figure]

    def answer(self, context: typer.Context, arguments: Arguments, seed: int, **options: Any) -> None:
        """Compute, draw, write page and model, and print; options are those of `analyse`."""
        arguments.check(context)
        with print_errors(), print_warnings(arguments.quiet):
            if arguments.model is not None:
                self._answer_model(arguments.model, arguments, seed)
            else:
                self._answer_table(arguments, seed=seed, **options)

    def _answer_table(self, arguments: Arguments, **options: Any) -> None:
        assert arguments.file is not None
        assert arguments.target is not None
        if arguments.dry_run:
            plan = {name: options[name] for name in ("likelihood", "seed")}
            show_plan(
                arguments.file, arguments.target, options["reading"], json=arguments.json, ranks_only=True, **plan
            )
            return
        work = Work(progress=o.progress_option(arguments.quiet))
        analysis = run_analysis(arguments.file, arguments.target, select=False, work=work, **options)
        with progress_bar("curves and pairs", work.progress):
            shape = self.compute(analysis.model_with_recipe, seed=analysis.seed, **analysis.unit_options)
        save_figure(lambda: self.draw(shape), arguments.plot, bbox_inches="tight")
        if arguments.html is not None:
            analysis = add_effects(replace(analysis, column_effects=shape), True, work)

        def show(analysis: Analysis, console: Console) -> None:
            show_model(analysis, console)
            self.show(shape, analysis.predicted, console)
            print_cautions(analysis.cautions, console)

        write_outputs(
            analysis,
            json=arguments.json,
            quiet=arguments.quiet,
            html=arguments.html,
            save=arguments.save,
            show=show,
            to_json=lambda analysis: shape_as_json(analysis, shape),
        )

    def _answer_model(self, model: Path, arguments: Arguments, seed: int) -> None:
        loaded = load_model(model)
        tidied = None if arguments.file is None else table_to_inputs(read_table(arguments.file), loaded)
        X, cautions = (None, ()) if tidied is None else (tidied.X, [step.finding for step in tidied.steps])
        features = user_columns(loaded)
        shape = self.compute(loaded, X, seed=seed, groups=features.groups, categorical=features.categorical)
        save_figure(lambda: self.draw(shape), arguments.plot, bbox_inches="tight")
        if arguments.json:
            typer.echo(saved_shape_as_json(shape, str(model), arguments.file, cautions))
            return
        console = Output()
        self.show(shape, "the target", console)
        print_cautions(cautions, console)


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
        Arguments(file, target, model, html, plot, save, dry_run, json, quiet),
        seed=seed,
        likelihood=likelihood,
        hyper=hyper.make(seed, quiet=quiet),
        reading=Reading(drop, categorical, task.value, missing.value, rows, strict, table),
    )


def _ask_effects(model: Any, X: Any = None, **options: Any) -> ColumnEffects:
    return ColumnEffects(effects=effects_of(model, X, **options))


def _show_effects(shape: ColumnEffects, predicted: str, console: Console) -> None:
    assert shape.effects is not None
    show_effects(shape.effects, predicted, console)


def _draw_effects(shape: ColumnEffects) -> Figure:
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
        Arguments(file, target, model, html, plot, save, dry_run, json, quiet),
        seed=seed,
        likelihood=likelihood,
        hyper=hyper.make(seed, quiet=quiet),
        reading=Reading(drop, categorical, task.value, missing.value, rows, strict, table),
    )


def _ask_interactions(model: Any, X: Any = None, *, seed: int, **units: Any) -> ColumnEffects:
    return ColumnEffects(
        interactions=interactions_of(model, X, **units), variance_shares=variance_shares(model, X, seed=seed, **units)
    )


def _show_interactions(shape: ColumnEffects, _predicted: str, console: Console) -> None:
    assert shape.interactions is not None
    assert shape.variance_shares is not None
    show_interactions(shape.interactions, shape.variance_shares, console)


def _draw_interactions(shape: ColumnEffects) -> Figure:
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
    with print_errors(), print_warnings(quiet):
        read = reading.load(file, target)
        prepared = reading.clean(read, target).table
        places = _find_rows(prepared, read.frame, row, where)
        analysis = run_analysis(
            prepared,
            None,
            select=False,
            likelihood=likelihood,
            hyper=hyper.make(seed, quiet=quiet),
            reading=Reading(most_rows=rows, strict=strict),
            seed=seed,
            work=Work(progress=o.progress_option(quiet)),
        )
        local = explain_rows(analysis, prepared.X.iloc[places], prepared.y[places])
        what = f"row {row}" if row is not None else f"{len(places)} rows where {where}"
        if json:
            typer.echo(local_as_json(analysis, local, what))
        else:
            show_local(analysis, local, what, prepared.rows.iloc[places], Output())


def _find_rows(table: ModelTable, frame: pd.DataFrame, row: int | None, where: str | None) -> np.ndarray:
    """Find rows of the prepared table, whose index counts the rows of the file; conditions may name all its columns."""
    n_read = len(frame)
    if where is not None:
        places = np.flatnonzero(select_rows(frame.loc[table.rows.index].assign(**table.rows), where))
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
