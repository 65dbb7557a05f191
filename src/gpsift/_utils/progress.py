"""Progress of a computation, as a share of the whole: loops and searches report it, callbacks receive it.

A loop over `track(items, n)` reports after each item, a search by `SearchProgress.update`, and `set_status` says in
words what is being done. Nothing is shown here; `gpsift._utils.parallel.bars` draws bars from these reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, TypeVar

Item = TypeVar("Item")
Callback = Callable[[Any], None]  # takes a share or, of kind "status", a text
# A search for hyperparameters runs loops in each of its evaluations, so the two have callbacks of their own.
Kind = Literal["loops", "search", "status"]

_callbacks: ContextVar[Mapping[Kind, Callback]] = ContextVar("callbacks", default={})  # noqa: B039  # never changed


@contextmanager
def on_progress(callback: Callback, kind: Kind = "loops") -> Iterator[None]:
    """Call `callback` with the share that is done, or with the status, whenever code inside reports it."""
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
    """The share of a search for hyperparameters that is done, judged by the starts that have ended.

    The number of evaluations of a start is not known before its end. It is taken to be the mean of the starts before
    it, and for the first start it is guessed.
    """

    # Of 36 starts, with 60 to 442 rows, 4 to 40 columns and three likelihoods, four in five took 21 to 56.
    FIRST_GUESS = 40
    # A start that takes longer than expected is not done either.
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
