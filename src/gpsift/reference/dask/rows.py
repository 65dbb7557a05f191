"""Read the rows of dask arrays and data frames, and run passes over them.

`read_collections` makes a `ClusterRows`. It calls a function with chunks of rows, on the worker that has them, and adds
or concatenates the results. Each such *pass* is a graph with a task for each partition and a tree of sums, whose shape
depends on the number of partitions only (`Pass`).
"""

from __future__ import annotations

import functools
import importlib
import operator
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np

from gpsift._utils.progress import is_shown, task_bar
from gpsift._utils.rows import CHUNK_BYTES, Rows, draw_rows, row_chunks
from gpsift._utils.validation import feature_values, is_dask, read_target, target_values

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Partition:
    """A partition of n >= 1 rows, with the delayed tables from which `Rows` are read."""

    n: int
    tables: tuple[Any, ...]  # X, y, noise_var, size; the last three may be None, or a number for all rows


@dataclass(frozen=True, eq=False)
class ChunkReader:
    """A reader of partitions in chunks, which are transformed one at a time, so that no copy of all rows is made."""

    n_columns: int  # of the matrices that are computed for a chunk
    chunk_bytes: int = CHUNK_BYTES  # for one of these matrices
    transform: Callable[[Rows], Rows] | None = None
    size_name: str = "size"  # the user's name of the size of an observation

    @property
    def chunking(self) -> dict[str, int]:
        return {"n_columns": self.n_columns, "chunk_bytes": self.chunk_bytes}

    def chunks(self, *tables: Any) -> Iterator[Rows]:
        rows = self.read(*tables)
        for chunk in row_chunks(rows.n, self.n_columns, self.chunk_bytes):
            yield self.apply_transform(rows.chunk(chunk))

    def read(self, X: Any, y: Any = None, noise_var: Any = None, size: Any = None) -> Rows:
        """Read a partition in the user's units."""
        values, _ = feature_values(X, "X")
        columns = {"y": y, "noise_var": noise_var, self.size_name: size}
        for name, column in columns.items():
            if isinstance(column, float):
                columns[name] = np.full(len(values), column)
            elif column is not None:
                columns[name] = target_values(column, name)
        return Rows(values, *columns.values())

    def apply_transform(self, rows: Rows) -> Rows:
        return rows if self.transform is None else self.transform(rows)


class ClusterRows:
    """Rows in dask partitions, with the methods of `gpsift._utils.rows.LocalRows` for rows in this process.

    Sums and rows are computed by passes over the graphs of the collections, on the current client's cluster or by
    dask's scheduler in this process. Nothing is kept between passes: rows need not fit into memory, and other workers
    recompute those of a lost one. Persisted collections are read from memory; `collections` refers to them, because the
    graphs of their partitions do not keep them on a cluster. `extremes` are the numbers of the rows with the smallest
    and the largest target, where these are known.
    """

    def __init__(
        self,
        partitions: Sequence[Partition],
        names: tuple[str, ...] | None,
        reading: ChunkReader,
        collections: Any = None,
        extremes: Sequence[int] = (),
    ):
        self.partitions, self.names, self.reading = tuple(partitions), names, reading
        self.collections, self.extremes = collections, np.array(extremes, dtype=int)
        self._starts = np.cumsum([0, *(partition.n for partition in self.partitions)])

    @property
    def n(self) -> int:
        return int(self._starts[-1])

    def read_as(self, *, extremes: Sequence[int] = (), **changes: Any) -> Self:
        """Return these rows with other fields of `ChunkReader`."""
        return type(self)(self.partitions, self.names, replace(self.reading, **changes), self.collections, extremes)

    def map_reduce(self, visit: Callable[[Rows], T]) -> T:
        return self._pass(_sum_in_partition, visit).total()

    def map_concat(self, visit: Callable[[Rows], tuple[Any, ...]]) -> tuple[Any, ...]:
        found = self._pass(_concatenate_in_partition, visit).results()
        return tuple(np.concatenate(pieces) for pieces in zip(*found, strict=True))

    def _pass(self, of_partition: Callable[..., Any], visit: Callable[[Rows], Any]) -> Pass:
        title = str(getattr(visit, "func", visit).__name__).strip("_")
        one_pass = Pass(title, (visit, self.reading))
        for partition in self.partitions:
            one_pass.add(of_partition, *partition.tables)
        return one_pass

    def single_chunk(self) -> Self:
        return self  # chunks must fit into the memory of a worker

    def sample(self, size: int, seed: int) -> Rows:
        if size >= self.n:
            return self.take(np.arange(self.n))
        return draw_rows(self.take, self.n, size, seed, extremes=self.extremes)

    def take(self, which: np.ndarray) -> Rows:
        """Return the rows with these ascending numbers, in this process."""
        one_pass = Pass("rows", self.reading)
        edges = np.searchsorted(which, self._starts)
        for partition, start, first, last in zip(self.partitions, self._starts, edges, edges[1:], strict=False):
            if last > first:
                one_pass.add(_take_in_partition, which[first:last] - start, *partition.tables)
        parts = [(part.X, part.y, part.noise_var, part.size) for part in one_pass.results()]
        return Rows(*(None if some[0] is None else np.concatenate(some) for some in zip(*parts, strict=True)))


