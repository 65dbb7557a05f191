"""What the commands on tables have in common: read, analyse with a sign of life, answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from gpsift.analysis import Analysis, analyse
from gpsift.cli.errors import NO_ANSWER
from gpsift.cli.machine import as_json
from gpsift.notices import Notices, messages


def check_page(html: Path | None) -> None:
    """Refuse a page that could not be written, before the work begins."""
    if html is not None and not html.resolve().parent.is_dir():
        raise typer.BadParameter(f"the folder {html.parent} does not exist", param_hint="--html")


@contextmanager
def remarks(quiet: bool) -> Iterator[None]:
    """Warnings as lines on standard error, each once; none if quiet."""
    with Notices() as caught:
        yield
    if not quiet:
        for message in messages(caught):
            typer.echo(f"gpsift: {message}", err=True)


def analysed(quiet: bool, data: Any, target: Any, **options: Any) -> Analysis:
    """The analysis, with a sign of life while it goes on."""
    # Progress bars of searches write to the same terminal; one at a time.
    searches = options.get("select") or options.get("samples")
    console = Console(stderr=True, quiet=quiet or bool(searches))
    with console.status("Fitting a Gaussian process ..."):
        return analyse(data, target, progress=False if quiet else None, **options)


def answered(
    analysis: Analysis,
    *,
    json: bool,
    quiet: bool,
    html: Path | None,
    save: Path | None,
    show: Callable[[Analysis, Console], None],
) -> None:
    """Print the answer, write page and model, and end with a code that says whether there was one."""
    if save is not None:
        analysis.model.save(save)
    if html is not None:
        from gpsift.page import write_page

        write_page(analysis, html)
    if json:
        typer.echo(as_json(analysis))
    else:
        show(analysis, Console())
    if html is not None and not quiet:
        typer.echo(f"The page is in {html}.", err=True)
    if analysis.model.explains is False:
        raise typer.Exit(NO_ANSWER)
