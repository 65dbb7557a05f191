"""Runs independent tasks: in parallel by joblib, with a progress bar, skipping what a checkpoint already has.

joblib's own backends decide where: ``joblib.parallel_config("dask")`` around a call moves all fits to a cluster.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any, Self

from gpsift._utils.parallel.bars import is_shown, task_bar
from gpsift._utils.parallel.checkpoint import Checkpoint, as_json
from gpsift._utils.parallel.orphans import ForThisProcess


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