def _sum_in_partition(shared: tuple[Callable[[Rows], T], ChunkReader], *tables: Any) -> T:
    visit, reading = shared
    return functools.reduce(operator.add, map(visit, reading.chunks(*tables)))


def _concatenate_in_partition(
    shared: tuple[Callable[[Rows], tuple[Any, ...]], ChunkReader], *tables: Any
) -> tuple[np.ndarray, ...]:
    visit, reading = shared
    found = [visit(chunk) for chunk in reading.chunks(*tables)]
    return tuple(np.concatenate(pieces) for pieces in zip(*found, strict=True))


def _take_in_partition(reading: ChunkReader, which: np.ndarray, *tables: Any) -> Rows:
    return reading.apply_transform(reading.read(*tables).take(which))


# Sums that are added by one task.
FAN_IN = 8
# The scheduler in dask's settings while a client is current.
CLUSTER = "dask.distributed"
# A graph contains the matrices of a model; dask warns from 10 MB on.
LARGE_GRAPH = {"distributed.admin.large-graph-warning-threshold": "1 GB"}

Delayed = Any


def dask_module(name: str = "dask") -> Any:
    """Import a module of dask."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"Collections of dask need dask itself, and {error.name or name} is not installed: "
            "pip install 'gpsift[dask]'."
        ) from error


class Pass:
    """The tasks of one pass over all partitions; each gets `shared` as its first argument.

    Data for every task, such as the matrices of a model, are one entry of the graph. They are not scattered: scattered
    data are lost with the last worker that has them, but those of a graph are recomputed. The title is part of the
    names of the tasks, which dask's dashboard shows.
    """

    def __init__(self, title: str, shared: Any):
        self.title, self._delayed = title, dask_module().delayed
        # Names of passes are unique, because dask identifies tasks by their names.
        self._name = f"gpsift-{title}-{uuid.uuid4().hex[:12]}"
        self._shared = self._delayed(shared, name=f"{self._name}-shared", traverse=False)
        self._tasks: list[Delayed] = []

    def add(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Add a task that calls `function` with the shared data and these arguments."""
        name = f"{self._name}-{len(self._tasks)}"
        self._tasks.append(self._delayed(function, pure=False)(self._shared, *arguments, dask_key_name=name))

    def results(self) -> list[Any]:
        """Compute the results of all tasks, in their order."""
        return self._compute(self._tasks)

    def total(self) -> Any:
        """Compute the sum of all results, always in the same order."""
        level, sums = 0, self._tasks
        add = self._delayed(_sum, pure=False)
        while len(sums) > 1:
            level += 1
            groups = [sums[start : start + FAN_IN] for start in range(0, len(sums), FAN_IN)]
            sums = [add(*group, dask_key_name=f"{self._name}-sum-{level}-{k}") for k, group in enumerate(groups)]
        (found,) = self._compute(sums)
        return found

    def _compute(self, wanted: Sequence[Delayed]) -> list[Any]:
        dask, client = dask_module(), current_client()
        with ExitStack() as stack:
            if client is not None:
                stack.enter_context(dask.config.set(LARGE_GRAPH))
            if not is_shown(None):
                return list(dask.compute(*wanted))
            advance = stack.enter_context(task_bar(self.title, len(self._tasks), transient=True))
            if client is None:
                keys = {task.key for task in self._tasks}
                callback = dask_module("dask.callbacks").Callback
                stack.enter_context(callback(posttask=lambda key, *_: advance() if key in keys else None))
                return list(dask.compute(*wanted))
            futures = client.compute(list(wanted))
            # They are not kept in a list, so that results are freed when they have been added.
            for _ in importlib.import_module("distributed").as_completed(client.compute(self._tasks)):
                advance()
            return client.gather(futures)


def current_client() -> Any:
    """Return the client of the cluster that dask uses now, or None."""
    distributed = sys.modules.get("distributed")
    if distributed is None or dask_module().config.get("scheduler", None) not in (None, "distributed", CLUSTER):
        return None
    try:
        return distributed.Client.current()
    except ValueError:
        return None


