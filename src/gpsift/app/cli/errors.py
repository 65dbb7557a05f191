"""Errors as one line, and exit codes that mean something."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from gpsift.app.cli.ending import code_of
from gpsift.app.tables.steps import Choice, TableError

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
        typer.echo(f"gpsift: {' '.join(error.render(_as_option).split())}", err=True)
        raise typer.Exit(BAD_INPUT) from None
    except (ValueError, TypeError, OSError, ImportError, ArithmeticError) as error:
        typer.echo(f"gpsift: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(BAD_INPUT) from None


def _as_option(choice: Choice) -> str:
    """As it is typed; the name of a column in quotes."""
    if choice.option == "most_rows":
        return f"--rows {choice.value}"
    return f"--{choice.option} {repr(choice.value) if choice.option in ('drop', 'categorical') else choice.value}"
