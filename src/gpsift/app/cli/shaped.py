"""What `gpsift effects` and `gpsift interactions` have in common: fit or load a model, ask, draw, print."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from gpsift._utils.atomic import written_whole
from gpsift._utils.parallel import Work, share_bar
from gpsift.app.analysis import Analysis
from gpsift.app.analysis.analysis import ColumnEffects
from gpsift.app.analysis.parts import add_effects
from gpsift.app.analysis.saved_model import table_to_inputs, user_columns
from gpsift.app.cli import options as o
from gpsift.app.cli.answering import analysed, answered, check_writable, refuse_typed, remarks
from gpsift.app.cli.dry_run import show_plan
from gpsift.app.cli.errors import clear_errors
from gpsift.app.cli.machine import saved_shape_as_json, shape_as_json
from gpsift.app.cli.saved import load_model
from gpsift.app.cli.shown import say_cautions, show_model
from gpsift.app.cli.terminal import Output
from gpsift.app.tables.read import read_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What can be said of a saved model; the rest is about reading a table and fitting.
BESIDE_A_MODEL = ("file", "model", "plot", "seed", "json", "quiet")


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
            others = [name for name in context.params if name not in BESIDE_A_MODEL]
            refuse_typed(context, others, "a saved model", "--model")
        elif self.file is None or self.target is None:
            raise typer.BadParameter("a table and its --target are needed, or a saved --model")


@dataclass(frozen=True)
class Question:
    """What is asked of a model, how the answer is shown beside what is predicted, and how it is drawn."""

    asked: Callable[..., ColumnEffects]
    show: Callable[[ColumnEffects, str, Console], None]
    drawn: Callable[[ColumnEffects], Figure]

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
            shape = self.asked(analysis.model_with_recipe, seed=analysis.seed, **analysis.unit_options)
        self._draw(shape, given.plot)
        if given.html is not None:
            analysis = add_effects(replace(analysis, column_effects=shape), True, work)

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
        tidied = None if given.file is None else table_to_inputs(read_table(given.file), loaded)
        X, cautions = (None, ()) if tidied is None else (tidied.X, [step.finding for step in tidied.steps])
        features = user_columns(loaded)
        shape = self.asked(loaded, X, seed=seed, groups=features.groups, categorical=features.categorical)
        self._draw(shape, given.plot)
        if given.json:
            typer.echo(saved_shape_as_json(shape, str(model), given.file, cautions))
            return
        console = Output()
        self.show(shape, "the target", console)
        say_cautions(cautions, console)

    def _draw(self, shape: ColumnEffects, plot: Path | None) -> None:
        if plot is None:
            return
        import matplotlib

        matplotlib.use("Agg")
        with written_whole(plot) as part:
            self.drawn(shape).savefig(part, bbox_inches="tight", dpi=150)
