"""Print answers, warnings and errors, write figure, page and model, and end commands with their exit codes."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import typer
from rich.console import Console
from rich.markup import escape

from gpsift._utils.atomic import atomic_write
from gpsift._utils.parallel import Work
from gpsift._utils.progress import spinner
from gpsift._utils.text import shorten
from gpsift._utils.warnings import collect_warnings, messages
from gpsift.app.analysis import Analysis, analyse
from gpsift.app.analysis.options import Reading, Selection
from gpsift.app.analysis.parts import add_intervals
from gpsift.app.analysis.run import AnalysisPlan, plan_analysis
from gpsift.app.cli.app import exit_code
from gpsift.app.cli.json_answer import as_json, plan_as_json
from gpsift.app.cli.options import FitOptions, JobOptions, PartOptions, ReadingOptions, RunOptions
from gpsift.app.cli.terminal import MOST_ROWS_SHOWN, Output, new_table
from gpsift.app.cli.terminal_answer import print_cautions, print_data
from gpsift.app.tables.steps import Choice, TableError

# Exit codes. typer itself ends a wrong call with 2.
BAD_INPUT = 1
NO_ANSWER = 3
CLOSED_PIPE = 141  # the exit code that a shell reports for a program ended by a closed pipe
NOTHING_LEFT = "No half-written file is left."
FITS_KEPT = "Finished fits are kept; the same command goes on from there."

T = TypeVar("T")


@contextmanager
def print_errors(when_interrupted: str = NOTHING_LEFT) -> Iterator[None]:
    """Print errors as one line on standard error in place of a traceback, and end with an exit code."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        typer.echo(f"gpsift: interrupted. {when_interrupted}", err=True)
        raise typer.Exit(exit_code(interrupt)) from None
    except BrokenPipeError:
        # Python flushes standard output once more when it exits, and would raise this error again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(CLOSED_PIPE) from None
    except MemoryError:
        message = "there is not enough memory for this many rows; --rows takes fewer."
    except TableError as error:
        message = error.render(_format_option)
    except (ValueError, TypeError, OSError, ImportError, ArithmeticError) as error:
        message = str(error)
    else:
        return
    typer.echo(f"gpsift: {' '.join(message.split())}", err=True)
    raise typer.Exit(BAD_INPUT)


def interruption_note(checkpoint: Path | str | os.PathLike[str] | None) -> str:
    """Return what is kept after an interruption, in words."""
    return NOTHING_LEFT if checkpoint is None else FITS_KEPT


def _format_option(choice: Choice) -> str:
    """Write a choice as it is typed, the name of a column in quotes."""
    if choice.option == "most_rows":
        return f"--rows {choice.value}"
    return f"--{choice.option} {repr(choice.value) if choice.option in ('drop', 'categorical') else choice.value}"


def check_writable(**paths: Path | None) -> None:
    """Refuse files that could not be written, by the names of their options, before the work begins."""
    for name, path in paths.items():
        if path is None:
            continue
        folder = path.resolve().parent
        problem = ""
        if not folder.is_dir():
            problem = f"the folder {path.parent} does not exist"
        elif path.is_dir():
            problem = f"{path} is a folder; name a file"
        elif not os.access(folder, os.W_OK):
            problem = f"nothing may be written into the folder {path.parent}"
        if problem:
            raise typer.BadParameter(problem, param_hint=f"--{name}")


