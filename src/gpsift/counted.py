"""How far a computation is, as a share of the whole: told by its loops, heard by whoever listens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Item = TypeVar("Item")
Listener = Callable[[float], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def hearing(listener: Listener) -> Iterator[None]:
    """Hear the share that is done, after each turn of the counted loops inside, in this thread."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


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
    outer = _listener.get()
    if outer is None:
        yield from items
        return
    for number, item in enumerate(items):
        with hearing(lambda share, number=number: outer((number + share) / n_items)):  # type: ignore[misc]
            yield item
        outer((number + 1) / n_items)
