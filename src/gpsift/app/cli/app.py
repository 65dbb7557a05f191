"""All commands under one name."""

from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from gpsift.app.cli.terminal import allow_any_sign, say_errors_only
from gpsift.version import __version__

# Command -> the file that has it as a function of that name; in the order in which help lists them.
COMMANDS = {
    "rank": "rank",
    "select": "rank",
    "discover": "rank",
    "power": "saved",
    "effects": "effects",
    "interactions": "effects",
    "explain": "effects",
    "stability": "rank",
    "compare": "saved",
    "reproduce": "demo",
    "demo": "demo",
}


class Commands(Mapping[str, Any]):
    """The commands by name, each loaded when it is asked for: one does not wait for what another one needs."""

    def __getitem__(self, name: str) -> Any:
        file_name = COMMANDS[name]
        try:
            file = importlib.import_module(f"gpsift.app.cli.{file_name}")
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


# As a shell has them for a program that Ctrl-C or a request to end has ended.
INTERRUPTED = 130
TERMINATED = 143


class Terminated(KeyboardInterrupt):
    """The system asks to end. To be treated like Ctrl-C: otherwise processes that work for this one would go on."""


def heed_termination() -> None:
    """Let a request to end unwind what is going on."""

    def end(*_: object) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, end)


def code_of(interrupt: KeyboardInterrupt) -> int:
    """The exit code of a program that this has ended."""
    return TERMINATED if isinstance(interrupt, Terminated) else INTERRUPTED
