"""What the commands on tables have in common: check, analyse with progress, answer."""

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

from gpsift._utils.notices import Notices, messages
from gpsift._utils.parallel import Work, waiting_bar
from gpsift.app.analysis import Analysis, analyse
from gpsift.app.cli.errors import NO_ANSWER
from gpsift.app.cli.machine import as_json
from gpsift.app.cli.options import shown
from gpsift.app.cli.terminal import Output

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
