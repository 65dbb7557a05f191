"""The one warning category of the package, so that users can silence or raise it by name."""

from __future__ import annotations

import sys
import warnings


class GPSiftWarning(UserWarning):
    """Something about the data, the fit or a ranking that a reader of the result should know."""


def notice(message: str) -> None:
    """Warn with `GPSiftWarning`, pointing at the user's line: the first one outside this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "gpsift":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, GPSiftWarning, stacklevel=level)
