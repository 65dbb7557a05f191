"""Report the progress of loops and searches as a share of the whole, and show it by bars on standard error.

A loop over `track(items, n)` reports after each item, a search by `SearchProgress.update`, and `set_status` reports in
words. `on_progress` passes these reports to a callback. With `shows=None` there is a bar where standard error is a
terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID

Item = TypeVar("Item")
Callback = Callable[[Any], None]  # takes a share or, for the kind "status", a text
# A search for hyperparameters runs loops in each of its evaluations, so the two have callbacks of their own.
Kind = Literal["loops", "search", "status"]

_callbacks: ContextVar[Mapping[Kind, Callback]] = ContextVar("callbacks", default={})  # noqa: B039  # never changed


@contextmanager
def on_progress(callback: Callback, kind: Kind = "loops") -> Iterator[None]:
    """Call `callback` with the share that is done, or with the status, when code inside reports it."""
    token = _callbacks.set({**_callbacks.get(), kind: callback})
    try:
        yield
    finally:
        _callbacks.reset(token)


def track(items: Iterable[Item], n_items: int) -> Iterator[Item]:
    """Iterate over items and report after each an equal share of the work; loops inside divide that share.

    >>> shares = []
    >>> with on_progress(shares.append):
    ...     for _ in track("ab", 2):
    ...         for _ in track("xyz", 3):
    ...             pass
    >>> [round(share, 2) for share in shares]
    [0.17, 0.33, 0.5, 0.5, 0.67, 0.83, 1.0, 1.0]
    """
    outer = _callbacks.get().get("loops")
    if outer is None:
        yield from items
        return
    for number, item in enumerate(items):
        with on_progress(lambda share, number=number: outer((number + share) / n_items)):  # type: ignore[misc]
            yield item
        outer((number + 1) / n_items)


def set_status(text: str) -> None:
    """Report in words what is being done now.

    >>> with on_progress(print, "status"):
    ...     set_status("trying age")
    trying age
    """
    _report("status", text)


@contextmanager
def part_of_search(begin: float, end: float) -> Iterator[None]:
    """Report the search inside as a part of a longer one, from the share `begin` to the share `end`.

    >>> with on_progress(print, "search"), part_of_search(0.8, 1.0):
    ...     _ = SearchProgress(2).update(2, 20)
    0.95
    """
    outer = _callbacks.get().get("search")
    if outer is None:
        yield
        return
    with on_progress(lambda share: outer(begin + (end - begin) * share), "search"):
        yield


class SearchProgress:
    """The share of a search for hyperparameters that is done, estimated from the starts that have ended.

    The number of evaluations of a start is not known before its end. It is estimated by the mean of the earlier starts,
    for the first start by `FIRST_GUESS`.
    """

    # Of 36 starts, with 60 to 442 rows, 4 to 40 columns and three likelihoods, 80 % took 21 to 56 evaluations.
    FIRST_GUESS = 40
    # The largest share of a start that is reported before its end, when it takes longer than estimated.
    MOST_OF_A_START = 0.95

    def __init__(self, n_starts: int):
        self._n_starts = n_starts
        self._evaluations: dict[int, int] = {}
        self._share = 0.0

    def update(self, start: int, evaluation: int) -> float:
        """Report and return the share that is done with this evaluation of this start, both counted from 1."""
        ended = [taken for number, taken in self._evaluations.items() if number < start]
        self._evaluations[start] = evaluation
        expected = sum(ended) / len(ended) if ended else self.FIRST_GUESS
        share = (start - 1 + min(evaluation / expected, self.MOST_OF_A_START)) / self._n_starts
        self._share = max(self._share, share)
        _report("search", self._share)
        return self._share


def _report(kind: Kind, value: Any) -> None:
    callback = _callbacks.get().get(kind)
    if callback is not None:
        callback(value)


def is_shown(progress: bool | None) -> bool:
    """Whether to show a bar: the user's choice, and by default only where standard error is a terminal."""
    return sys.stderr.isatty() if progress is None else progress


@contextmanager
def task_bar(title: str, total: int, *, transient: bool = False) -> Iterator[Callable[[], None]]:
    """Show a bar that counts tasks; yield the function to call after each of `total` tasks."""
    from rich.progress import MofNCompleteColumn

    with _progress(MofNCompleteColumn(), transient=transient) as progress:
        task = progress.add_task(title, total=total)
        yield lambda: progress.advance(task)


@contextmanager
def fit_progress(shows: bool | None = None) -> Iterator[None]:
    """Show a bar for the fit inside, over the starts of its search for hyperparameters.

    The bar restarts in each round of a fit, because the number of rounds is not known.
    """
    with _share_bar("fit", shows) as (progress, task):
        searches, before = 1, 0.0

        def set_share(share: float) -> None:
            nonlocal searches, before
            if share < before:  # a new search: within one the share does not decrease
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
    """Show a bar for a computation whose loops report their progress (`track`)."""
    with (
        _share_bar(title, shows) as (progress, task),
        on_progress(lambda share: progress.update(task, completed=share)),
    ):
        yield


@contextmanager
def spinner(title: str, shows: bool | None = None) -> Iterator[None]:
    """Show a moving bar and the elapsed time, for a computation of unknown length."""
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
