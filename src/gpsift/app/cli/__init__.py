"""The command line: one file a command; `app.py` has them all.

`errors.py` turns trouble into one line and a code, `answering.py` is what the commands share, `shown.py` and
`machine.py` say the answer to people and to machines, `terminal.py` makes it fit.
"""

from gpsift.app.cli.app import app, main

__all__ = ["app", "main"]
