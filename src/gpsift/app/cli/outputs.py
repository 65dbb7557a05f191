"""Errors as one line, and exit codes that mean something."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import typer
from rich.console import Console
from rich.markup import escape

from gpsift._utils.parallel import Work, waiting_bar
from gpsift._utils.warnings import Notices, messages
from gpsift.app.analysis import Analysis, analyse
from gpsift.app.analysis.choices import Reading
from gpsift.app.analysis.planned import PlannedAnalysis, planned_analysis
from gpsift.app.cli.app import code_of
from gpsift.app.cli.json_answer import as_json, plan_as_json
from gpsift.app.cli.options import shown
from gpsift.app.cli.terminal import MOST_ROWS_SHOWN, Output, new_table, shortened
from gpsift.app.cli.terminal_answer import say_cautions, say_table
from gpsift.app.tables.tabular import Choice, TableError

# 2 is a wrong call, by convention of the library that reads it.
BAD_INPUT = 1
NO_ANSWER = 3
NOBODY_READS = 141  # as a shell has it for a program that a closed pipe has ended
KEPT = "Finished fits are kept; the same command goes on from there."


@contextmanager
def clear_errors(when_interrupted: str = "No half-written file is left.") -> Iterator[None]:
    """One line on standard error in place of a traceback."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        typer.echo(f"gpsift: interrupted. {when_interrupted}", err=True)
        raise typer.Exit(code_of(interrupt)) from None
    except BrokenPipeError:
        # Python flushes once more at its end, and would complain there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(NOBODY_READS) from None
    except MemoryError:
        typer.echo("gpsift: there is not enough memory for this many rows; --rows takes fewer.", err=True)
        raise typer.Exit(BAD_INPUT) from None
    except TableError as error:
        typer.echo(f"gpsift: {' '.join(error.worded(_as_option).split())}", err=True)
        raise typer.Exit(BAD_INPUT) from None
    except (ValueError, TypeError, OSError, ImportError, ArithmeticError) as error:
        typer.echo(f"gpsift: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(BAD_INPUT) from None


def _as_option(choice: Choice) -> str:
    """As it is typed; the name of a column in quotes."""
    if choice.option == "most_rows":
        return f"--rows {choice.value}"
    return f"--{choice.option} {repr(choice.value) if choice.option in ('drop', 'categorical') else choice.value}"


T = TypeVar("T")


def check_writable(option: str, path: Path | None) -> None:
    """Refuse a file that could not be written, before the work begins."""
    if path is None:
        return
    folder = path.resolve().parent
    if not folder.is_dir():
        raise typer.BadParameter(f"the folder {path.parent} does not exist", param_hint=option)
    if path.is_dir():
        raise typer.BadParameter(f"{path} is a folder; name a file", param_hint=option)
    if not os.access(folder, os.W_OK):
        raise typer.BadParameter(f"nothing may be written into the folder {path.parent}", param_hint=option)


def refuse_typed(context: typer.Context, names: Iterable[str], who: str, beside: str) -> None:
    """Refuse options that say nothing beside another one, if they were given and not left to their defaults."""
    sources = {name: context.get_parameter_source(name) for name in names}
    typed = [f"--{name}" for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    if typed:
        raise typer.BadParameter(f"{who} takes no {', '.join(typed)}", param_hint=beside)


@contextmanager
def remarks(quiet: bool) -> Iterator[None]:
    """Warnings as lines on standard error, each once; none if quiet, and none where an error says it all."""
    with Notices() as caught:
        try:
            yield
        except typer.Exit:  # an answer as well, whose code says what it is worth
            _say(caught, quiet)
            raise
    _say(caught, quiet)


def _say(caught: list[Any], quiet: bool) -> None:
    for message in () if quiet else messages(caught):
        typer.echo(f"gpsift: {message}", err=True)


def analysed(data: Any, target: Any, *, work: Work, **options: Any) -> Analysis:
    """The analysis, and what was typed to have it."""
    return replace(analyse(data, target, work=work, **options), command=typed())


def typed() -> str:
    """The command as it was typed."""
    return shlex.join(["gpsift", *sys.argv[1:]])


def answered(
    analysis: Analysis,
    *,
    json: bool,
    quiet: bool,
    html: Path | None,
    save: Path | None,
    show: Callable[[Analysis, Console], None],
    dumped: Callable[[Analysis], str] = as_json,
) -> None:
    """Print the answer, write page and model, and end with a code that says whether there was one."""
    if save is not None:
        analysis.save_model(save)
    if html is not None:
        from gpsift.app.html import write_page

        with waiting_bar("writing the page", shown(quiet)):
            write_page(analysis, html)
    tell(analysis, dumped, show, json=json, html=html, quiet=quiet)
    if analysis.model.explains is False:
        raise typer.Exit(NO_ANSWER)


def tell(
    answer: T,
    dumped: Callable[[T], str],
    show: Callable[[T, Console], None],
    *,
    json: bool,
    html: Path | None,
    quiet: bool,
) -> None:
    """Print an answer, as JSON or for people, and say where its page is."""
    if json:
        typer.echo(dumped(answer))
    else:
        show(answer, Output())
    if html is not None and not quiet:
        typer.echo(f"The page is in {html}.", err=True)


def show_plan(
    file: str,
    target: str,
    reading: Reading,
    *,
    likelihood: str | None,
    seed: int,
    json: bool,
    ranks_only: bool = False,
) -> None:
    """Print what would be done with a table."""
    with clear_errors():
        plan = planned_analysis(file, target, reading, likelihood=likelihood, seed=seed, ranks_only=ranks_only)
        if json:
            typer.echo(plan_as_json(plan))
        else:
            _print(plan, Output())


def _print(plan: PlannedAnalysis, console: Console) -> None:
    say_table(plan, console)
    table = new_table(["column", "taken as"], texts=("column", "taken as"))
    for name, kind in list(plan.kinds.items())[:MOST_ROWS_SHOWN]:
        table.add_row(escape(shortened(name)), kind)
    if len(plan.kinds) > MOST_ROWS_SHOWN:
        table.add_row(f"... and {len(plan.kinds) - MOST_ROWS_SHOWN} more", "")
    console.print(table)
    if not plan.cautions:
        console.print("Nothing needs to be done with the table.")
    say_cautions(plan.cautions, console)
