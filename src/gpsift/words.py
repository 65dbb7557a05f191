"""Words that several messages are made of."""

from __future__ import annotations

from collections.abc import Iterable


def listed(names: Iterable[str], most: int = 8) -> str:
    """Names separated by commas, the first of them where there are many.

    >>> listed(["a", "b", "c"], most=2)
    'a, b, ...'
    """
    names = list(names)
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
