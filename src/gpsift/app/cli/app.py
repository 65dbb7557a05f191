"""The command ``gpsift``: its commands, each loaded when it is called, and how signals end it."""

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
    """The commands by name, each loaded when it is called, so that it does not wait for imports of the others."""

    def __getitem__(self, name: str) -> Any:
        file_name = COMMANDS[name]
        try:
            file = importlib.import_module(f"gpsift.app.cli.{file_name}")
        except KeyboardInterrupt as interrupt:
            typer.echo("gpsift: interrupted.", err=True)
            sys.exit(exit_code(interrupt))
        alone = typer.Typer(add_completion=False)
        alone.command()(getattr(file, name))
        return typer.main.get_command(alone)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class OnDemand(TyperGroup):
    """A group whose commands are loaded when they are called."""

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.commands = Commands()  # type: ignore[assignment]  # no command is added to it


app = typer.Typer(cls=OnDemand, add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


def _print_version(wanted: bool) -> None:
    if wanted:
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


# Exit codes that a shell has for programs that Ctrl-C or SIGTERM has ended.
INTERRUPTED = 130
TERMINATED = 143


class Terminated(KeyboardInterrupt):
    """SIGTERM, treated like Ctrl-C: otherwise processes that work for this one would go on."""


def handle_sigterm() -> None:
    """Let SIGTERM raise `Terminated`, which unwinds the running command."""

    def end(*_: object) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, end)


def exit_code(interrupt: KeyboardInterrupt) -> int:
    """Return the exit code of a program that this interrupt has ended."""
    return TERMINATED if isinstance(interrupt, Terminated) else INTERRUPTED
