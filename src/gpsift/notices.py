"""The one warning category of the package, so that users can silence or raise it by name."""

from __future__ import annotations

import warnings


class GPSiftWarning(UserWarning):
    """Something about the data, the fit or a ranking that a reader of the result should know."""


def notice(message: str, *, stacklevel: int = 3) -> None:
    """Warn with `GPSiftWarning`, pointing at the user's line."""
    warnings.warn(message, GPSiftWarning, stacklevel=stacklevel)
