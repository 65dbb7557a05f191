"""Progress bars on standard error, with the time left. With `shows=None` there is a bar where there is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gpsift._utils.progress import on_progress

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID


def is_shown(progress: bool | None) -> bool:
    """Whether there is a bar: as the user chose, otherwise where standard error is a terminal."""
    return sys.stderr.isatty() if progress is None else progress


@contextmanager
def task_bar(title: str, total: int, *, transient: bool = False) -> Iterator[Callable[[], None]]:
    """Show a bar that counts tasks; give the function to call after each of `total` tasks."""
    from rich.progress import MofNCompleteColumn

    with _progress(MofNCompleteColumn(), transient=transient) as progress:
        task = progress.add_task(title, total=total)
        yield lambda: progress.advance(task)


@contextmanager
def fit_progress(shows: bool | None = None) -> Iterator[None]:
    """Show a bar for the fit inside, over the starts of its search for hyperparameters.

    The bar begins again in each round of a fit: how many there will be is not known.
    """
    with _share_bar("fit", shows) as (progress, task):
        searches, before = 1, 0.0

        def set_share(share: float) -> None:
            nonlocal searches, before
            if share < before:  # within a search it only grows
                searches += 1
                progress.reset(task, description=f"fit, round {searches}")
            before = share
            progress.update(task, completed=share)

        def set_description(status: str) -> None:
            progress.update(task, description=f"fit: {status}")

        with on_progress(set_share, "search"), on_progress(set_description, "status"):
            yield


@contextmanager
def progress_bar(title: str, shows: bool | None = None) -> Iterator[None]:
    """Show a bar for a computation whose loops report their progress (`gpsift._utils.progress.track`)."""
    with (
        _share_bar(title, shows) as (progress, task),
        on_progress(lambda share: progress.update(task, completed=share)),
    ):
        yield


@contextmanager
def spinner(title: str, shows: bool | None = None) -> Iterator[None]:
    """Show a moving bar and the time that has passed, for a step whose end is not known."""
    with _progress(transient=True, disable=not is_shown(shows)) as progress:
        progress.add_task(title, total=None)
        yield


@contextmanager
def _share_bar(title: str, shows: bool | None) -> Iterator[tuple[Progress, TaskID]]:
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
