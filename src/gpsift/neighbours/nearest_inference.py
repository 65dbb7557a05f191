"""Inference on the rows nearest to each point: the posterior of `nearest_posterior.py`, and rows left out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from gpsift.arrays import Array, namespace
from gpsift.inference.exact import LOG_2PI
from gpsift.kernels import Kernel
from gpsift.neighbours.in_blocks import in_blocks
from gpsift.neighbours.nearest_posterior import NearestPosterior
from gpsift.neighbours.neighbourhoods import ByNeighbours, Neighbourhoods, in_order_of_blocks
from gpsift.rows import Rows

# Rows of a block, at most, and for each row that a point is given how many near its block compete to be that.
BLOCK_ROWS = 50
COMPETITORS = 10


@dataclass(frozen=True, eq=False)
class NearPoints(Neighbourhoods):
    """Exact inference on the k rows nearest to each point."""

    k: int

    @classmethod
    def of(cls, kernel: Kernel, noise_var: float | None, rows: Rows, k: int) -> Self:
        """With the nearest of some rows near each block; noise None where rows have theirs."""
        return cls(*in_order_of_blocks(kernel, noise_var, rows, BLOCK_ROWS), BLOCK_ROWS + COMPETITORS * k, k)

    def answer(self) -> ByNeighbours:
        posterior = self._posterior(range(self.blocks.n))
        return ByNeighbours(posterior, LeftOut(posterior))

    def left_out_density(self, numbers: Sequence[int]) -> float:
        own = self.rows_of(numbers)
        mean, var = LeftOut(self._posterior(numbers))(own)
        xp, var = namespace(var), var + own.noise_var
        return -0.5 * float(xp.sum(LOG_2PI + xp.log(var) + (own.y - mean) ** 2 / var))

    def _posterior(self, numbers: Sequence[int]) -> NearestPosterior:
        """The posterior in these blocks."""
        found = self.near(numbers)
        near = np.zeros((self.blocks.n, found.shape[1]), dtype=found.dtype)
        near[list(numbers)] = found
        rows = self.rows
        return NearestPosterior(self.kernel, self.blocks, rows.X, rows.y, rows.noise_var, near, self.k)


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Rows left out of a posterior by the nearest: they are given the nearest of the others."""

    posterior: NearestPosterior

    def __call__(self, rows: Rows) -> tuple[Array, Array]:
        posterior = self.posterior

        def of_block(number: int, which: np.ndarray) -> list[Array]:
            here = rows.take(which)
            places = posterior.places(number, here)
            itself = np.where(places >= 0, posterior.blocks.rows(number).start + places, -1)
            latent = posterior.given_nearest(number, here.X, without=itself)
            return [latent.mean, latent.var]

        mean, var = in_blocks(of_block, posterior.visited(rows.X), rows.X)
        return mean, var
