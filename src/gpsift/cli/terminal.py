"""The entry point, in terminals that do not know every sign."""

from __future__ import annotations

import codecs
import sys

from gpsift.cli.app import app

PLAIN_SIGNS = {"█": "#", "√": "sqrt ", "±": "+-", "…": "...", "−": "-", "–": "-", "’": "'"}


def plain_sign(error: UnicodeError) -> tuple[str, int]:
    """What stands for a sign that an encoding lacks: the like of it, or a question mark."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(PLAIN_SIGNS.get(sign, "?") for sign in lacking), error.end


def main() -> None:
    """Entry point of the ``gpsift`` command."""
    codecs.register_error("gpsift.plain", plain_sign)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="gpsift.plain")
    app()
