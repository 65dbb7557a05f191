"""The ``gpsift`` command, outside the package, so that Ctrl-C is answered while that is still being loaded."""

from __future__ import annotations

import sys


def main() -> None:
    """Load the command line and run it."""
    try:
        from gpsift.app.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("gpsift: interrupted.\n")
        sys.exit(130)
    run()
