"""Progress on standard error, with the time left."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any

from gpsift.counted import hearing
from gpsift.work.climbs import Estimated, Step, listening

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn


def is_shown(progress: bool | None) -> bool:
    """Whether to show a bar: as asked for, or where standard error is a terminal."""
    return sys.stderr.isatty() if progress is None else progress


class TaskBar(AbstractContextManager[Callable[[], None]]):
    """A bar of tasks that are counted; entering it gives the function that moves it on.

    Parameters
    ----------
    title : str
    total : int
        How often it will be moved on.
    transient : bool
        Whether it goes when it is done.
    """

    def __init__(self, title: str, total: int, *, transient: bool = False):
        from rich.progress import MofNCompleteColumn

        self._progress = _progress(MofNCompleteColumn(), transient=transient)
        self._task = self._progress.add_task(title, total=total)

    def __enter__(self) -> Callable[[], None]:
        self._progress.start()
        return lambda: self._progress.advance(self._task)

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


class FitBar(AbstractContextManager[None]):
    """A bar of a single fit, over the starts of its search for hyperparameters; it goes when the fit is done.

    A fit in several rounds has a bar for each: how many there will be is not known.

    Parameters
    ----------
    shows : bool or None
        None shows it where standard error is a terminal.
    """

    def __init__(self, shows: bool | None = None):
        self._shows = is_shown(shows)
        self._stack = ExitStack()

    def __enter__(self) -> None:
        if not self._shows:
            return
        from rich.progress import TaskProgressColumn

        progress = self._stack.enter_context(_progress(TaskProgressColumn(), transient=True))
        task = progress.add_task("fit", total=1.0)
        estimated = Estimated()

        def heard(step: Step) -> None:
            before = estimated.searches
            done = estimated.heard(step)
            if estimated.searches > max(before, 1):
                progress.reset(task, description=f"fit, round {estimated.searches}")
            progress.update(task, completed=done)

        self._stack.enter_context(listening(heard))

    def __exit__(self, *_: object) -> None:
        self._stack.close()


class ShareBar(AbstractContextManager[None]):
    """A bar of a computation whose loops are counted (`gpsift.counted`); it goes when that is done.

    Parameters
    ----------
    title : str
    shows : bool or None
        None shows it where standard error is a terminal.
    """

    def __init__(self, title: str, shows: bool | None = None):
        self._title, self._shows = title, is_shown(shows)
        self._stack = ExitStack()

    def __enter__(self) -> None:
        if not self._shows:
            return
        from rich.progress import TaskProgressColumn

        progress = self._stack.enter_context(_progress(TaskProgressColumn(), transient=True))
        task = progress.add_task(self._title, total=1.0)
        self._stack.enter_context(hearing(lambda share: progress.update(task, completed=share)))

    def __exit__(self, *_: object) -> None:
        self._stack.close()


class WaitingBar(AbstractContextManager[None]):
    """A sign of life and the time that has passed, for a step whose end is not known; it goes when that is done.

    Parameters
    ----------
    title : str
    shows : bool or None
        None shows it where standard error is a terminal.
    """

    def __init__(self, title: str, shows: bool | None = None):
        self._title, self._shows = title, is_shown(shows)
        self._stack = ExitStack()

    def __enter__(self) -> None:
        if self._shows:
            progress = self._stack.enter_context(_progress(transient=True))
            progress.add_task(self._title, total=None)

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _progress(*amount: ProgressColumn, **options: Any) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        *amount,
        TimeElapsedColumn(),
        *([TextColumn("left"), TimeRemainingColumn()] if amount else []),
        console=Console(stderr=True),
        **options,
    )
