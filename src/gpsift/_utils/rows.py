"""Observations in chunks of rows, so that the memory of a computation does not grow with their number.

A computation over many rows is a pure function of a chunk. A source of rows maps that function over its chunks: it sums
the results (`map_reduce`) or concatenates them (`map_concat`). Chunks are in the memory of this process, where threads
compute them (`LocalRows`), or on a cluster (`gpsift.reference.dask`).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from gpsift._utils.arrays import Array, namespace, take_rows, to_numpy
from gpsift._utils.threads import threaded_map

# The memory of one matrix of a chunk; a computation holds about ten such matrices. Larger ones are no faster: at this
# size matrix products run at the full speed of BLAS.
CHUNK_BYTES = 2**24
# On a device a chunk must be large enough for thousands of cores.
DEVICE_CHUNK_BYTES = 2**30
DOUBLE = 8
# Chunks are summed in this many groups, whatever the number of threads: the same sums in the same order on any machine.
GROUPS = 8


def chunk_bytes_for(X: Any) -> int:
    """Return the memory that one matrix of a chunk may take on the device of this array."""
    return CHUNK_BYTES if isinstance(X, np.ndarray) else DEVICE_CHUNK_BYTES


def row_chunks(n_rows: int, n_columns: int, chunk_bytes: int = CHUNK_BYTES) -> list[slice]:
    """Cut rows into consecutive slices, such that a matrix of a slice's rows takes at most `chunk_bytes` as doubles.

    The number of slices is the least possible. They are nearly equal, so that threads end at the same time.

    >>> row_chunks(10, 4, chunk_bytes=128)
    [slice(0, 3, None), slice(3, 6, None), slice(6, 10, None)]
    """
    most = max(1, chunk_bytes // (DOUBLE * max(1, n_columns)))
    n_chunks = -(-n_rows // most)
    return [slice(k * n_rows // n_chunks, (k + 1) * n_rows // n_chunks) for k in range(n_chunks)]


@dataclass(frozen=True, eq=False)
class Rows:
    """Inputs and targets of some rows, with known noise variances, and with trials or exposures, or None for these."""

    X: Array
    y: Array
    noise_var: Array = None
    size: Array = None

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    @property
    def vary(self) -> bool:
        """Whether not all targets are equal."""
        y = to_numpy(self.y)
        return bool(np.any(y != y[0]))

    def chunk(self, which: slice) -> Rows:
        """Return the rows of a slice."""
        return self._map(lambda a: a[which, :] if a.ndim == 2 else a[which])

    def take(self, which: np.ndarray) -> Rows:
        """Return the rows with these indices."""
        return self._map(lambda a: take_rows(a, which))

    def on_host(self) -> Rows:
        """Return the rows as NumPy arrays."""
        return self._map(to_numpy)

    def targets_and_sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return targets and sizes as NumPy arrays for a likelihood; sizes are 1 if there are none."""
        y = to_numpy(self.y)
        return y, np.ones(y.shape) if self.size is None else to_numpy(self.size)

    def _map(self, function: Callable[[Array], Array]) -> Rows:
        return Rows(*(None if a is None else function(a) for a in (self.X, self.y, self.noise_var, self.size)))


@dataclass(frozen=True, eq=False)
class Totals:
    """A base class for sums over rows, which are added field by field."""

    def __add__(self, other: Self) -> Self:
        return type(self)(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


T = TypeVar("T")  # a result that can be added: Totals, an array, a number


class RowSource(Protocol):
    """Rows over whose chunks functions can be mapped."""

    @property
    def n(self) -> int:
        """The number of rows."""

    def map_reduce(self, visit: Callable[[Rows], T]) -> T:
        """Return the sum of the results of a function of a chunk, over all chunks."""

    def map_concat(self, visit: Callable[[Rows], tuple[Array, ...]]) -> tuple[Array, ...]:
        """Concatenate the arrays that a function of a chunk returns, in the order of the rows."""

    def sample(self, size: int, seed: int) -> Rows:
        """Draw `size` rows, or return all; if drawn targets are equal, add the rows of the smallest and largest one."""

    def single_chunk(self) -> RowSource:
        """Return the rows of this process in one chunk, for functions that divide rows themselves."""


class LocalRows:
    """A source of rows in this process, whose chunks are computed in as many threads as BLAS may use.

    A matrix of `n_columns` for the rows of a chunk takes no more than `chunk_bytes`, unless `chunks` are passed.
    """

    def __init__(
        self, rows: Rows, n_columns: int = 1, chunk_bytes: int = CHUNK_BYTES, *, chunks: Sequence[slice] | None = None
    ):
        self.rows = rows
        self._chunks = row_chunks(rows.n, n_columns, chunk_bytes) if chunks is None else chunks

    @property
    def n(self) -> int:
        return self.rows.n

    def map_reduce(self, visit: Callable[[Rows], T]) -> T:
        def sum_group(group: Sequence[slice]) -> T:
            return functools.reduce(operator.add, (visit(self.rows.chunk(chunk)) for chunk in group))

        size = -(-len(self._chunks) // GROUPS)
        groups = [self._chunks[start : start + size] for start in range(0, len(self._chunks), size)]
        return functools.reduce(operator.add, map_chunks(sum_group, groups, self.rows.X))

    def map_concat(self, visit: Callable[[Rows], tuple[Array, ...]]) -> tuple[Array, ...]:
        results = map_chunks(lambda chunk: visit(self.rows.chunk(chunk)), self._chunks, self.rows.X)
        xp = namespace(self.rows.X)
        return tuple(xp.concat(pieces) for pieces in zip(*results, strict=True))

    def single_chunk(self) -> LocalRows:
        return LocalRows(self.rows, chunks=[slice(0, self.n)])

    def sample(self, size: int, seed: int) -> Rows:
        if size >= self.n:
            return self.rows
        y = to_numpy(self.rows.y)
        return draw_rows(self.rows.take, self.n, size, seed, extremes=np.array([y.argmin(), y.argmax()]))


def draw_rows(take: Callable[[np.ndarray], Rows], n: int, size: int, seed: int, *, extremes: np.ndarray) -> Rows:
    """Draw `size` of n rows with a seed, and add the rows `extremes` if the drawn targets are equal.

    The indices are the same for rows in this process and on a cluster, and so is a model of them.
    """
    indices = np.sort(np.random.default_rng(seed).choice(n, size=size, replace=False))
    drawn = take(indices)
    return drawn if drawn.vary else take(np.union1d(indices, extremes))


def map_chunks(function: Callable[[Any], Any], items: Sequence[Any], X: Array) -> list[Any]:
    """Apply a function to each item: in threads where X is a NumPy array, one after another on a device."""
    return threaded_map(function, items) if isinstance(X, np.ndarray) else [function(item) for item in items]
