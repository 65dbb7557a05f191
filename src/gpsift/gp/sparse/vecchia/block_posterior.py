r"""A posterior by blocks: in each block of rows it is that of exact inference on the rows nearest to the block.

With these rows as support every block has a triple of its own (`gpsift.reference.posterior`), and each point has the
posterior of the block in which it lies. This suits a rough function, whose value depends mostly on the rows around a
point. The cost is linear in the number of rows.

A section sets a feature of a point to other values, its nodes, of which some lie in other blocks. A node in the point's
own block has the mean of that block. Any other node has the mean of the point's own block or of the block in which the
node lies, whichever has the nearer row.

Leave-one-out moments have a closed form. For the block of a row i, let C be the inverse covariance of the observations
nearest to the block, and w = C y. Given the others the row is predicted as y_i - w_i / C_ii with variance 1 / C_ii,
noise included. The rows of a block come last among those that are nearest to it, so that their part of C is L^-T L^-1
for a small corner L of the factor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from gpsift._utils.arrays import Array, indices_like, like, namespace, take_rows, to_numpy
from gpsift._utils.linalg import cholesky_solve, invert_lower
from gpsift._utils.rows import DOUBLE, Rows, chunk_bytes_for, map_chunks, row_chunks
from gpsift.gp.inference import InferenceResult
from gpsift.gp.inference.base import LOG_2PI
from gpsift.gp.sparse.vecchia.blocks import (
    Blocks,
    PointsOfBlock,
    cut_into_blocks,
    group_by_block,
    map_blocks,
    nearest_rows,
    nearness,
)
from gpsift.kernels import Kernel, Pairs
from gpsift.reference.function_draws import FunctionDraws
from gpsift.reference.posterior import LatentAt, PickledByFields, Posterior, exact_posterior

# Default number of rows near a block, by the least total number of rows: with more rows the neighbours are nearer, and
# more blocks are factorised.
NEAR_ROWS = {0: 1500, 20_000: 1000, 100_000: 600}
# Rows of a block, at most, and the least number of near rows for each row of a block. At equal time, larger blocks with
# more near rows approximate exact inference better (benchmarks/RESULTS.md).
LARGE_BLOCK_ROWS = 200
NEAR_PER_ROW = 3
# Rows on which the joint covariance of points in several blocks is conditioned, at most.
MOST_JOINT_ROWS = 4000
# Chunks whose memory the nodes of a section may take: with more memory each block is computed less often. With 16
# chunks VAR of 268,853 flights took 116 s instead of 121, and four times the memory of each thread.
SECTION_CHUNKS = 4
# Relative rounding error of squared distances, within which two blocks have the same nearest row.
SAME_DISTANCE = 1e-12


def default_near_rows(n_rows: int) -> int:
    """Return how many rows are near a block by default."""
    return min(near for least, near in NEAR_ROWS.items() if n_rows >= least)


@dataclass(frozen=True, eq=False)
class NearBlocks:
    """Exact inference on the rows near each block."""

    kernel: Kernel
    rows: Rows  # in the order of blocks, each with the variance of its noise
    blocks: Blocks
    near_rows: int

    @classmethod
    def of(cls, kernel: Kernel, noise_var: float | None, rows: Rows, near_rows: int) -> Self:
        """Cut rows into blocks with `near_rows` rows near each; `noise_var` is None where each row has its own."""
        block_rows = min(LARGE_BLOCK_ROWS, max(1, near_rows // NEAR_PER_ROW - 1))
        blocks, order = cut_into_blocks(to_numpy(rows.X), kernel, block_rows)
        rows, xp = rows.take(order), namespace(rows.y)
        noise = rows.noise_var if noise_var is None else xp.zeros_like(rows.y) + noise_var
        return cls(kernel, Rows(rows.X, rows.y, noise), blocks, max(block_rows, near_rows))

    def infer(self) -> BlockInference:
        """Infer the posterior of all rows."""
        near, (weights, own_weights, precision) = self._solve(range(self.blocks.n))
        rows = self.rows
        posterior = BlockPosterior(self.kernel, self.blocks, rows.X, rows.y, rows.noise_var, near, weights)
        return BlockInference(posterior, own_weights, precision)

    def score(self, most: int, seed: int) -> tuple[Rows, float]:
        """Return about `most` rows, of randomly drawn blocks, and their leave-one-out log density."""
        n_blocks = max(1, most * self.blocks.n // self.rows.n)
        drawn = np.sort(np.random.default_rng(seed).permutation(self.blocks.n)[:n_blocks]).tolist()
        _, (_, weights, precision) = self._solve(drawn)
        xp = namespace(precision)
        density = -0.5 * float(xp.sum(LOG_2PI - xp.log(precision) + weights**2 / precision))
        owned = map(self.blocks.rows, drawn)
        return self.rows.take(np.concatenate([np.arange(own.start, own.stop) for own in owned])), density

    def _solve(self, numbers: Sequence[int]) -> tuple[np.ndarray, list[Array]]:
        """Return the rows near these blocks, their weights in the mean, and w and C_ii of the blocks' own rows."""
        near = nearest_rows(to_numpy(self.rows.X), self.blocks, self.kernel, self.near_rows, numbers)

        def solve_block(place: int) -> tuple[Array, Array, Array]:
            rows, own = self.rows.take(near[place]), self.blocks.rows(numbers[place])
            posterior, _ = exact_posterior(self.kernel, rows.X, rows.y, rows.noise_var)
            corner = invert_lower(posterior.L[own.start - own.stop :, own.start - own.stop :])
            weights, precision = posterior.weights, namespace(corner).sum(corner**2, axis=0)
            return weights[None, :], weights[own.start - own.stop :], precision

        found = map_chunks(solve_block, range(len(near)), self.rows.X)
        return near, [namespace(self.rows.X).concat(pieces) for pieces in zip(*found, strict=True)]


