r"""Inference by neighbours: the posterior of `gpsift.neighbours.block_posterior`, and rows left out of it.

In the block of a row i, C is the inverse covariance of the observations that are nearest to the block, and w = C y.
Without itself the row is predicted as y_i - w_i / C_ii with variance 1 / C_ii, noise included. The rows of a block come
last among those that are nearest to it, so that their part of C is L^-T L^-1 for a small corner L of the factor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from gpsift.arrays import Array, like, namespace, rows_of, to_numpy
from gpsift.inference.exact import LOG_2PI, exact_posterior
from gpsift.kernels import Kernel
from gpsift.linalg import invert_lower
from gpsift.neighbours.block_posterior import BlockPosterior, in_blocks
from gpsift.neighbours.blocks import Blocks, cut_into_blocks
from gpsift.neighbours.near import nearest_rows
from gpsift.rows import Rows, mapped


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """Rows in the order of blocks, and those that are nearest to each block."""

    kernel: Kernel
    rows: Rows
    blocks: Blocks
    near_rows: int

    @classmethod
    def of(cls, kernel: Kernel, noise_var: float | None, rows: Rows, near_rows: int, block_rows: int) -> Self:
        """Blocks of at most `block_rows`, each with `near_rows` in all; noise None where rows have theirs."""
        blocks, order = cut_into_blocks(to_numpy(rows.X), kernel, block_rows)
        return cls(kernel, with_noise(rows.take(order), noise_var), blocks, max(block_rows, near_rows))

    def inferred(self, numbers: Sequence[int]) -> tuple[np.ndarray, list[Array]]:
        """The rows near these blocks, what they add to the mean there, and w and C_ii of the blocks' own rows."""
        near = nearest_rows(to_numpy(self.rows.X), self.blocks, self.kernel, self.near_rows, numbers)

        def of_block(place: int) -> tuple[Array, Array, Array]:
            here, own = self.rows.take(near[place]), self.blocks.rows(numbers[place])
            posterior, _ = exact_posterior(self.kernel, here.X, here.y, here.noise_var)
            corner = invert_lower(posterior.L[own.start - own.stop :, own.start - own.stop :])
            weights, precision = posterior.weights, namespace(corner).sum(corner**2, axis=0)
            return weights[None, :], weights[own.start - own.stop :], precision

        found = mapped(of_block, range(len(near)), self.rows.X)
        return near, [namespace(self.rows.X).concat(pieces) for pieces in zip(*found, strict=True)]

    def judged(self, most: int, seed: int) -> tuple[Rows, float]:
        """About `most` rows, of blocks drawn with a seed, and their log density, each given all others near it."""
        n_blocks = max(1, most * self.blocks.n // self.rows.n)
        drawn = np.sort(np.random.default_rng(seed).permutation(self.blocks.n)[:n_blocks]).tolist()
        _, (_, weights, precision) = self.inferred(drawn)
        own = np.concatenate([np.arange(rows.start, rows.stop) for rows in map(self.blocks.rows, drawn)])
        return self.rows.take(own), left_out_density(weights, precision)


@dataclass(frozen=True, eq=False)
class BlockInference:
    """The posterior by neighbours, and what it takes to leave rows out."""

    posterior: BlockPosterior
    own_weights: Array  # w of each row in its own block, (n,)
    precision: Array  # C_ii of each row in its own block, (n,)

    @classmethod
    def of(cls, around: Neighbourhoods) -> Self:
        near, (weights, own_weights, precision) = around.inferred(range(around.blocks.n))
        rows = around.rows
        posterior = BlockPosterior(around.kernel, around.blocks, rows.X, rows.y, rows.noise_var, near, weights)
        return cls(posterior, own_weights, precision)

    def left_out(self, rows: Rows) -> tuple[Array, Array]:
        """Latent mean and variance at some rows, each given the others; one that is in no block is given all."""
        posterior, xp = self.posterior, namespace(rows.X)

        def of_block(number: int, which: np.ndarray) -> list[Array]:
            here, own = rows.take(which), posterior.blocks.rows(number)
            places = {key: place for place, key in enumerate(_keys(posterior.X[own, :], posterior.y[own]))}
            at = np.array([places.get(key, -1) for key in _keys(here.X, here.y)])  # where a row is in its block, or -1
            pieces = (a[own] for a in (self.own_weights, self.precision, posterior.noise_var))
            weights, precision, noise_var = (rows_of(a, np.maximum(at, 0)) for a in pieces)
            mean, var = here.y - weights / precision, 1.0 / precision - noise_var
            if np.any(at < 0):
                latent, is_new = posterior.triple(number).at(here.X), like(mean, at < 0) > 0.0
                mean, var = xp.where(is_new, latent.mean, mean), xp.where(is_new, latent.var, var)
            return [mean, var]

        mean, var = in_blocks(of_block, posterior.visited(rows.X), rows.X)
        return mean, xp.clip(var, 0.0, None)


def left_out_density(weights: Array, precision: Array) -> float:
    """Log density of rows, each given the others, by w and C_ii."""
    xp = namespace(precision)
    return -0.5 * float(xp.sum(LOG_2PI - xp.log(precision) + weights**2 / precision))


def with_noise(rows: Rows, noise_var: float | None) -> Rows:
    """Rows that each have the variance of their noise; it is given where all share one."""
    xp = namespace(rows.y)
    return Rows(rows.X, rows.y, rows.noise_var if noise_var is None else xp.zeros_like(rows.y) + noise_var)


def _keys(X: Array, y: Array) -> Iterator[bytes]:
    return (row.tobytes() for row in np.column_stack([to_numpy(X), to_numpy(y)]))
