"""Long work: many independent fits, run in parallel, with progress shown and finished results kept in a file.

`bench.py` runs tasks, `bar.py` shows how far they are, `checkpoint.py` remembers what is done. What the tasks compute
is none of their business.
"""

from gpsift.work.bench import Bench, Task
from gpsift.work.checkpoint import Checkpoint, CheckpointMismatch, fingerprint

__all__ = ["Bench", "Checkpoint", "CheckpointMismatch", "Task", "fingerprint"]
