r"""Inference by neighbours: the posterior of `gpsift.sparse.block_posterior`, and rows left out of it.

In the block of a row i, C is the inverse covariance of the observations that are nearest to the block, and w = C y.
Without itself the row is predicted as y_i - w_i / C_ii with variance 1 / C_ii, noise included. The rows of a block come
last among those that are nearest to it, so that their part of C is L^-T L^-1 for a small corner L of the factor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from gpsift.arrays import Array, like, namespace, rows_of, to_numpy
from gpsift.inference.exact import LOG_2PI, exact_posterior
from gpsift.kernels import Kernel
from gpsift.linalg import invert_lower
from gpsift.sparse.block_posterior import BlockPosterior, in_blocks
from gpsift.sparse.blocks import cut_into_blocks
from gpsift.sparse.neighbours import nearest_rows
from gpsift.sparse.rows import Rows, mapped


@dataclass(frozen=True, eq=False)
class BlockInference:
    """The posterior by neighbours, and what it takes to leave rows out."""

    posterior: BlockPosterior
    own_weights: Array  # w of each row in its own block, (n,)
    precision: Array  # C_ii of each row in its own block, (n,)

    @classmethod
    def of(cls, kernel: Kernel, noise_var: float | None, rows: Rows, block_rows: int, near_rows: int) -> Self:
        """Of rows in blocks of at most `block_rows`, each with `near_rows` in all; noise None where rows have theirs."""
        blocks, order = cut_into_blocks(to_numpy(rows.X), kernel, block_rows)
        rows = with_noise(rows.take(order), noise_var)
        near = nearest_rows(to_numpy(rows.X), blocks, kernel, max(block_rows, near_rows))

        def of_block(number: int) -> tuple[Array, Array, Array]:
            here, size = rows.take(near[number]), blocks.rows(number).stop - blocks.rows(number).start
            posterior, _ = exact_posterior(kernel, here.X, here.y, here.noise_var)
            corner = invert_lower(posterior.L[-size:, -size:])
            precision = namespace(corner).sum(corner**2, axis=0)
            return posterior.weights[None, :], posterior.weights[-size:], precision

        found = mapped(of_block, range(blocks.n), rows.X)
        weights, own_weights, precision = (namespace(rows.X).concat(pieces) for pieces in zip(*found, strict=True))
        posterior = BlockPosterior(kernel, blocks, rows.X, rows.y, rows.noise_var, near, weights)
        return cls(posterior, own_weights, precision)

    @property
    def elpd(self) -> float:
        """Log density of the rows, each given all others that are near."""
        xp = namespace(self.precision)
        return -0.5 * float(xp.sum(LOG_2PI - xp.log(self.precision) + self.own_weights**2 / self.precision))

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


def with_noise(rows: Rows, noise_var: float | None) -> Rows:
    """Rows that each have the variance of their noise; it is given where all share one."""
    xp = namespace(rows.y)
    return Rows(rows.X, rows.y, rows.noise_var if noise_var is None else xp.zeros_like(rows.y) + noise_var)


def _keys(X: Array, y: Array) -> Iterator[bytes]:
    return (row.tobytes() for row in np.column_stack([to_numpy(X), to_numpy(y)]))
