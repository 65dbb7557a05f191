"""The command line: `app.py` has the commands by name, four files have their functions.

`rank.py` (rank, select, stability, discover), `effects.py` (effects, interactions, explain), `saved.py` (compare,
power) and `demo.py` (demo, reproduce) take options (`options.py`), run an analysis and hand it to `outputs.py`. That
prints it for people (`terminal_answer.py`, on the console of `terminal.py`) or as JSON (`json_answer.py`), writes the
page, and turns errors into one line and an exit code.
"""

from gpsift.app.cli.app import app, main

__all__ = ["app", "main"]
