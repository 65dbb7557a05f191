"""Run gpsift from the command line: `app.py` has the commands by name, four files have their functions.

`rank.py` (rank, select, stability, discover), `effects.py` (effects, interactions, explain), `saved.py` (compare,
power) and `demo.py` (demo, reproduce) read options (`options.py`) and run an analysis. `outputs.py` prints it for
people (`terminal_answer.py`, on the console of `terminal.py`) or as JSON (`json_answer.py`), writes the page, and turns
errors into one line and an exit code.
"""

from gpsift.app.cli.app import app, main

__all__ = ["app", "main"]
