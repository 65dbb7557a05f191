"""Progress on standard error, with the time left. With `shows=None` a bar is there where a terminal is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gpsift._utils.progress import hearing

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID


def is_shown(progress: bool | None) -> bool:
    """Whether to show a bar: as asked for, or where standard error is a terminal."""
    return sys.stderr.isatty() if progress is None else progress


@contextmanager
def task_bar(title: str, total: int, *, transient: bool = False) -> Iterator[Callable[[], None]]:
    """A bar of tasks that are counted, and the function that moves it on, as often as `total`."""
    from rich.progress import MofNCompleteColumn

    with _progress(MofNCompleteColumn(), transient=transient) as progress:
        task = progress.add_task(title, total=total)
        yield lambda: progress.advance(task)


@contextmanager
def fit_bar(shows: bool | None = None) -> Iterator[None]:
    """Of a single fit, over the starts of its search for hyperparameters.

    A fit in several rounds has a bar for each: how many there will be is not known.
    """
    with _share_of("fit", shows) as (progress, task):
        searches, before = 1, 0.0

        def heard(share: float) -> None:
            nonlocal searches, before
            if share < before:  # within a search it only grows
                searches += 1
                progress.reset(task, description=f"fit, round {searches}")
            before = share
            progress.update(task, completed=share)

        def told(words: str) -> None:
            progress.update(task, description=f"fit: {words}")

        with hearing(heard, "search"), hearing(told, "words"):
            yield


@contextmanager
def share_bar(title: str, shows: bool | None = None) -> Iterator[None]:
    """Of a computation whose loops are counted (`gpsift._utils.progress`)."""
    with _share_of(title, shows) as (progress, task), hearing(lambda share: progress.update(task, completed=share)):
        yield


@contextmanager
def waiting_bar(title: str, shows: bool | None = None) -> Iterator[None]:
    """A sign of life and the time that has passed, for a step whose end is not known."""
    with _progress(transient=True, disable=not is_shown(shows)) as progress:
        progress.add_task(title, total=None)
        yield


@contextmanager
def _share_of(title: str, shows: bool | None) -> Iterator[tuple[Progress, TaskID]]:
    """A bar that goes from 0 to 1, with the time left."""
    from rich.progress import TaskProgressColumn

    with _progress(TaskProgressColumn(), transient=True, disable=not is_shown(shows)) as progress:
        yield progress, progress.add_task(title, total=1.0)


def _progress(*amount: ProgressColumn, disable: bool = False, **options: Any) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        *amount,
        TimeElapsedColumn(),
        *([TextColumn("left"), TimeRemainingColumn()] if amount else []),
        # rich before 14.3 ends a bar that is not shown with an empty line.
        console=Console(stderr=True, quiet=disable),
        disable=disable,
        **options,
    )
