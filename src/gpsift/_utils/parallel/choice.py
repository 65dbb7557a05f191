"""How long work is done, as a choice that every verb with many fits takes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpsift._utils.parallel.checkpoint import Checkpoint
from gpsift._utils.parallel.runner import Runner


@dataclass(frozen=True)
class Work:
    """How many independent fits are done: side by side, resumable, shown. None of it changes a result.

    Parameters
    ----------
    jobs : int, optional
        Processes. None asks joblib, which takes 1, so that ``joblib.parallel_config`` can move the fits to a cluster.
    checkpoint : path, optional
        A file that keeps every finished fit (a folder for `analyse`, which has several kinds of them). The same call
        after an interruption goes on from there.
    progress : bool, optional
        Show a bar with the time left; by default where standard error is a terminal.

    Examples
    --------
    >>> import gpsift as gs
    >>> gs.Work(jobs=4, checkpoint="fits.sqlite")
    Work(jobs=4, checkpoint='fits.sqlite', progress=None)
    """

    jobs: int | None = None
    checkpoint: str | os.PathLike[str] | None = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        if self.jobs is not None and (isinstance(self.jobs, bool) or not isinstance(self.jobs, int) or self.jobs == 0):
            raise ValueError(f"`jobs` must be a number of processes, -1 for one a core, or None, got {self.jobs!r}.")

    def runner(self, title: str, total: int, identity: Mapping[str, str]) -> Runner:
        """Runs the tasks of one verb, as many as `total`; `identity` is what their results depend on."""
        kept = None if self.checkpoint is None else Checkpoint(self.checkpoint, identity)
        return Runner(jobs=self.jobs, checkpoint=kept, progress=self.progress, title=title, total=total)

    def folder(self) -> Path | None:
        """The checkpoint as a folder, made where it is missing."""
        if self.checkpoint is None:
            return None
        folder = Path(self.checkpoint)
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(f"The checkpoint {folder} must be a folder, and is a file.")
        folder.mkdir(parents=True, exist_ok=True)
        return folder
