"""Observations in chunks of rows, so that the memory of a computation does not grow with their number.

A computation over many rows is a pure function of a chunk. A source of rows maps that function over its chunks: it sums
the results (`map_reduce`) or concatenates them (`map_concat`). Chunks may be anywhere: in this process, where threads
work on them (`LocalRows`), or on a cluster (`gpsift.reference.dask`).
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

# The memory of one matrix of a chunk; a computation holds about ten of them. Larger ones are no faster: at this size
# the matrix products are long enough for BLAS.
CHUNK_BYTES = 2**24
# On a device a chunk has to be long enough for thousands of cores.
DEVICE_CHUNK_BYTES = 2**30
DOUBLE = 8
# Chunks are summed in this many groups, whatever the number of threads: the same sums in the same order on any machine.
GROUPS = 8


def chunk_bytes_for(X: Any) -> int:
    """Return the memory that one matrix of a chunk may take where this array lives."""
    return CHUNK_BYTES if isinstance(X, np.ndarray) else DEVICE_CHUNK_BYTES


def row_chunks(n_rows: int, n_columns: int, chunk_bytes: int = CHUNK_BYTES) -> list[slice]:
    """Cut rows into consecutive slices; doubles of a slice's rows and this many columns take at most `chunk_bytes`.

    The slices are as few as that allows, and as equal, so that threads end at the same time.

    >>> row_chunks(10, 4, chunk_bytes=128)
    [slice(0, 3, None), slice(3, 6, None), slice(6, 10, None)]
    """
    most = max(1, chunk_bytes // (DOUBLE * max(1, n_columns)))
    n_chunks = -(-n_rows // most)
    return [slice(k * n_rows // n_chunks, (k + 1) * n_rows // n_chunks) for k in range(n_chunks)]


@dataclass(frozen=True, eq=False)
class Rows:
    """Observations; `noise_var` where the variance of each is known, `size` where a count has trials or an exposure."""

    X: Array
    y: Array
    noise_var: Array = None
    size: Array = None

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    @property
    def vary(self) -> bool:
        """Whether targets differ."""
        y = to_numpy(self.y)
        return bool(np.any(y != y[0]))

    def chunk(self, which: slice) -> Rows:
        """Return the rows of a slice."""
        return self._map(lambda a: a[which, :] if a.ndim == 2 else a[which])

    def take(self, which: np.ndarray) -> Rows:
        """Return the rows with these numbers."""
        return self._map(lambda a: take_rows(a, which))

    def on_host(self) -> Rows:
        """Return the rows as NumPy arrays."""
        return self._map(to_numpy)

    def targets_and_sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return targets and sizes in NumPy, as likelihoods take them; a size is 1 where none is given."""
        y = to_numpy(self.y)
        return y, np.ones(y.shape) if self.size is None else to_numpy(self.size)

    def _map(self, of: Callable[[Array], Array]) -> Rows:
        return Rows(*(None if a is None else of(a) for a in (self.X, self.y, self.noise_var, self.size)))


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums over rows; the totals of two sets of rows are added field by field."""

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
        """Draw `size` rows with a seed, or return all; equal targets are joined by the smallest and the largest."""

    def single_chunk(self) -> RowSource:
        """Return the rows in one chunk, as far as they are in one place, for functions that divide rows themselves."""


class LocalRows:
    """A source of rows in this process, worked on by as many threads as BLAS may have.

    A matrix of `n_columns` for the rows of a chunk takes no more than `chunk_bytes`. Pass `chunks` where it matters
    which rows are together.
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
    """Draw `size` of n rows with a seed and take them by their numbers; add the extreme ones if targets do not vary.

    The numbers do not depend on where the rows are, so a model does not either.
    """
    numbers = np.sort(np.random.default_rng(seed).choice(n, size=size, replace=False))
    drawn = take(numbers)
    return drawn if drawn.vary else take(np.union1d(numbers, extremes))


def map_chunks(of: Callable[[Any], Any], items: Sequence[Any], X: Array) -> list[Any]:
    """Apply `of` to each item: in threads where X is a NumPy array, one after another on a device."""
    return threaded_map(of, items) if isinstance(X, np.ndarray) else [of(item) for item in items]
