"""Rows in chunks, so that what a computation holds at once does not grow with their number."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from gpsift._utils.arrays import Array, namespace, rows_of, to_numpy
from gpsift._utils.threads import threaded_map

# What one matrix of a chunk may take; a computation holds about ten of them. Larger ones are no faster: at this size
# the matrix products are long enough for BLAS.
CHUNK_BYTES = 2**24
# On a device a chunk has to be long enough for thousands of cores.
DEVICE_CHUNK_BYTES = 2**30
DOUBLE = 8


def chunk_bytes_for(X: Any) -> int:
    """What one matrix of a chunk may take where this array lives."""
    return CHUNK_BYTES if isinstance(X, np.ndarray) else DEVICE_CHUNK_BYTES


def row_chunks(n_rows: int, n_columns: int, chunk_bytes: int = CHUNK_BYTES) -> list[slice]:
    """Consecutive slices of the rows; a matrix of doubles with this many columns and a slice's rows fits into a chunk.

    They are as few as that allows, and as equal: threads that visit them end at the same time.

    >>> row_chunks(10, 4, chunk_bytes=128)
    [slice(0, 3, None), slice(3, 6, None), slice(6, 10, None)]
    """
    most = max(1, chunk_bytes // (DOUBLE * max(1, n_columns)))
    n_chunks = -(-n_rows // most)
    return [slice(k * n_rows // n_chunks, (k + 1) * n_rows // n_chunks) for k in range(n_chunks)]


# Groups in which chunks are summed, whatever the number of threads: the same sums in the same order on any machine.
GROUPS = 8


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
        """Some that follow one another."""
        return self._each(lambda a: a[which, :] if a.ndim == 2 else a[which])

    def take(self, which: np.ndarray) -> Rows:
        """Those with these numbers."""
        return self._each(lambda a: rows_of(a, which))

    def on_host(self) -> Rows:
        """The same in NumPy."""
        return self._each(to_numpy)

    def observed(self) -> tuple[np.ndarray, np.ndarray]:
        """Targets and sizes, 1 where there are none, in NumPy, as likelihoods take them."""
        y = to_numpy(self.y)
        return y, np.ones(y.shape) if self.size is None else to_numpy(self.size)

    def _each(self, of: Callable[[Array], Array]) -> Rows:
        return Rows(*(None if a is None else of(a) for a in (self.X, self.y, self.noise_var, self.size)))


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums over rows: those of two sets of rows are added entry by entry."""

    def __add__(self, other: Self) -> Self:
        return type(self)(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


T = TypeVar("T")  # of what a visit finds, which can be added: Totals, an array, a number


class RowSource(Protocol):
    """Rows that can be visited."""

    @property
    def n(self) -> int:
        """How many there are."""

    def total(self, visit: Callable[[Rows], T]) -> T:
        """The sum of what a visit finds in each chunk."""

    def joined(self, visit: Callable[[Rows], tuple[Array, ...]]) -> tuple[Array, ...]:
        """What a visit finds row by row, in the order of the rows."""

    def sample(self, size: int, seed: int) -> Rows:
        """`size` rows drawn with a seed, or all; if their targets are all the same, with the extreme ones too."""

    def undivided(self) -> RowSource:
        """The same rows for visits that divide them by themselves: in one chunk, as far as they are in one place."""


class LocalRows:
    """Rows in this process, visited by as many threads as BLAS may have.

    A matrix of `n_columns` for the rows of a chunk takes no more than `chunk_bytes`; chunks are given instead where it
    matters which rows are visited together.
    """

    def __init__(
        self, rows: Rows, n_columns: int = 1, chunk_bytes: int = CHUNK_BYTES, *, chunks: Sequence[slice] | None = None
    ):
        self.rows = rows
        self._chunks = row_chunks(rows.n, n_columns, chunk_bytes) if chunks is None else chunks

    @property
    def n(self) -> int:
        return self.rows.n

    def total(self, visit: Callable[[Rows], T]) -> T:
        def of_group(group: Sequence[slice]) -> T:
            return functools.reduce(operator.add, (visit(self.rows.chunk(chunk)) for chunk in group))

        size = -(-len(self._chunks) // GROUPS)
        groups = [self._chunks[start : start + size] for start in range(0, len(self._chunks), size)]
        return functools.reduce(operator.add, mapped(of_group, groups, self.rows.X))

    def joined(self, visit: Callable[[Rows], tuple[Array, ...]]) -> tuple[Array, ...]:
        found = mapped(lambda chunk: visit(self.rows.chunk(chunk)), self._chunks, self.rows.X)
        xp = namespace(self.rows.X)
        return tuple(xp.concat(pieces) for pieces in zip(*found, strict=True))

    def undivided(self) -> LocalRows:
        return LocalRows(self.rows, chunks=[slice(0, self.n)])

    def sample(self, size: int, seed: int) -> Rows:
        if size >= self.n:
            return self.rows
        y = to_numpy(self.rows.y)
        return drawn_rows(self.rows.take, self.n, size, seed, extremes=np.array([y.argmin(), y.argmax()]))


def drawn_rows(take: Callable[[np.ndarray], Rows], n: int, size: int, seed: int, *, extremes: np.ndarray) -> Rows:
    """`size` of n rows, drawn with a seed and taken by their numbers; with the extreme ones if targets do not vary.

    Numbers do not depend on where the rows are, so that a model does not either.
    """
    drawn = np.sort(np.random.default_rng(seed).choice(n, size=size, replace=False))
    found = take(drawn)
    return found if found.vary else take(np.union1d(drawn, extremes))


def mapped(of: Callable[[Any], Any], items: Sequence[Any], X: Array) -> list[Any]:
    """`of` for each item: in threads where the rows are NumPy's, one after another on a device."""
    return threaded_map(of, items) if isinstance(X, np.ndarray) else [of(item) for item in items]
