"""Progress on standard error, with the time left."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any

from gpsift.progress import hearing

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID


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


class PassingBar(AbstractContextManager[None], ABC):
    """A bar of one step, where someone sees it; it goes when the step is done.

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
            self._show()

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @abstractmethod
    def _show(self) -> None:
        """Draw the bar, and have it moved on until the stack is closed."""

    def _share(self) -> tuple[Progress, TaskID]:
        """A bar that goes from 0 to 1, with the time left."""
        from rich.progress import TaskProgressColumn

        progress = self._stack.enter_context(_progress(TaskProgressColumn(), transient=True))
        return progress, progress.add_task(self._title, total=1.0)


class FitBar(PassingBar):
    """Of a single fit, over the starts of its search for hyperparameters.

    A fit in several rounds has a bar for each: how many there will be is not known.
    """

    def __init__(self, shows: bool | None = None):
        super().__init__("fit", shows)

    def _show(self) -> None:
        progress, task = self._share()
        searches, before = 1, 0.0

        def heard(share: float) -> None:
            nonlocal searches, before
            if share < before:  # within a search it only grows
                searches += 1
                progress.reset(task, description=f"fit, round {searches}")
            before = share
            progress.update(task, completed=share)

        self._stack.enter_context(hearing(heard, "search"))


class ShareBar(PassingBar):
    """Of a computation whose loops are counted (`gpsift.progress`)."""

    def _show(self) -> None:
        progress, task = self._share()
        self._stack.enter_context(hearing(lambda share: progress.update(task, completed=share)))


class WaitingBar(PassingBar):
    """A sign of life and the time that has passed, for a step whose end is not known."""

    def _show(self) -> None:
        self._stack.enter_context(_progress(transient=True)).add_task(self._title, total=None)


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
