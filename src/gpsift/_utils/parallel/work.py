"""Independent tasks, run in parallel by joblib, with a progress bar, without those that a checkpoint already has.

`Work` is the user's choice, `Runner` runs the tasks. joblib's own backends decide where:
``joblib.parallel_config("dask")`` around a call moves all fits to a cluster.
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from gpsift._utils.parallel.bars import is_shown, task_bar
from gpsift._utils.parallel.checkpoint import Checkpoint, as_json

# Seconds between two checks of whether the parent process still runs.
PAUSE = 0.5
# joblib names its worker processes like this.
WORKER = "LokyProcess"
_watched: set[int] = set()  # parents that a thread of this process watches


@dataclass(frozen=True)
class Work:
    """The user's choice for many independent fits: the number of processes, a checkpoint, a progress bar.

    None of it changes a result.

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
        """Return a runner for the `total` tasks of one call; `identity` is what their results depend on."""
        kept = None if self.checkpoint is None else Checkpoint(self.checkpoint, identity)
        return Runner(jobs=self.jobs, checkpoint=kept, progress=self.progress, title=title, total=total)

    def folder(self) -> Path | None:
        """Return the checkpoint as a folder, and make it where it is missing."""
        if self.checkpoint is None:
            return None
        folder = Path(self.checkpoint)
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(f"The checkpoint {folder} must be a folder, and is a file.")
        folder.mkdir(parents=True, exist_ok=True)
        return folder


@dataclass(frozen=True, eq=False)
class Task:
    """The arguments of one call of a function, under a key that is the same in every run."""

    key: str
    arguments: tuple[Any, ...]


class Runner(AbstractContextManager["Runner"]):
    """Runs tasks, each once: a result that the checkpoint has is not computed again.

    `jobs` and `progress` are those of `Work`; `total` is the number of all tasks.
    """

    def __init__(
        self, *, jobs: int | None, checkpoint: Checkpoint | None, progress: bool | None, title: str, total: int
    ):
        self._jobs, self._checkpoint = jobs, checkpoint
        self._shows = is_shown(progress)
        self._title, self._total = title, total
        self._stack = ExitStack()
        self._advance: Callable[[], None] = lambda: None

    def __enter__(self) -> Self:
        if self._checkpoint is not None:
            self._stack.enter_context(self._checkpoint)
        if self._shows:
            self._advance = self._stack.enter_context(task_bar(self._title, self._total))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(self, function: Callable[..., Any], tasks: Sequence[Task]) -> list[Any]:
        """Return the result of every task, in their order.

        `function` must be importable. Its results consist of numbers, text, lists, mappings, arrays and records of
        them. They pass through JSON, records as mappings, so that a result is the same whether it was computed now or
        found in the checkpoint.
        """
        kept = self._checkpoint
        done = {task.key: None if kept is None else kept.get(task.key) for task in tasks}
        missing = [task for task in tasks if done[task.key] is None]
        for _ in range(len(tasks) - len(missing)):
            self._advance()
        for task, result in zip(missing, self._compute(function, missing), strict=True):
            if kept is not None:
                kept.put(task.key, result)
            done[task.key] = json.loads(as_json(result))
            self._advance()
        return [done[task.key] for task in tasks]

    def _compute(self, function: Callable[..., Any], tasks: Sequence[Task]) -> Iterator[Any]:
        import joblib  # when first used: importing the package stays fast

        parallel = joblib.Parallel(n_jobs=self._jobs, return_as="generator")
        call = joblib.delayed(ExitWithParent(function))
        return parallel(call(*task.arguments) for task in tasks)


class ExitWithParent:
    """A function that ends the process in which it runs as soon as the parent that made it has ended.

    A parent that was killed cannot stop its workers, and they would go on computing. Workers of a cluster have other
    parents, and are left alone.
    """

    def __init__(self, function: Callable[..., Any]):
        self.parent, self.function = os.getpid(), function
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        if multiprocessing.current_process().name.startswith(WORKER) and _has_ended(self.parent):
            os._exit(1)  # it ended while this process was being started
        if os.getppid() == self.parent and self.parent not in _watched:
            _watched.add(self.parent)
            threading.Thread(target=_exit_after, args=(self.parent,), daemon=True).start()
        return self.function(*arguments)


def _exit_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PAUSE)
    os._exit(1)  # at once, from within any computation


def _has_ended(pid: int) -> bool:
    if os.name != "posix":
        return False  # signal 0 asks only where the system is POSIX
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)
    return False
