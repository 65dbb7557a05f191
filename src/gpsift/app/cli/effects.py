"""Commands about how columns act: ``gpsift effects``, ``gpsift interactions`` and ``gpsift explain``.

The first two fit a model to a table or load a saved one, compute effects, draw them, and print them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd
import typer
from rich.console import Console

from gpsift._utils.progress import progress_bar
from gpsift.app.analysis import Analysis
from gpsift.app.analysis.analysis import ColumnEffects
from gpsift.app.analysis.parts import add_effects
from gpsift.app.analysis.rows import explain_rows
from gpsift.app.analysis.saved_model import table_to_inputs, user_columns
from gpsift.app.cli import options as o
from gpsift.app.cli.json_answer import effects_as_json, explanation_as_json, saved_effects_as_json
from gpsift.app.cli.outputs import (
    check_writable,
    print_answer,
    print_errors,
    print_warnings,
    refuse_beside_model,
    run_analysis,
    save_figure,
    show_plan,
    write_outputs,
)
from gpsift.app.cli.saved import load_model
from gpsift.app.cli.terminal_answer import print_cautions, show_effects, show_explanation, show_interactions, show_model
from gpsift.app.tables.conditions import select_rows
from gpsift.app.tables.encode import ModelTable
from gpsift.app.tables.read import read_table
from gpsift.decomposition.effects import effects as effects_of
from gpsift.decomposition.interactions import interactions as interactions_of
from gpsift.decomposition.sobol import variance_shares

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Options that may be combined with a saved model; the others are about reading a table and fitting.
WITH_A_MODEL = ("file", "model", "plot", "seed", "json", "quiet")


@dataclass(frozen=True)
class EffectsFiles:
    """Files that `effects` writes, and the saved model that it may take."""

    html: o.Html = None
    plot: Annotated[Path | None, typer.Option(help="Draw the curves into this file, such as curves.png.")] = None
    save: o.Save = None
    model: Annotated[Path | None, typer.Option(help="A saved model to ask, in place of fitting one.")] = None


@dataclass(frozen=True)
class InteractionsFiles(EffectsFiles):
    """Files that `interactions` writes, and the saved model that it may take."""

    plot: Annotated[
        Path | None,
        typer.Option(help="Draw the shares of all pairs, and the surface of the strongest, into this file: pairs.png."),
    ] = None


@o.flatten
def effects(
    context: typer.Context,
    *,
    file: o.OptionalFile = None,
    target: o.OptionalTarget = None,
    reading: o.ReadingOptions,
    fit: o.FitOptions,
    files: EffectsFiles,
    run: o.RunOptions,
) -> None:
    """Say how the prediction of the target changes along each column: up, down, where it turns, and how far.

    Example: gpsift effects measurements.csv --target yield --plot curves.png
    """

    def show(found: ColumnEffects, predicted: str, console: Console) -> None:
        assert found.effects is not None
        show_effects(found.effects, predicted, console)

    def draw(found: ColumnEffects) -> Figure:
        assert found.effects is not None
        return found.effects.plot()

    command = EffectsCommand(lambda *model, **options: ColumnEffects(effects=effects_of(*model, **options)), show, draw)
    command.execute(context, file, target, reading, fit, files, run)


@o.flatten
def interactions(
    context: typer.Context,
    *,
    file: o.OptionalFile = None,
    target: o.OptionalTarget = None,
    reading: o.ReadingOptions,
    fit: o.FitOptions,
    files: InteractionsFiles,
    run: o.RunOptions,
) -> None:
    """Find the columns that act together, and the share of the variance that is due to each.

    Example: gpsift interactions measurements.csv --target yield --plot pairs.png
    """

    def compute(*model: Any, seed: int, **units: Any) -> ColumnEffects:
        pairs = interactions_of(*model, **units)
        return ColumnEffects(interactions=pairs, variance_shares=variance_shares(*model, seed=seed, **units))

    def show(found: ColumnEffects, _predicted: str, console: Console) -> None:
        assert found.interactions is not None
        assert found.variance_shares is not None
        show_interactions(found.interactions, found.variance_shares, console)

    def draw(found: ColumnEffects) -> Figure:
        from gpsift.decomposition.plots import pairs_with_surface

        assert found.interactions is not None
        return pairs_with_surface(found.interactions)

    EffectsCommand(compute, show, draw).execute(context, file, target, reading, fit, files, run)


@dataclass(frozen=True)
class EffectsCommand:
    """A command about effects of a model: the functions that compute, print and draw them."""

    compute: Callable[..., ColumnEffects]
    show: Callable[[ColumnEffects, str, Console], None]
    draw: Callable[[ColumnEffects], Figure]

    def execute(
        self,
        context: typer.Context,
        file: str | None,
        target: str | None,
        reading: o.ReadingOptions,
        fit: o.FitOptions,
        files: EffectsFiles,
        run: o.RunOptions,
    ) -> None:
        """Compute effects of a saved model, or of one fitted to a table; draw and print them, and write the files."""
        check_writable(html=files.html, plot=files.plot, save=files.save)
        if files.model is not None:
            refuse_beside_model(context, WITH_A_MODEL)
            with print_errors(), print_warnings(run.quiet):
                self._run_on_model(files.model, file, files.plot, run)
            return
        if file is None or target is None:
            raise typer.BadParameter(o.NO_TABLE)
        if reading.dry_run:
            show_plan(file, target, reading.make(fit.rows), fit.likelihood, run, ranks_only=True)
            return
        with print_errors(), print_warnings(run.quiet):
            self._run_on_table(run_analysis(file, target, reading, fit, run), files, run)

    def _run_on_table(self, analysis: Analysis, files: EffectsFiles, run: o.RunOptions) -> None:
        with progress_bar("curves and pairs", run.work.progress):
            found = self.compute(analysis.model_with_recipe, seed=analysis.seed, **analysis.unit_options)
        save_figure(lambda: self.draw(found), files.plot, bbox_inches="tight")
        if files.html is not None:
            analysis = add_effects(replace(analysis, column_effects=found), True, run.work)

        def show(analysis: Analysis, console: Console) -> None:
            show_model(analysis, console)
            self.show(found, analysis.predicted, console)
            print_cautions(analysis.cautions, console)

        to_json = partial(effects_as_json, found=found)
        write_outputs(analysis, run, html=files.html, save=files.save, show=show, to_json=to_json)

    def _run_on_model(self, file: Path, table: str | None, plot: Path | None, run: o.RunOptions) -> None:
        model = load_model(file)
        rows = None if table is None else table_to_inputs(read_table(table), model)
        X, cautions = (None, []) if rows is None else (rows.X, [step.finding for step in rows.steps])
        columns = user_columns(model)
        found = self.compute(model, X, seed=run.seed, groups=columns.groups, categorical=columns.categorical)
        save_figure(lambda: self.draw(found), plot, bbox_inches="tight")

        def show(found: ColumnEffects, console: Console) -> None:
            self.show(found, "the target", console)
            print_cautions(cautions, console)

        print_answer(found, lambda found: saved_effects_as_json(found, str(file), table, cautions), show, run)


@o.flatten
def explain(
    *,
    file: o.File,
    target: o.Target,
    row: Annotated[int | None, typer.Option(min=1, help="A row, counted from 1 below the header.")] = None,
    where: Annotated[str | None, typer.Option(help='A condition on rows, such as "age > 60".')] = None,
    reading: o.ReadingOptions,
    fit: o.FitOptions,
    run: o.RunOptions,
) -> None:
    """Take the prediction of one row, or of some rows, apart: what each column adds to the average, and how it reacts.

    Example: gpsift explain measurements.csv --target yield --row 17
    """
    if (row is None) == (where is None):
        raise typer.BadParameter('say which rows: either --row 17 or --where "age > 60"')
    choices = reading.make(fit.rows)
    if reading.dry_run:
        show_plan(file, target, choices, fit.likelihood, run, ranks_only=True)
        return
    with print_errors(), print_warnings(run.quiet):
        read = choices.load(file, target)
        table = choices.clean(read, target).table
        positions = _find_rows(table, read.frame, row, where)
        analysis = run_analysis(table, None, reading, fit, run)
        explanation = explain_rows(analysis, table.X.iloc[positions], table.y[positions])
        what = f"row {row}" if row is not None else f"{len(positions)} rows where {where}"
        print_answer(
            explanation,
            lambda found: explanation_as_json(analysis, found, what),
            lambda found, console: show_explanation(analysis, found, what, table.rows.iloc[positions], console),
            run,
        )


def _find_rows(table: ModelTable, frame: pd.DataFrame, row: int | None, where: str | None) -> np.ndarray:
    """Find rows of the cleaned table by their number in the file, or by a condition on any columns of the file."""
    n_read = len(frame)
    if where is not None:
        positions = np.flatnonzero(select_rows(frame.loc[table.rows.index].assign(**table.rows), where))
        if positions.size == 0:
            raise ValueError(f"No row satisfies {where!r}.")
        return positions
    assert row is not None
    if row > n_read:
        raise ValueError(f"There is no row {row}; the table has {n_read}.")
    positions = np.flatnonzero(table.rows.index == row)
    if positions.size == 0:
        raise ValueError(f"Row {row} has missing values and was left out; see --missing and --dry-run.")
    return positions