@dataclass(frozen=True, eq=False)
class BlockInference:
    """A posterior by blocks, and the terms of its leave-one-out moments."""

    posterior: BlockPosterior
    own_weights: Array  # w of each row in its own block, (n,)
    precision: Array  # C_ii of each row in its own block, (n,)

    def result(self, log_evidence: float) -> InferenceResult:
        """Return the result of a method of inference, without cavities."""
        none = np.empty(0)
        return InferenceResult(self.posterior, log_evidence, none, none, n_blocks=self.posterior.blocks.n)

    def loo_moments(self, rows: Rows) -> tuple[Array, Array]:
        """Return latent mean and variance at some rows, each given the others; points that are no row are given all."""
        posterior, xp = self.posterior, namespace(rows.X)

        def block_moments(number: int, which: np.ndarray) -> list[Array]:
            block_rows, own = rows.take(which), posterior.blocks.rows(number)
            places = posterior.find_in_block(number, block_rows)
            pieces = (a[own] for a in (self.own_weights, self.precision, posterior.noise_var))
            weights, precision, noise_var = (take_rows(a, np.maximum(places, 0)) for a in pieces)
            mean, var = block_rows.y - weights / precision, 1.0 / precision - noise_var
            if np.any(places < 0):
                latent, is_new = posterior.triple(number).at(block_rows.X), like(mean, places < 0) > 0.0
                mean, var = xp.where(is_new, latent.mean, mean), xp.where(is_new, latent.var, var)
            return [mean, var]

        mean, var = map_blocks(block_moments, posterior.group(rows.X), rows.X)
        return mean, xp.clip(var, 0.0, None)


