"""Rows in the partitions of dask collections, visited by whoever has them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np

from gpsift._utils.rows import CHUNK_BYTES, Rows, draw_rows, row_chunks
from gpsift._utils.validation import feature_values, target_values
from gpsift.reference.dask.passes import Pass

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Partition:
    """A partition of at least one row: how many it has, and the delayed tables of which Rows are made."""

    n: int
    tables: tuple[Any, ...]  # X, y, noise_var, size; all but the first may be None, or a number that all rows have


@dataclass(frozen=True, eq=False)
class Reading:
    """How a partition is read where it is: in chunks, each made what visits expect.

    That is done when a chunk is visited, such as standardisation, so that there is no second copy of the data.
    """

    n_columns: int  # of the matrices that a visit makes
    chunk_bytes: int = CHUNK_BYTES  # that one of them may take
    transform: Callable[[Rows], Rows] | None = None
    size_name: str = "size"  # what users call the size of an observation

    @property
    def chunking(self) -> dict[str, int]:
        return {"n_columns": self.n_columns, "chunk_bytes": self.chunk_bytes}

    def chunks(self, *tables: Any) -> Iterator[Rows]:
        rows = self.read(*tables)
        for chunk in row_chunks(rows.n, self.n_columns, self.chunk_bytes):
            yield self.made(rows.chunk(chunk))

    def read(self, X: Any, y: Any = None, noise_var: Any = None, size: Any = None) -> Rows:
        """A partition as rows in the user's units."""
        values, _ = feature_values(X, "X")
        columns = ((y, "y"), (noise_var, "noise_var"), (size, self.size_name))
        return Rows(values, *(_column(column, len(values), name) for column, name in columns))

    def made(self, rows: Rows) -> Rows:
        return rows if self.transform is None else self.transform(rows)


class ClusterRows:
    """A source of rows: what `gpsift._utils.rows.LocalRows` is for rows in this process.

    Sums and rows come from passes over the collections' own graphs, on the cluster whose client is current or by dask's
    scheduler in this process. Nothing is kept between passes: what does not fit into memory need not, and the rows of a
    lost worker are made again by the others. Collections that were persisted are read from memory; `held` holds them,
    because the graphs of their partitions do not keep what was persisted on a cluster. `extremes` are the numbers of
    the rows with the smallest and the largest target, where they are known.
    """

    def __init__(
        self,
        partitions: Sequence[Partition],
        names: tuple[str, ...] | None,
        reading: Reading,
        held: Any = None,
        extremes: Sequence[int] = (),
    ):
        self.partitions, self.names, self.reading = tuple(partitions), names, reading
        self.held, self.extremes = held, np.array(extremes, dtype=int)
        self._starts = np.cumsum([0, *(partition.n for partition in self.partitions)])

    @property
    def n(self) -> int:
        return int(self._starts[-1])

    def read_as(self, *, extremes: Sequence[int] = (), **changes: Any) -> Self:
        """The same rows, read in another way: the fields of `Reading`."""
        return type(self)(self.partitions, self.names, replace(self.reading, **changes), self.held, extremes)

    def map_reduce(self, visit: Callable[[Rows], T]) -> T:
        return self._pass(_total_of_partition, visit).total()

    def map_concat(self, visit: Callable[[Rows], tuple[Any, ...]]) -> tuple[Any, ...]:
        found = self._pass(_joined_in_partition, visit).results()
        return tuple(np.concatenate(pieces) for pieces in zip(*found, strict=True))

    def _pass(self, of_partition: Callable[..., Any], visit: Callable[[Rows], Any]) -> Pass:
        title = str(getattr(visit, "func", visit).__name__).strip("_")
        one_pass = Pass(title, (visit, self.reading))
        for partition in self.partitions:
            one_pass.add(of_partition, *partition.tables)
        return one_pass

    def single_chunk(self) -> Self:
        return self  # a partition is visited in chunks, which have to fit into the memory of whoever has it

    def sample(self, size: int, seed: int) -> Rows:
        if size >= self.n:
            return self.take(np.arange(self.n))
        return draw_rows(self.take, self.n, size, seed, extremes=self.extremes)

    def take(self, which: np.ndarray) -> Rows:
        """The rows with these ascending numbers, in this process."""
        one_pass = Pass("rows", self.reading)
        edges = np.searchsorted(which, self._starts)
        for partition, start, first, last in zip(self.partitions, self._starts, edges, edges[1:], strict=False):
            if last > first:
                one_pass.add(_rows_of_partition, which[first:last] - start, *partition.tables)
        return _stacked(one_pass.results())


def _column(values: Any, n: int, name: str) -> np.ndarray | None:
    if values is None:
        return None
    return np.full(n, values) if isinstance(values, float) else target_values(values, name)


def _total_of_partition(carried: tuple[Callable[[Rows], T], Reading], *tables: Any) -> T:
    visit, reading = carried
    return functools.reduce(operator.add, map(visit, reading.chunks(*tables)))


def _joined_in_partition(
    carried: tuple[Callable[[Rows], tuple[Any, ...]], Reading], *tables: Any
) -> tuple[np.ndarray, ...]:
    visit, reading = carried
    found = [visit(chunk) for chunk in reading.chunks(*tables)]
    return tuple(np.concatenate(pieces) for pieces in zip(*found, strict=True))


def _rows_of_partition(reading: Reading, which: np.ndarray, *tables: Any) -> Rows:
    return reading.made(reading.read(*tables).take(which))


def _stacked(parts: Sequence[Rows]) -> Rows:
    def stacked(name: str) -> np.ndarray | None:
        pieces = [getattr(part, name) for part in parts]
        return None if pieces[0] is None else np.concatenate(pieces)

    return Rows(stacked("X"), stacked("y"), stacked("noise_var"), stacked("size"))