def refuse_typed(context: typer.Context, names: Iterable[str], who: str, beside: str) -> None:
    """Refuse options that do not go with the option `beside`, if they were typed and not left to their defaults."""
    sources = {name: context.get_parameter_source(name) for name in names}
    typed = [f"--{name}" for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    if typed:
        raise typer.BadParameter(f"{who} takes no {', '.join(typed)}", param_hint=beside)


def refuse_beside_model(context: typer.Context, allowed: Sequence[str]) -> None:
    """Refuse options that do not go with a saved model."""
    refuse_typed(context, [name for name in context.params if name not in allowed], "a saved model", "--model")


@contextmanager
def print_warnings(quiet: bool) -> Iterator[None]:
    """Print warnings as lines on standard error, each once; none if quiet, and none after an error."""
    with collect_warnings() as caught:
        try:
            yield
        except typer.Exit:  # raised also after an answer, for its exit code
            _print_messages(caught, quiet)
            raise
    _print_messages(caught, quiet)


def _print_messages(caught: list[Any], quiet: bool) -> None:
    for message in () if quiet else messages(caught):
        typer.echo(f"gpsift: {message}", err=True)


def run_analysis(
    data: Any,
    target: Any,
    reading: ReadingOptions,
    fit: FitOptions,
    run: RunOptions | JobOptions,
    *,
    select: bool | Selection = False,
    **options: Any,
) -> Analysis:
    """Analyse a table, and note the command in the analysis."""
    analysis = analyse(
        data,
        target,
        select=select,
        likelihood=fit.likelihood,
        hyper=fit.make_hyper(run),
        reading=reading.make(fit.rows),
        seed=run.seed,
        work=run.work,
        **options,
    )
    return replace(analysis, command=command_line())


def add_parts(analysis: Analysis, parts: PartOptions, work: Work, *, full: bool) -> Analysis:
    """Add intervals to an analysis and, for a full answer (a page or JSON), a test and effects.

    Each part is added if its option asks for it, or by default if it is quick.
    """
    serial = Work(progress=work.progress)
    analysis = add_intervals(analysis, parts.intervals, serial)
    if not full:
        return analysis
    from gpsift.app.analysis.parts import add_effects, add_test

    return add_effects(add_test(analysis, parts.test, work), parts.effects, serial)


def command_line() -> str:
    """Return the command as it was typed."""
    return shlex.join(["gpsift", *sys.argv[1:]])


def write_outputs(
    analysis: Analysis,
    run: RunOptions | JobOptions,
    *,
    html: Path | None,
    save: Path | None = None,
    show: Callable[[Analysis, Console], None],
    to_json: Callable[[Analysis], str] = as_json,
) -> None:
    """Print the answer, write page and model, and end with a code if the model explains nothing."""
    if save is not None:
        analysis.save_model(save)
    if html is not None:
        from gpsift.app.html import write_page

        with spinner("writing the page", run.work.progress):
            write_page(analysis, html)
    print_answer(analysis, to_json, show, run, html=html)
    if analysis.model.explains is False:
        raise typer.Exit(NO_ANSWER)


def print_answer(
    answer: T,
    to_json: Callable[[T], str],
    show: Callable[[T, Console], None],
    run: RunOptions | JobOptions,
    *,
    html: Path | None = None,
) -> None:
    """Print an answer, as JSON or for people, and say where its page is."""
    if run.json:
        typer.echo(to_json(answer))
    else:
        show(answer, Output())
    if html is not None and not run.quiet:
        typer.echo(f"The page is in {html}.", err=True)


def save_figure(draw: Callable[[], Any], path: Path | None, **options: Any) -> None:
    """Draw a matplotlib figure, or axes, and write it to a file, which appears whole or not at all."""
    if path is None:
        return
    import matplotlib

    matplotlib.use("Agg")
    drawn = draw()
    with atomic_write(path) as part:
        getattr(drawn, "figure", drawn).savefig(part, dpi=150, **options)


def show_plan(
    file: str,
    target: str,
    reading: Reading,
    likelihood: str | None,
    run: RunOptions | JobOptions,
    *,
    ranks_only: bool = False,
) -> None:
    """Print how a table would be read and cleaned, without a fit."""
    with print_errors():
        plan = plan_analysis(file, target, reading, likelihood=likelihood, seed=run.seed, ranks_only=ranks_only)
        print_answer(plan, plan_as_json, _show_plan, run)


def _show_plan(plan: AnalysisPlan, console: Console) -> None:
    print_data(plan, console)
    table = new_table(["column", "taken as"], texts=("column", "taken as"))
    for name, kind in list(plan.kinds.items())[:MOST_ROWS_SHOWN]:
        table.add_row(escape(shorten(name)), kind)
    if len(plan.kinds) > MOST_ROWS_SHOWN:
        table.add_row(f"... and {len(plan.kinds) - MOST_ROWS_SHOWN} more", "")
    console.print(table)
    if not plan.cautions:
        console.print("Nothing needs to be done with the table.")
    print_cautions(plan.cautions, console)
