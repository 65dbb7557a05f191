"""How long work is done, as a choice that every verb with many fits takes."""

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


@dataclass(frozen=True, eq=False)
class Task:
    """One call of a function, under a name that is the same in every run."""

    key: str
    arguments: tuple[Any, ...]


class Runner(AbstractContextManager["Runner"]):
    """Runs tasks, and does so once: what a checkpoint has is not computed again.

    `jobs` and `progress` are those of `Work`; `total` is how many tasks there will be in all.
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
        """The result of every task, in their order.

        `function` must be importable and its results made of numbers, text, lists, mappings, arrays and records of
        them; they pass through JSON, records as mappings, so that a result is the same whether it was computed now or
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
        call = joblib.delayed(ForThisProcess(function))
        return parallel(call(*task.arguments) for task in tasks)


# Between two looks, in seconds.
PAUSE = 0.5
# How joblib calls the processes that it starts for one other.
WORKER = "LokyProcess"
_watched: set[int] = set()  # whom this process looks after; it has one thread for each


class ForThisProcess:
    """A function under its name, called in processes that end with the one that has made this, if it is their parent.

    One that was killed cannot tell its workers, and they would compute on for nobody. Workers of a cluster have other
    parents, and are left alone.
    """

    def __init__(self, function: Callable[..., Any]):
        self.boss, self.function = os.getpid(), function
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        if multiprocessing.current_process().name.startswith(WORKER) and _is_gone(self.boss):
            os._exit(1)  # it went while this process was being started
        if os.getppid() == self.boss and self.boss not in _watched:
            _watched.add(self.boss)
            threading.Thread(target=_end_without, args=(self.boss,), daemon=True).start()
        return self.function(*arguments)


def _end_without(boss: int) -> None:
    while os.getppid() == boss:
        time.sleep(PAUSE)
    os._exit(1)  # at once, from within any computation


def _is_gone(pid: int) -> bool:
    if os.name != "posix":
        return False  # a signal of no meaning is none elsewhere
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)
    return False
