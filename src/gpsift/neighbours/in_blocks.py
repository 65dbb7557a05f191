"""What both posteriors by neighbours share: rows in blocks, and points that are visited block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpsift.arrays import Array, namespace, rows_of, to_numpy
from gpsift.chunks import DOUBLE, chunk_bytes_for, row_chunks
from gpsift.inference.exact import exact_posterior
from gpsift.kernels import Kernel
from gpsift.neighbours.blocks import Blocks
from gpsift.neighbours.choice import Near
from gpsift.posterior import LatentAt, LatentInParts, PickledByFields, Posterior
from gpsift.rows import Rows, mapped

# Rows on which the joint covariance of points in several blocks rests, at most.
MOST_JOINT_ROWS = 4000
# Chunks that the nodes of a section take together, at most: the more there are, the fewer times a block is visited.
# With 16, VAR of 268,853 flights took 116 s for 121, and held four times as much in each thread.
SECTION_CHUNKS = 4
# A block's number, and those of the points in it.
Visit = tuple[int, np.ndarray]


class Moved(NamedTuple):
    """Points of which a feature is set to base_i + offset_q, and the blocks that they come from."""

    X: Array
    own: np.ndarray
    feature: int
    base: Array
    offset: Array

    def nodes(self, which: np.ndarray) -> Array:
        """Where they are then, of n * q those with these numbers."""
        point, node = np.divmod(which, self.offset.shape[0])
        nodes = rows_of(self.X, point)
        nodes[:, self.feature] = rows_of(self.base, point) + rows_of(self.offset, node)
        return nodes

    def numbers_in(self, blocks: Blocks) -> np.ndarray:
        """In which block each is then, (n, q)."""
        X, base, offset = to_numpy(self.X).copy(), to_numpy(self.base), to_numpy(self.offset)
        found = np.empty((len(X), len(offset)), dtype=int)
        for node, by in enumerate(offset):
            X[:, self.feature] = base + by
            found[:, node] = blocks.numbers(X)
        return found


@dataclass(frozen=True, eq=False)
class PosteriorInBlocks(PickledByFields, ABC):
    """A posterior by neighbours; it answers as a `gpsift.posterior.Posterior` does."""

    kernel: Kernel
    blocks: Blocks
    X: Array  # rows in the order of blocks, (n, p)
    y: Array  # their targets, (n,)
    noise_var: Array  # and the variances of their noise, (n,)
    near: np.ndarray  # numbers of the rows nearest to each block, its own last, (n_blocks, k)

    @abstractmethod
    def at(self, X: Array) -> LatentInBlocks:
        """The posterior at the rows of X, anywhere."""

    @property
    @abstractmethod
    def way(self) -> Near:
        """Who is asked."""

    @property
    def Z(self) -> Array:
        """All rows: each supports the posterior somewhere."""
        return self.X

    def parts(self, n: int) -> list[slice]:
        """Of n points, all at once: they are taken block by block."""
        return [slice(0, n)]

    def covariance(self, X: Array) -> np.ndarray:
        """Latent covariance between the rows of X, (n, n), given the rows that are near any of them."""
        near = self.near[np.unique(self.blocks.numbers(to_numpy(X)))]
        rows = np.unique(near[:, -max(1, MOST_JOINT_ROWS // len(near)) :])
        return to_numpy(self.given(rows).covariance(X))

    def visited(self, X: Array) -> list[Visit]:
        """The blocks in which rows of X lie, each with the numbers of these rows."""
        return grouped(self.blocks.numbers(to_numpy(X)))

    def given(self, rows: np.ndarray) -> Posterior:
        """That of exact inference on the rows with these numbers."""
        return exact_posterior(self.kernel, *(rows_of(a, rows) for a in (self.X, self.y, self.noise_var)))[0]

    def places(self, number: int, rows: Rows) -> np.ndarray:
        """Which rows of a block these are, counted in the block; -1 for those that are none of it."""
        own = self.blocks.rows(number)
        known = {key: place for place, key in enumerate(_keys(self.X[own, :], self.y[own]))}
        return np.array([known.get(key, -1) for key in _keys(rows.X, rows.y)])


class LatentInBlocks(LatentInParts):
    """The same at points in several blocks; a step and slopes are those of the posterior in a point's own block."""

    posterior: PosteriorInBlocks  # type: ignore[assignment]

    def __init__(self, posterior: PosteriorInBlocks, X: Array):
        self.posterior, self.X, self.xp = posterior, X, namespace(X)
        self.visited = posterior.visited(X)

    @abstractmethod
    def in_block(self, number: int, X: Array) -> LatentAt:
        """At points in one block."""

    @cached_property
    def mean(self) -> Array:
        (mean,) = self._joined_of(lambda latent: (latent.mean,))
        return mean

    @abstractmethod
    def mean_of_moved(self, moved: Moved) -> Array:
        """The mean at the nodes of some points, (n, q)."""

    def section(self, j: int, base: Array, offset: Array) -> Array:
        n, p = self.X.shape
        n_nodes = offset.shape[0]
        order = np.concatenate([rows for _, rows in self.visited])
        own = np.repeat([number for number, _ in self.visited], [len(rows) for _, rows in self.visited])

        def of_chunk(chunk: slice) -> Array:
            rows = order[chunk]
            return self.mean_of_moved(Moved(rows_of(self.X, rows), own[chunk], j, rows_of(base, rows), offset))

        # Rows in the order of their blocks, so that the nodes of a chunk lie in few of them.
        most = DOUBLE * n_nodes * p + SECTION_CHUNKS * chunk_bytes_for(self.X)
        found = mapped(of_chunk, row_chunks(n, n_nodes * p, most), self.X)
        return rows_of(self.xp.concat(found), np.argsort(order))

    def _joined_of(self, of: Callable[[LatentAt], Iterable[Array]]) -> list[Array]:
        def of_block(number: int, rows: np.ndarray) -> Iterable[Array]:
            return of(self.in_block(number, rows_of(self.X, rows)))

        return in_blocks(of_block, self.visited, self.X)


def in_blocks(of: Callable[[int, np.ndarray], Iterable[Array]], visits: list[Visit], X: Array) -> list[Array]:
    """What `of` finds for the points of each visit, given the block's number and theirs, in the order of the points."""
    found = mapped(lambda visit: of(*visit), visits, X)
    back = np.argsort(np.concatenate([rows for _, rows in visits]))
    return [rows_of(namespace(X).concat(pieces), back) for pieces in zip(*found, strict=True)]


def grouped(numbers: np.ndarray) -> list[Visit]:
    """Each number that occurs, with where it does."""
    order = np.argsort(numbers, kind="stable")
    occurring, starts = np.unique(numbers[order], return_index=True)
    return list(zip(occurring.tolist(), np.split(order, starts[1:]), strict=True))


def _keys(X: Array, y: Array) -> Iterator[bytes]:
    return (row.tobytes() for row in np.column_stack([to_numpy(X), to_numpy(y)]))
