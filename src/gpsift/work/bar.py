"""A progress bar on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager


def is_shown(progress: bool | None) -> bool:
    """Whether to show a bar: as asked for, or where standard error is a terminal."""
    return sys.stderr.isatty() if progress is None else progress


class Bar(AbstractContextManager[Callable[[], None]]):
    """A progress bar with the time left; entering it gives the function that moves it on.

    Parameters
    ----------
    title : str
    total : int
        How often it will be moved on.
    transient : bool
        Whether it goes when it is done.
    """

    def __init__(self, title: str, total: int, *, transient: bool = False):
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=transient,
        )
        self._task = self._progress.add_task(title, total=total)

    def __enter__(self) -> Callable[[], None]:
        self._progress.start()
        return lambda: self._progress.advance(self._task)

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
