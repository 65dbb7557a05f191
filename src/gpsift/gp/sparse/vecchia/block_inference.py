r"""Inference on the rows near each block: the posterior of `block_posterior.py`, and rows left out of it.

In the block of a row i, C is the inverse covariance of the observations that are nearest to the block, and w = C y.
Without itself the row is predicted as y_i - w_i / C_ii with variance 1 / C_ii, noise included. The rows of a block come
last among those that are nearest to it, so that their part of C is L^-T L^-1 for a small corner L of the factor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from gpsift._utils.arrays import Array, like, namespace, take_rows, to_numpy
from gpsift._utils.linalg import invert_lower
from gpsift._utils.rows import Rows, map_chunks
from gpsift.gp.inference import InferenceResult
from gpsift.gp.inference.base import LOG_2PI
from gpsift.gp.sparse.vecchia.block_posterior import BlockPosterior
from gpsift.gp.sparse.vecchia.blocks import Blocks, cut_into_blocks, in_blocks, nearest_rows
from gpsift.kernels import Kernel
from gpsift.reference.posterior import exact_posterior

# How many rows are near a block, where nobody says: the more rows there are, the nearer are a block's neighbours, and
# the more blocks there are to factorise. From these numbers of rows on:
NEAR_ROWS = {0: 1500, 20_000: 1000, 100_000: 600}
# Rows of a block, at most, and how many are near it for each of them and one more, at least. Of two posteriors that
# take the same time, that of larger blocks and more rows near them is nearer to exact inference
# (benchmarks/RESULTS.md).
LARGE_BLOCK_ROWS = 200
NEAR_PER_ROW = 3


def usual_near_rows(n_rows: int) -> int:
    """How many rows are near a block, where nobody says."""
    return min(near for least, near in NEAR_ROWS.items() if n_rows >= least)


class ByNeighbours(NamedTuple):
    """A posterior, and latent mean and variance at some rows, each given the others; what is no row is given all."""

    posterior: BlockPosterior
    left_out: Callable[[Rows], tuple[Array, Array]]

    def inferred(self, log_evidence: float) -> InferenceResult:
        """As an engine answers, before rows are left out."""
        none = np.empty(0)
        return InferenceResult(self.posterior, log_evidence, none, none, n_blocks=self.posterior.blocks.n)


@dataclass(frozen=True, eq=False)
class NearBlocks:
    """Exact inference on the rows near each block; these are found when they are asked for."""

    kernel: Kernel
    rows: Rows  # in the order of blocks, each with the variance of its noise
    blocks: Blocks
    near_rows: int

    @classmethod
    def of(cls, kernel: Kernel, noise_var: float | None, rows: Rows, near_rows: int) -> Self:
        """With as many rows near each block; noise None where rows have theirs."""
        block_rows = min(LARGE_BLOCK_ROWS, max(1, near_rows // NEAR_PER_ROW - 1))
        blocks, order = cut_into_blocks(to_numpy(rows.X), kernel, block_rows)
        rows, xp = rows.take(order), namespace(rows.y)
        noise = rows.noise_var if noise_var is None else xp.zeros_like(rows.y) + noise_var
        return cls(kernel, Rows(rows.X, rows.y, noise), blocks, max(block_rows, near_rows))

    def answer(self) -> ByNeighbours:
        """The posterior of all rows."""
        near, (weights, own_weights, precision) = self._solved(range(self.blocks.n))
        rows = self.rows
        posterior = BlockPosterior(self.kernel, self.blocks, rows.X, rows.y, rows.noise_var, near, weights)
        return ByNeighbours(posterior, LeftOut(posterior, own_weights, precision))

    def judged(self, most: int, seed: int) -> tuple[Rows, float]:
        """About `most` rows, of blocks drawn with a seed, and their log density, each given all others near it."""
        n_blocks = max(1, most * self.blocks.n // self.rows.n)
        drawn = np.sort(np.random.default_rng(seed).permutation(self.blocks.n)[:n_blocks]).tolist()
        _, (_, weights, precision) = self._solved(drawn)
        xp = namespace(precision)
        density = -0.5 * float(xp.sum(LOG_2PI - xp.log(precision) + weights**2 / precision))
        owned = map(self.blocks.rows, drawn)
        return self.rows.take(np.concatenate([np.arange(own.start, own.stop) for own in owned])), density

    def _solved(self, numbers: Sequence[int]) -> tuple[np.ndarray, list[Array]]:
        """The rows near these blocks, what they add to the mean there, and w and C_ii of the blocks' own rows."""
        near = nearest_rows(to_numpy(self.rows.X), self.blocks, self.kernel, self.near_rows, numbers)

        def of_block(place: int) -> tuple[Array, Array, Array]:
            here, own = self.rows.take(near[place]), self.blocks.rows(numbers[place])
            posterior, _ = exact_posterior(self.kernel, here.X, here.y, here.noise_var)
            corner = invert_lower(posterior.L[own.start - own.stop :, own.start - own.stop :])
            weights, precision = posterior.weights, namespace(corner).sum(corner**2, axis=0)
            return weights[None, :], weights[own.start - own.stop :], precision

        found = map_chunks(of_block, range(len(near)), self.rows.X)
        return near, [namespace(self.rows.X).concat(pieces) for pieces in zip(*found, strict=True)]


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Rows left out of a posterior by blocks."""

    posterior: BlockPosterior
    own_weights: Array  # w of each row in its own block, (n,)
    precision: Array  # C_ii of each row in its own block, (n,)

    def __call__(self, rows: Rows) -> tuple[Array, Array]:
        posterior, xp = self.posterior, namespace(rows.X)

        def of_block(number: int, which: np.ndarray) -> list[Array]:
            here, own = rows.take(which), posterior.blocks.rows(number)
            at = posterior.places(number, here)
            pieces = (a[own] for a in (self.own_weights, self.precision, posterior.noise_var))
            weights, precision, noise_var = (take_rows(a, np.maximum(at, 0)) for a in pieces)
            mean, var = here.y - weights / precision, 1.0 / precision - noise_var
            if np.any(at < 0):
                latent, is_new = posterior.triple(number).at(here.X), like(mean, at < 0) > 0.0
                mean, var = xp.where(is_new, latent.mean, mean), xp.where(is_new, latent.var, var)
            return [mean, var]

        mean, var = in_blocks(of_block, posterior.visited(rows.X), rows.X)
        return mean, xp.clip(var, 0.0, None)
