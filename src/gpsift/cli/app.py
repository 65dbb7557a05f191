"""All commands under one name."""

from __future__ import annotations

from typing import Annotated

import typer

from gpsift.cli.compare import compare
from gpsift.cli.demo import demo
from gpsift.cli.discover import discover
from gpsift.cli.effects import effects
from gpsift.cli.errors import heed_termination
from gpsift.cli.explain import explain
from gpsift.cli.interactions import interactions
from gpsift.cli.power import power
from gpsift.cli.rank import rank
from gpsift.cli.reproduce import reproduce
from gpsift.cli.select import select
from gpsift.cli.stability import stability
from gpsift.cli.terminal import allow_any_sign, say_errors_only
from gpsift.version import __version__

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gpsift {__version__}")
        raise typer.Exit


@app.callback()
def gpsift(
    version: Annotated[  # read by the function that is called with it
        bool, typer.Option("--version", help="Say which version this is.", callback=_say_version, is_eager=True)
    ] = False,
) -> None:
    """Sift the inputs of a Gaussian process: which features matter, where, and how sure that is.

    Example: gpsift select measurements.csv --target yield --html report.html
    """


for command in (rank, select, discover, power, effects, interactions, explain, stability, compare, reproduce, demo):
    app.command()(command)


def main() -> None:
    """Entry point of the ``gpsift`` command."""
    allow_any_sign()
    say_errors_only()
    heed_termination()
    app()
