"""Long work: many independent fits, run in parallel, with a progress bar and with finished results kept in a file.

`work.py` has the user's choice (`Work`) and runs the tasks, `checkpoint.py` keeps finished results, `bars.py` shows
progress. Nothing here depends on what the tasks compute.
"""

from gpsift._utils.parallel.bars import fit_progress, progress_bar, spinner
from gpsift._utils.parallel.checkpoint import Checkpoint, CheckpointMismatch, fingerprint
from gpsift._utils.parallel.work import Runner, Task, Work

__all__ = [
    "Checkpoint",
    "CheckpointMismatch",
    "Runner",
    "Task",
    "Work",
    "fingerprint",
    "fit_progress",
    "progress_bar",
    "spinner",
]
