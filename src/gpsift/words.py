"""Names and numbers as they stand in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def listed(names: Sequence[Any], most: int = 8) -> str:
    """Such as "a, b", or "a, b, ..." where there are more.

    >>> listed(["a", "b", "c"], most=2)
    'a, b, ...'
    """
    return ", ".join(map(str, names[:most])) + (", ..." if len(names) > most else "")


def ordinal(n: int) -> str:
    """Such as "1st", "12th"."""
    suffix = "th" if 10 <= n % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{suffix}"
