"""Run the command ``gpsift``: load each of its commands when it is called, and end it by signals."""

from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from gpsift.app.cli.terminal import replace_missing_signs, silence_matplotlib
from gpsift.version import __version__

# The file that has the function of each command, in the order in which help lists the commands.
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
    """A mapping of commands by name, which imports the file of a command only when that command is called."""

    def __getitem__(self, name: str) -> Any:
        file_name = COMMANDS[name]
        try:
            file = importlib.import_module(f"gpsift.app.cli.{file_name}")
        except KeyboardInterrupt as interrupt:
            typer.echo("gpsift: interrupted.", err=True)
            sys.exit(exit_code(interrupt))
        single = typer.Typer(add_completion=False)
        single.command()(getattr(file, name))
        return typer.main.get_command(single)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class LazyGroup(TyperGroup):
    """A group whose commands are loaded when they are called."""

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.commands = Commands()  # type: ignore[assignment]  # a mapping that cannot be changed


app = typer.Typer(cls=LazyGroup, add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


def _print_version(is_given: bool) -> None:
    if is_given:
        typer.echo(f"gpsift {__version__}")
        raise typer.Exit


@app.callback()
def gpsift(
    version: Annotated[  # read by its callback
        bool, typer.Option("--version", help="Say which version this is.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Sift the inputs of a Gaussian process: which features matter, where, and how sure that is.

    Example: gpsift select measurements.csv --target yield --html report.html
    """


def main() -> None:
    """Entry point of the ``gpsift`` command."""
    replace_missing_signs()
    silence_matplotlib()
    handle_sigterm()
    app()


# Exit codes that a shell reports for programs ended by Ctrl-C or SIGTERM.
INTERRUPTED = 130
TERMINATED = 143


class Terminated(KeyboardInterrupt):
    """SIGTERM as an exception like that of Ctrl-C: otherwise worker processes would not end."""


def handle_sigterm() -> None:
    """Let SIGTERM raise `Terminated`, which unwinds the running command."""

    def end(*_: object) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, end)


def exit_code(interrupt: KeyboardInterrupt) -> int:
    """Return the exit code of a program that this interrupt has ended."""
    return TERMINATED if isinstance(interrupt, Terminated) else INTERRUPTED
