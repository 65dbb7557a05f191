"""Run independent tasks in parallel by joblib, with a progress bar, and keep finished results in a file.

`Work` has the user's choices. A `Runner` runs those tasks whose results a `Checkpoint` does not have, and may run any
function. joblib's backends decide where: ``joblib.parallel_config("dask")`` around a call moves all fits to a cluster.
"""

from __future__ import annotations

import functools
import hashlib
import json
import multiprocessing
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from gpsift._utils.progress import is_shown, task_bar

# The format of checkpoints, part of their identity.
FORMAT = "2"
# Seconds between two checks whether the parent process still runs.
PAUSE = 0.5
# joblib names its worker processes like this.
WORKER = "LokyProcess"
_watched: set[int] = set()  # identifiers of parent processes that a thread of this process watches


@dataclass(frozen=True)
class Work:
    """The user's choice for many independent fits: the number of processes, a checkpoint, a progress bar.

    No choice changes a result.

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
        """Return a runner for the `total` tasks of one call; their results depend on `identity` only."""
        kept = None if self.checkpoint is None else Checkpoint(self.checkpoint, identity)
        return Runner(jobs=self.jobs, checkpoint=kept, progress=self.progress, title=title, total=total)

    def folder(self) -> Path | None:
        """Return the checkpoint as a folder, and make the folder if it does not exist."""
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


class Runner(ExitStack):
    """Runs tasks, except those whose results the checkpoint already has.

    `jobs` and `progress` are those of `Work`; `total` is the number of all tasks.
    """

    def __init__(
        self, *, jobs: int | None, checkpoint: Checkpoint | None, progress: bool | None, title: str, total: int
    ):
        super().__init__()
        self._jobs, self._checkpoint = jobs, checkpoint
        self._shows, self._title, self._total = is_shown(progress), title, total
        self._advance: Callable[[], None] = lambda: None

    def __enter__(self) -> Self:
        if self._checkpoint is not None:
            self.enter_context(self._checkpoint)
        if self._shows:
            self._advance = self.enter_context(task_bar(self._title, self._total))
        return self

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
        import joblib  # only when used, because its import is slow

        parallel = joblib.Parallel(n_jobs=self._jobs, return_as="generator")
        call = joblib.delayed(ExitWithParent(function))
        return parallel(call(*task.arguments) for task in tasks)


class CheckpointMismatch(ValueError):
    """A checkpoint belongs to other data or settings, or is no checkpoint."""


class Checkpoint:
    """Results by key, in an SQLite database that is made if it does not exist.

    Every result is one transaction, so that after a process is killed the file has all results but perhaps the last.
    Values are JSON, whose decimal numbers give the same floats bit for bit.

    `identity` names what the results depend on, in words or as a `fingerprint`. A file with another identity is
    refused.
    """

    def __init__(self, path: str | os.PathLike[str], identity: Mapping[str, str]):
        self.path = Path(path)
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"The folder of the checkpoint does not exist: {self.path.parent}")
        try:
            self._connection = sqlite3.connect(self.path, isolation_level=None, timeout=1.0)
            try:
                self._check_identity({"format": FORMAT, **identity})
            except Exception:
                self._connection.close()  # the caller has no object to close
                raise
        except sqlite3.OperationalError as error:
            raise OSError(
                f"The checkpoint {self.path} cannot be used: {error}. Is another process using it?"
            ) from error
        except sqlite3.DatabaseError as error:
            raise CheckpointMismatch(f"{self.path} is not a checkpoint ({error}). Give another path.") from error

    def get(self, key: str) -> Any:
        """Return the result under `key`, or None."""
        row = self._connection.execute("SELECT value FROM result WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(row[0])

    def put(self, key: str, result: Any) -> None:
        """Keep a result under `key`; it is on the disk when this returns."""
        self._connection.execute("INSERT OR REPLACE INTO result VALUES (?, ?)", (key, as_json(result)))

    def __len__(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM result").fetchone()[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def _check_identity(self, identity: Mapping[str, str]) -> None:
        self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # two processes would do the same work twice
        self._connection.execute("BEGIN EXCLUSIVE")
        tables = {name for (name,) in self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables <= {"identity", "result"}:
            raise sqlite3.DatabaseError("a database with other tables")
        self._connection.execute("CREATE TABLE IF NOT EXISTS identity (name TEXT PRIMARY KEY, value TEXT)")
        self._connection.execute("CREATE TABLE IF NOT EXISTS result (key TEXT PRIMARY KEY, value TEXT)")
        known = dict(self._connection.execute("SELECT name, value FROM identity"))
        if not known:
            self._connection.executemany("INSERT INTO identity VALUES (?, ?)", identity.items())
        self._connection.execute("COMMIT")
        if known and known != dict(identity):
            differences = "; ".join(
                f"{name} was {known.get(name, 'not set')}, is {identity.get(name, 'not set')}"
                for name in {**known, **identity}
                if known.get(name) != identity.get(name)
            )
            raise CheckpointMismatch(
                f"The checkpoint {self.path} belongs to other work: {differences}. Delete the file, or give another "
                "path."
            )


def as_json(result: Any) -> str:
    """Write a result as JSON, arrays as lists and records as mappings."""
    return json.dumps(result, default=_as_plain)


def _as_plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    kinds = "numbers, text, lists, mappings, arrays and records of them"
    raise TypeError(f"A result may hold {kinds}, not {type(value).__name__}.")


def fingerprint(*parts: Any) -> str:
    """Return a short digest of arrays and of other objects by their `repr`."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype.str}{part.shape}".encode())
            digest.update(np.ascontiguousarray(part).tobytes())
        else:
            digest.update(repr(part).encode())
        digest.update(b"\0")
    return digest.hexdigest()[:16]


class ExitWithParent:
    """A function whose process ends as soon as the process that made this object has ended.

    A parent process that was killed cannot stop its workers, which would continue to compute. Workers of a cluster have
    other parents, and do not end.
    """

    def __init__(self, function: Callable[..., Any]):
        self.parent, self.function = os.getpid(), function
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        if multiprocessing.current_process().name.startswith(WORKER) and _has_ended(self.parent):
            os._exit(1)  # the parent ended while this process was starting
        if os.getppid() == self.parent and self.parent not in _watched:
            _watched.add(self.parent)
            threading.Thread(target=_exit_when_ended, args=(self.parent,), daemon=True).start()
        return self.function(*arguments)


def _exit_when_ended(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PAUSE)
    os._exit(1)  # ends the process at once, whatever the main thread computes


def _has_ended(pid: int) -> bool:
    if os.name != "posix":
        return False  # signal 0 tests for a process only on POSIX systems
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)
    return False