def _sum(*found: Any) -> Any:
    return functools.reduce(operator.add, found)


def read_collections(
    X: Any, y: Any = None, noise_var: Any = None, size: Any = None, *, size_name: str = "size"
) -> ClusterRows:
    """Read the rows of a dask array or data frame X, with their targets, known noise and sizes.

    Targets are a dask array, a series or a data frame with one column; known noise and sizes may be a number for all
    rows. Where dask does not know the number of rows of each partition, as for data frames, one pass counts them.
    Partitions may be of any size; the other collections are divided as X is.
    """
    fields = {"X": X, "y": y, "noise_var": noise_var, size_name: size}
    numbers = {
        name: None if fields[name] is None else float(read_target(np.array([fields[name]]), 1, name=name)[0])
        for name in ("noise_var", size_name)
        if np.ndim(fields[name]) == 0
    }
    given = {name: values for name, values in fields.items() if values is not None and name not in numbers}
    for name, values in given.items():
        _refuse_unreadable(values, name)
        # When a frame is computed, dask may read small files together: it may then have other partitions.
        given[name] = values if hasattr(values, "chunks") else values.optimize()
    is_frame = hasattr(X, "columns")
    if X.ndim != 2:
        raise ValueError(f"`X` must be 2-d (rows, features), got {X.ndim} dimension(s): pass a frame or 2-d array.")
    names = tuple(str(column) for column in X.columns) if is_frame else None
    n_features = len(X.columns) if is_frame else X.shape[1]
    lengths = _lengths(given)
    n_rows = sum(lengths["X"])
    if n_rows == 0 or n_features == 0:
        raise ValueError(f"`X` is empty: {n_rows} rows and {n_features} features.")
    for name, each in lengths.items():
        if sum(each) != n_rows:
            raise ValueError(f"`{name}` has {sum(each)} entries but `X` has {n_rows} rows.")
    tables = {
        name: _partitions(values if lengths[name] == lengths["X"] else _divide(values, lengths[name], lengths["X"]))
        for name, values in given.items()
    }
    partitions = [
        Partition(n, tuple(tables[name][k] if name in tables else numbers.get(name) for name in fields))
        for k, n in enumerate(lengths["X"])
        if n > 0
    ]
    return ClusterRows(partitions, names, ChunkReader(n_features, size_name=size_name), collections=given)


def _refuse_unreadable(values: Any, name: str) -> None:
    dask_module()
    if not is_dask(values):
        remedy = f"`dask.array.from_array({name}, chunks=...)`" if name != "X" else "`y.compute()` beside it"
        raise TypeError(
            f"`{name}` is in memory (a {type(values).__name__}) and the others are dask collections: pass {remedy}."
        )
    if not hasattr(values, "to_delayed") or not hasattr(values, "ndim"):
        raise TypeError(
            f"`{name}` must be a dask array, data frame or series, got a {type(values).__name__}. Make one of it, "
            "such as with its `to_dataframe()`."
        )


def _partitions(values: Any) -> list[Any]:
    """Return the delayed partitions along the rows."""
    if not hasattr(values, "chunks"):
        return list(values.to_delayed())
    whole_rows = values.rechunk({1: -1}) if values.ndim == 2 and len(values.chunks[1]) > 1 else values
    return list(np.ravel(whole_rows.to_delayed()))


def _lengths(given: dict[str, Any]) -> dict[str, list[int]]:
    """Return the number of rows in each partition, which one pass counts where it is not known."""
    known = {name: _known_lengths(values) for name, values in given.items()}
    counting = Pass("count", None)
    for name, values in given.items():
        if known[name] is None:
            for partition in _partitions(values):
                counting.add(_count, name, partition)
    counted: dict[str, list[int]] = {name: [] for name in given}
    for name, n in counting.results():
        counted[name].append(n)
    return {name: counted[name] if lengths is None else lengths for name, lengths in known.items()}


def _known_lengths(values: Any) -> list[int] | None:
    chunks = getattr(values, "chunks", None)
    if chunks is None or np.isnan(chunks[0]).any():
        return None
    return [int(n) for n in chunks[0]]


def _count(_shared: None, name: str, partition: Any) -> tuple[str, int]:
    return name, len(partition)


def _divide(values: Any, lengths: Sequence[int], wanted: Sequence[int]) -> Any:
    """Divide a target into partitions of the `wanted` lengths."""
    array = dask_module("dask.array")
    if not hasattr(values, "chunks"):
        values = values.to_dask_array(lengths=list(lengths))
    elif _known_lengths(values) is None:
        values = array.Array(values.dask, values.name, (tuple(lengths), *values.chunks[1:]), dtype=values.dtype)
    return values.rechunk({0: tuple(wanted)})
