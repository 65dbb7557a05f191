"""Errors as one line, and exit codes that mean something."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

# 2 is a wrong call, by convention of the library that reads it.
BAD_INPUT = 1
NO_ANSWER = 3
INTERRUPTED = 130


@contextmanager
def clear_errors(when_interrupted: str = "Nothing was written.") -> Iterator[None]:
    """One line on standard error in place of a traceback."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"gpsift: interrupted. {when_interrupted}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except (ValueError, TypeError, OSError, ImportError) as error:
        typer.echo(f"gpsift: {error}", err=True)
        raise typer.Exit(BAD_INPUT) from None
