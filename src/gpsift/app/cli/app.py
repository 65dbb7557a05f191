"""All commands under one name."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from gpsift.app.cli.ending import code_of, heed_termination
from gpsift.app.cli.terminal import allow_any_sign, say_errors_only
from gpsift.version import __version__

# Each is the function of that name in the file of that name, in the order in which help lists them.
COMMANDS = (
    "rank",
    "select",
    "discover",
    "power",
    "effects",
    "interactions",
    "explain",
    "stability",
    "compare",
    "reproduce",
    "demo",
)


class Commands(Mapping[str, Any]):
    """The commands by name, each loaded when it is asked for: one does not wait for what another one needs."""

    def __getitem__(self, name: str) -> Any:
        if name not in COMMANDS:
            raise KeyError(name)
        try:
            file = importlib.import_module(f"gpsift.app.cli.{name}")
        except KeyboardInterrupt as interrupt:
            typer.echo("gpsift: interrupted.", err=True)
            sys.exit(code_of(interrupt))
        alone = typer.Typer(add_completion=False)
        alone.command()(getattr(file, name))
        return typer.main.get_command(alone)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class OnDemand(TyperGroup):
    """A group of commands that are loaded when they are asked for."""

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.commands = Commands()  # type: ignore[assignment]  # nothing is added to it


app = typer.Typer(cls=OnDemand, add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


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


def main() -> None:
    """Entry point of the ``gpsift`` command."""
    allow_any_sign()
    say_errors_only()
    heed_termination()
    app()
