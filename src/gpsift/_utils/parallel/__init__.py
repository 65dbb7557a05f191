"""Long work: many independent fits, run in parallel, with progress shown and finished results kept in a file.

`choice.py` is what users say about it, `runner.py` runs tasks, `checkpoint.py` remembers what is done, `bars.py` shows
it. What the tasks compute is none of their business.
"""

from gpsift._utils.parallel.bars import fit_bar, share_bar, waiting_bar
from gpsift._utils.parallel.checkpoint import Checkpoint, CheckpointMismatch, fingerprint
from gpsift._utils.parallel.work import Runner, Task, Work

__all__ = [
    "Checkpoint",
    "CheckpointMismatch",
    "Runner",
    "Task",
    "Work",
    "fingerprint",
    "fit_bar",
    "share_bar",
    "waiting_bar",
]
