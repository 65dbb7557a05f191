"""The one warning category of the package, so that users can silence or raise it by name."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any


class GPSiftWarning(UserWarning):
    """Something about the data, the fit or a ranking that a reader of the result should know."""


def notice(message: str) -> None:
    """Warn with `GPSiftWarning`, pointing at the user's line: the first one outside this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "gpsift":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, GPSiftWarning, stacklevel=level)


class Notices(warnings.catch_warnings):
    """Collects the notices of what runs inside, and lets no other warning out: another process would lose them."""

    def __init__(self) -> None:
        super().__init__(record=True)

    def __enter__(self) -> list[Any]:
        caught = super().__enter__()
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", GPSiftWarning)
        assert caught is not None
        return caught


def messages(caught: Sequence[Any]) -> list[str]:
    """Each message once."""
    return list(dict.fromkeys(str(warning.message) for warning in caught))
