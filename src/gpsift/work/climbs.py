"""How far the search for hyperparameters is: told by whoever climbs, heard by whoever listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One evaluation of the objective: of which start, counted from 1, of how many, and the how many-th of its own."""

    start: int
    n_starts: int
    evaluation: int


_listener: ContextVar[Callable[[Step], None] | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Callable[[Step], None]) -> Iterator[None]:
    """Hear of every evaluation that is made inside, in this thread."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(step: Step) -> None:
    """Say it to the listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(step)


class Estimated:
    """How much of a search is done, judged by the starts that have ended.

    How many evaluations a climb takes is not known before its end: those before it say, and of the first it is
    guessed.
    """

    # Of 36 climbs, with 60 to 442 rows, 4 to 40 columns and three likelihoods, four in five took 21 to 56.
    FIRST_GUESS = 40
    # A climb that takes longer than thought is not done either.
    MOST_OF_A_CLIMB = 0.95

    def __init__(self) -> None:
        self.searches = 0
        self._ended: list[int] = []
        self._last: Step | None = None

    def heard(self, step: Step) -> float:
        """The share that is done after this step; it begins again with every search."""
        if step.start == step.evaluation == 1:
            self.searches += 1
            self._ended.clear()
        elif self._last is not None and step.start > self._last.start:
            self._ended.append(self._last.evaluation)
        self._last = step
        expected = sum(self._ended) / len(self._ended) if self._ended else self.FIRST_GUESS
        return (step.start - 1 + min(step.evaluation / expected, self.MOST_OF_A_CLIMB)) / step.n_starts