@dataclass(frozen=True, eq=False)
class BlockPosterior(PickledByFields):
    """Exact inference on the rows near each block, with the interface of `gpsift.reference.posterior.Posterior`."""

    kernel: Kernel
    blocks: Blocks
    X: Array  # rows in the order of blocks, (n, p)
    y: Array  # their targets, (n,)
    noise_var: Array  # variances of their noise, (n,)
    near: np.ndarray  # numbers of the rows nearest to each block, its own last, (n_blocks, k)
    weights: Array  # their weights in the mean of the block, (n_blocks, k)

    def at(self, X: Array) -> LatentByBlock:
        """Return the posterior at the rows of X, which need not be training rows."""
        return LatentByBlock(self, X)

    @property
    def Z(self) -> Array:
        """All rows: each supports the posterior somewhere."""
        return self.X

    @property
    def near_rows(self) -> int:
        """How many rows are near each block."""
        return self.near.shape[1]

    def parts(self, n: int) -> list[slice]:
        """Return a single part for n points, because blocks divide them."""
        return [slice(0, n)]

    def covariance(self, X: Array) -> np.ndarray:
        """Return the latent covariance between the rows of X, (n, n), given the rows that are near any of them."""
        near = self.near[np.unique(self.blocks.numbers(to_numpy(X)))]
        rows = np.unique(near[:, -max(1, MOST_JOINT_ROWS // len(near)) :])
        return to_numpy(self.condition_on(rows).covariance(X))

    def group(self, X: Array) -> list[PointsOfBlock]:
        """Group the rows of X by the blocks in which they lie; return each block with the numbers of its rows."""
        return group_by_block(self.blocks.numbers(to_numpy(X)))

    def condition_on(self, rows: np.ndarray) -> Posterior:
        """Return the posterior of exact inference on the rows with these numbers."""
        return exact_posterior(self.kernel, *(take_rows(a, rows) for a in (self.X, self.y, self.noise_var)))[0]

    def triple(self, number: int) -> Posterior:
        """Return the posterior in one block."""
        return self.condition_on(self.near[number])

    def mean_triple(self, number: int) -> Posterior:
        """Return the mean of the posterior in one block, without its variance."""
        return Posterior(self.kernel, take_rows(self.X, self.near[number]), self.weights[number, :], ())

    def draw_corrections(self, prior_values: Array, rng: np.random.Generator) -> BlockSums:
        """Return the corrections of functions drawn from the prior, as `Posterior.draw_corrections`, in each block.

        A row has the same noise in all blocks that it is near to, so that functions hardly jump where blocks meet.
        """
        noise = namespace(self.y).sqrt(self.noise_var)[:, None] * like(self.y, rng.normal(size=prior_values.shape))
        targets = self.y[:, None] - prior_values - noise

        def solve_block(number: int) -> tuple[Array, ...]:
            weights = cholesky_solve(self.triple(number).L, take_rows(targets, self.near[number]))
            return tuple(weights[:, f][None, :] for f in range(weights.shape[1]))

        solved = map_chunks(solve_block, range(self.blocks.n), self.X)
        each = [namespace(self.X).concat(weights) for weights in zip(*solved, strict=True)]
        own = (self.kernel, self.blocks, self.X, self.y, self.noise_var, self.near)
        return BlockSums(tuple(BlockMean(*own, weights) for weights in each))

    def find_in_block(self, number: int, rows: Rows) -> np.ndarray:
        """Find rows among those of a block, and return their numbers in the block; -1 for those that it lacks."""
        own = self.blocks.rows(number)
        known = {key: place for place, key in enumerate(_keys(self.X[own, :], self.y[own]))}
        return np.array([known.get(key, -1) for key in _keys(rows.X, rows.y)])

    def distance(self, number: int, x: Array) -> Array:
        """Return squared distances (n,) of points `in_lengthscales` from the nearest of the rows near a block."""
        xp, Z = namespace(x), take_rows(self._scaled, self.near[number])
        # |z|^2 - 2 x^T z is one matrix product, because each further pass over a matrix of that size takes longer.
        factor = xp.concat([-2.0 * Z, xp.sum(Z * Z, axis=1, keepdims=True)], axis=1).T
        x_and_one = xp.concat([x, xp.ones_like(x[:, :1])], axis=1)
        parts = row_chunks(x.shape[0], Z.shape[0], chunk_bytes_for(x))
        found = [xp.min(x_and_one[part, :] @ factor, axis=1) for part in parts]
        return xp.concat(found) + xp.sum(x * x, axis=1)

    def in_lengthscales(self, X: Array) -> Array:
        """Return points in units of the length-scales, centred at the mean of the rows."""
        return (X - self._middle) * like(X, nearness(self.kernel, X.shape[1]))

    @cached_property
    def _middle(self) -> Array:
        return namespace(self.X).mean(self.X, axis=0)

    @cached_property
    def _scaled(self) -> Array:
        return self.in_lengthscales(self.X)


class BlockMean(BlockPosterior):
    """The mean of a posterior by blocks, without its variance."""

    def triple(self, number: int) -> Posterior:
        return self.mean_triple(number)


@dataclass(frozen=True, eq=False)
class BlockSums(FunctionDraws):
    """Functions that are sums of kernels in each block."""

    means: tuple[BlockMean, ...]

    def values(self, X: Array) -> Array:
        return self._in_blocks(X, lambda pairs, weights: pairs.K @ weights)

    def gradients(self, X: Array) -> Array:
        return self._in_blocks(X, lambda pairs, weights: pairs.input_gradient(weights))

    def hessians(self, X: Array) -> Array:
        return self._in_blocks(X, lambda pairs, weights: pairs.input_hessian(weights))

    def steps(self, X: Array, j: int, delta: float) -> Array:
        return self._in_blocks(X, lambda pairs, weights: pairs.step(j, delta) @ weights)

    def sections(self, X: Array, j: int, base: Array, offset: Array) -> Array:
        return namespace(X).stack([mean.at(X).section(j, base, offset) for mean in self.means], axis=-1)

    def _in_blocks(self, X: Array, result: Callable[[Pairs, Array], Array]) -> Array:
        """Return the results of a function of the kernel, and of the weights, in the block of each point."""

        def in_block(part: LatentAt) -> tuple[Array]:
            return (result(part.pairs, part.posterior.weights),)

        return namespace(X).stack([mean.at(X).map_parts(in_block)[0] for mean in self.means], axis=-1)


class LatentByBlock(LatentAt):
    """A posterior by blocks at points; steps and slopes are those of the posterior of a point's own block."""

    posterior: BlockPosterior  # type: ignore[assignment]

    def __init__(self, posterior: BlockPosterior, X: Array):
        super().__init__(posterior, X, parts=posterior.parts(len(X)))  # type: ignore[arg-type]
        self.groups = posterior.group(X)

    @cached_property
    def mean(self) -> Array:
        def block_mean(number: int, rows: np.ndarray) -> Iterable[Array]:
            return (self.posterior.mean_triple(number).at(take_rows(self.X, rows)).mean,)

        (mean,) = map_blocks(block_mean, self.groups, self.X)
        return mean

    def section(self, j: int, base: Array, offset: Array) -> Array:
        n, p = self.X.shape
        n_nodes = offset.shape[0]
        order = np.concatenate([rows for _, rows in self.groups])
        own = np.repeat([number for number, _ in self.groups], [len(rows) for _, rows in self.groups])

        def chunk_means(chunk: slice) -> Array:
            rows = order[chunk]
            X, at = take_rows(self.X, rows), take_rows(base, rows)
            return SectionMeans(self.posterior, X, own[chunk], j, at, offset).mean()

        # Rows in the order of their blocks, so that the nodes of a chunk lie in few of them.
        most = DOUBLE * n_nodes * p + SECTION_CHUNKS * chunk_bytes_for(self.X)
        found = map_chunks(chunk_means, row_chunks(n, n_nodes * p, most), self.X)
        return take_rows(self.xp.concat(found), np.argsort(order))

    def map_parts(self, function: Callable[[LatentAt], Iterable[Array]]) -> list[Array]:
        def call(number: int, rows: np.ndarray) -> Iterable[Array]:
            return function(self.posterior.triple(number).at(take_rows(self.X, rows)))

        return map_blocks(call, self.groups, self.X)


@dataclass(frozen=True, eq=False)
class SectionMeans:
    """Means at the nodes base_i + offset_q of one feature, for points in the order of their own blocks.

    If the nearest row is near both blocks, the node has the mean of the block in which it lies. Far from all rows the
    mean is that of the point's own block: means jump where blocks meet, and these jumps are not in the data.
    """

    posterior: BlockPosterior
    X: Array
    own: np.ndarray  # the block of each point
    feature: int
    base: Array
    offset: Array

    def mean(self) -> Array:
        """Return the mean at all nodes, (n, q)."""

        def section_mean(number: int, rows: np.ndarray) -> Iterable[Array]:
            latent = self.posterior.mean_triple(number).at(take_rows(self.X, rows))
            return (latent.section(self.feature, take_rows(self.base, rows), self.offset),)

        (mean,) = map_blocks(section_mean, group_by_block(self.own), self.X)
        own, now = np.repeat(self.own, self.offset.shape[0]), self._blocks_of_nodes().ravel()
        left = np.flatnonzero(now != own)
        if not left.size:
            return mean
        xp = namespace(self.X)
        nearer, other_mean = self._where_others_are_nearer(left, own[left], now[left])
        flat = xp.reshape(mean, (-1,))
        flat[indices_like(flat, left[nearer])] = take_rows(other_mean, nearer)
        return xp.reshape(flat, mean.shape)

    def _blocks_of_nodes(self) -> np.ndarray:
        """Return the block in which each node lies, (n, q)."""
        X, base, offset = to_numpy(self.X).copy(), to_numpy(self.base), to_numpy(self.offset)
        numbers = np.empty((len(X), len(offset)), dtype=int)
        for node, by in enumerate(offset):
            X[:, self.feature] = base + by
            numbers[:, node] = self.posterior.blocks.numbers(X)
        return numbers

    def _where_others_are_nearer(self, left: np.ndarray, own: np.ndarray, now: np.ndarray) -> tuple[np.ndarray, Array]:
        """Return which nodes take the mean of the block that they lie in, and the means there of all nodes."""
        posterior = self.posterior
        point, node = np.divmod(left, self.offset.shape[0])
        nodes = take_rows(self.X, point)
        nodes[:, self.feature] = take_rows(self.base, point) + take_rows(self.offset, node)
        scaled = posterior.in_lengthscales(nodes)

        def mean_and_distance(number: int, which: np.ndarray) -> Iterable[Array]:
            distance = posterior.distance(number, take_rows(scaled, which))
            return self._mean_at_nodes(number, left[which], take_rows(nodes, which)), distance

        def distance_from_own(number: int, which: np.ndarray) -> Iterable[Array]:
            return (posterior.distance(number, take_rows(scaled, which)),)

        mean, distance = map_blocks(mean_and_distance, group_by_block(now), nodes)
        (own_distance,) = map_blocks(distance_from_own, group_by_block(own), nodes)
        rounding = SAME_DISTANCE * namespace(scaled).sum(scaled * scaled, axis=1)
        return np.flatnonzero(to_numpy(distance - own_distance <= rounding)), mean

    def _mean_at_nodes(self, number: int, numbers: np.ndarray, nodes: Array) -> Array:
        """Return the mean by one block at nodes with these numbers; the nodes of a point share a section."""
        triple = self.posterior.mean_triple(number)
        if not self.posterior.kernel.has_fast_sections:
            return triple.at(nodes).mean
        point, node = np.divmod(numbers, self.offset.shape[0])
        points, first, row = np.unique(point, return_index=True, return_inverse=True)
        used, column = np.unique(node, return_inverse=True)
        base, offset = take_rows(self.base, points), take_rows(self.offset, used)
        section = triple.at(take_rows(nodes, first)).section(self.feature, base, offset)
        return take_rows(namespace(nodes).reshape(section, (-1,)), row * len(used) + column)


def _keys(X: Array, y: Array) -> Iterator[bytes]:
    return (row.tobytes() for row in np.column_stack([to_numpy(X), to_numpy(y)]))
