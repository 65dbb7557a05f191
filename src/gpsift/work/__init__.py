"""Long work: many independent fits, run in parallel, with progress shown and finished results kept in a file.

`bench.py` runs tasks, `checkpoint.py` remembers what is done, `bars.py` shows it, `climbs.py` says how far a single fit
is. What the tasks compute is none of their business.
"""

from gpsift.work.bars import FitBar, ShareBar, WaitingBar
from gpsift.work.bench import Bench, Task
from gpsift.work.checkpoint import Checkpoint, CheckpointMismatch, fingerprint

__all__ = ["Bench", "Checkpoint", "CheckpointMismatch", "FitBar", "ShareBar", "Task", "WaitingBar", "fingerprint"]
