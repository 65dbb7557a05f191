"""The warning category of the package, by which users can silence or raise its warnings."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


class GPSiftWarning(UserWarning):
    """Something about the data, the fit or a ranking that a reader of the result should know."""


def warn(message: str) -> None:
    """Warn with `GPSiftWarning`, pointing at the user's line: the first one outside this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "gpsift":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, GPSiftWarning, stacklevel=level)


@contextmanager
def collect_warnings() -> Iterator[list[Any]]:
    """Collect the package's warnings in a list, because a worker process would lose them, and silence all others."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", GPSiftWarning)
        yield caught


def messages(caught: Sequence[Any]) -> list[str]:
    """Return the distinct texts of collected warnings, in order."""
    return list(dict.fromkeys(str(warning.message) for warning in caught))
