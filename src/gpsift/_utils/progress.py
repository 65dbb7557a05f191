"""How far a computation is, as a share of the whole: told by its loops and searches, heard by whoever listens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, TypeVar

Item = TypeVar("Item")
Listener = Callable[[Any], None]  # of a share, or of words
# A search for hyperparameters runs loops in each of its evaluations: who hears of the one is not told of the others.
Kind = Literal["loops", "search", "words"]

_listeners: ContextVar[Mapping[Kind, Listener]] = ContextVar("listeners", default={})  # noqa: B039  # never changed


@contextmanager
def hearing(listener: Listener, kind: Kind = "loops") -> Iterator[None]:
    """Hear the share that is done, or in words what is being done, whenever it is told inside, in this thread."""
    token = _listeners.set({**_listeners.get(), kind: listener})
    try:
        yield
    finally:
        _listeners.reset(token)


def counted(items: Iterable[Item], n_items: int) -> Iterator[Item]:
    """The items; each turn of the loop over them is an equal share of the work. Loops inside of it divide that share.

    >>> shares = []
    >>> with hearing(shares.append):
    ...     for _ in counted("ab", 2):
    ...         for _ in counted("xyz", 3):
    ...             pass
    >>> [round(share, 2) for share in shares]
    [0.17, 0.33, 0.5, 0.5, 0.67, 0.83, 1.0, 1.0]
    """
    outer = _listeners.get().get("loops")
    if outer is None:
        yield from items
        return
    for number, item in enumerate(items):
        with hearing(lambda share, number=number: outer((number + share) / n_items)):  # type: ignore[misc]
            yield item
        outer((number + 1) / n_items)


def say(words: str) -> None:
    """Tell what is being done now.

    >>> with hearing(print, "words"):
    ...     say("trying age")
    trying age
    """
    if "words" in (listeners := _listeners.get()):
        listeners["words"](words)


@contextmanager
def part_of_search(begin: float, end: float) -> Iterator[None]:
    """The search inside is a part of a longer one.

    >>> with hearing(print, "search"), part_of_search(0.8, 1.0):
    ...     _ = SearchProgress(2).update(2, 20)
    0.95
    """
    outer = _listeners.get().get("search")
    if outer is None:
        yield
        return
    with hearing(lambda share: outer(begin + (end - begin) * share), "search"):
        yield


class SearchProgress:
    """How much of a search for hyperparameters is done, judged by the starts that have ended.

    How many evaluations a start takes is not known before its end: those before it say, and of the first it is guessed.
    """

    # Of 36 starts, with 60 to 442 rows, 4 to 40 columns and three likelihoods, four in five took 21 to 56.
    FIRST_GUESS = 40
    # A start that takes longer than thought is not done either.
    MOST_OF_A_START = 0.95

    def __init__(self, n_starts: int):
        self._n_starts = n_starts
        self._evaluations: dict[int, int] = {}
        self._share = 0.0

    def evaluated(self, start: int, evaluation: int) -> float:
        """Tell, and return, the share that is done with this evaluation of this start, both counted from 1."""
        ended = [taken for number, taken in self._evaluations.items() if number < start]
        self._evaluations[start] = evaluation
        expected = sum(ended) / len(ended) if ended else self.FIRST_GUESS
        share = (start - 1 + min(evaluation / expected, self.MOST_OF_A_START)) / self._n_starts
        self._share = max(self._share, share)
        if "search" in (listeners := _listeners.get()):
            listeners["search"](self._share)
        return self._share
