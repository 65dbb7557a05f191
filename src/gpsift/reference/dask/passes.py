"""One pass over all partitions: a task for each, and a tree of sums whose shape depends on nothing but their number.

What every task needs, such as the matrices of a model, is one entry of the graph. It is not scattered: data that were
scattered are gone with the last worker that holds them, while all that is in a graph is made again.
"""

from __future__ import annotations

import functools
import importlib
import operator
import sys
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from gpsift._utils.parallel.bars import is_shown, task_bar

# Sums that are added by one task.
FAN_IN = 8
# How a client announces itself in dask's settings.
CLUSTER = "dask.distributed"
# The matrices of a model are in the graph on purpose; dask warns from 10 MB on.
LARGE_GRAPH = {"distributed.admin.large-graph-warning-threshold": "1 GB"}

Delayed = Any


def dask_module(name: str = "dask") -> Any:
    """A module of dask."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"Collections of dask need dask itself, and {error.name or name} is not installed: "
            "pip install 'gpsift[dask]'."
        ) from error


class Pass:
    """The tasks of one pass: the title is in their names, which dask's dashboard shows; all get `carried` first."""

    def __init__(self, title: str, carried: Any):
        self.title, self._delayed = title, dask_module().delayed
        # No two passes share a name: dask would take one for the other.
        self._name = f"gpsift-{title}-{uuid.uuid4().hex[:12]}"
        self._carried = self._delayed(carried, name=f"{self._name}-carried", traverse=False)
        self._tasks: list[Delayed] = []

    def add(self, function: Callable[..., Any], *arguments: Any) -> None:
        """A task that calls `function` with what is carried, then with these."""
        name = f"{self._name}-{len(self._tasks)}"
        self._tasks.append(self._delayed(function, pure=False)(self._carried, *arguments, dask_key_name=name))

    def results(self) -> list[Any]:
        """Of all tasks, in their order."""
        return self._computed(self._tasks)

    def total(self) -> Any:
        """The sum of all results, always in the same order."""
        level, sums = 0, self._tasks
        add = self._delayed(_sum, pure=False)
        while len(sums) > 1:
            level += 1
            groups = [sums[start : start + FAN_IN] for start in range(0, len(sums), FAN_IN)]
            sums = [add(*group, dask_key_name=f"{self._name}-sum-{level}-{k}") for k, group in enumerate(groups)]
        (found,) = self._computed(sums)
        return found

    def _computed(self, wanted: Sequence[Delayed]) -> list[Any]:
        dask, client = dask_module(), current_client()
        with ExitStack() as stack:
            if client is not None:
                stack.enter_context(dask.config.set(LARGE_GRAPH))
            if not is_shown(None):
                return list(dask.compute(*wanted))
            advance = stack.enter_context(task_bar(self.title, len(self._tasks), transient=True))
            if client is None:
                stack.enter_context(_counting({task.key for task in self._tasks}, advance))
                return list(dask.compute(*wanted))
            futures = client.compute(list(wanted))
            # Not kept in a list: a result whose sum is made may go.
            for _ in importlib.import_module("distributed").as_completed(client.compute(self._tasks)):
                advance()
            return client.gather(futures)


def current_client() -> Any:
    """The client of a cluster that dask would use now, or None."""
    distributed = sys.modules.get("distributed")
    if distributed is None or dask_module().config.get("scheduler", None) not in (None, "distributed", CLUSTER):
        return None
    try:
        return distributed.Client.current()
    except ValueError:
        return None


def _sum(*found: Any) -> Any:
    return functools.reduce(operator.add, found)


def _counting(keys: set[Any], advance: Callable[[], None]) -> Any:
    """A context in which every finished task of dask's local schedulers moves the bar on."""

    def finished(key: Any, *_: Any) -> None:
        if key in keys:
            advance()

    return dask_module("dask.callbacks").Callback(posttask=finished)
