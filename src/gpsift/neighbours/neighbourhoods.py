"""Rows in blocks and the rows near each, from which a posterior by neighbours is made, or judged on some blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpsift.arrays import Array, namespace, to_numpy
from gpsift.inference import Inferred
from gpsift.kernels import Kernel
from gpsift.neighbours.blocks import Blocks, cut_into_blocks
from gpsift.neighbours.in_blocks import PosteriorInBlocks
from gpsift.neighbours.near import nearest_rows
from gpsift.rows import Rows


class ByNeighbours(NamedTuple):
    """A posterior, and latent mean and variance at some rows, each given the others; what is no row is given all."""

    posterior: PosteriorInBlocks
    left_out: Callable[[Rows], tuple[Array, Array]]

    def inferred(self, log_evidence: float) -> Inferred:
        """As an engine answers, before rows are left out."""
        none, way = np.empty(0), self.posterior.way
        return Inferred(self.posterior, log_evidence, none, none, n_blocks=self.posterior.blocks.n, n_nearest=way.point)


@dataclass(frozen=True, eq=False)
class Neighbourhoods(ABC):
    """Rows in the order of blocks; those that are near a block are found when they are asked for."""

    kernel: Kernel
    rows: Rows
    blocks: Blocks
    near_rows: int

    @abstractmethod
    def answer(self) -> ByNeighbours:
        """The posterior of all rows."""

    @abstractmethod
    def left_out_density(self, numbers: Sequence[int]) -> float:
        """Log density of the rows of these blocks, each given all others."""

    def judged(self, most: int, seed: int) -> tuple[Rows, float]:
        """About `most` rows, of blocks drawn with a seed, and their log density, each given all others near it."""
        n_blocks = max(1, most * self.blocks.n // self.rows.n)
        drawn = np.sort(np.random.default_rng(seed).permutation(self.blocks.n)[:n_blocks]).tolist()
        return self.rows_of(drawn), self.left_out_density(drawn)

    def near(self, numbers: Sequence[int]) -> np.ndarray:
        """Numbers of the rows near these blocks, a block's own last, (n_numbers, near_rows)."""
        return nearest_rows(to_numpy(self.rows.X), self.blocks, self.kernel, self.near_rows, numbers)

    def rows_of(self, numbers: Sequence[int]) -> Rows:
        """The rows of these blocks."""
        owned = map(self.blocks.rows, numbers)
        return self.rows.take(np.concatenate([np.arange(own.start, own.stop) for own in owned]))


def in_order_of_blocks(
    kernel: Kernel, noise_var: float | None, rows: Rows, block_rows: int
) -> tuple[Kernel, Rows, Blocks]:
    """Blocks of at most `block_rows`; each row has the variance of its noise, given where all share one."""
    blocks, order = cut_into_blocks(to_numpy(rows.X), kernel, block_rows)
    rows, xp = rows.take(order), namespace(rows.y)
    noise = rows.noise_var if noise_var is None else xp.zeros_like(rows.y) + noise_var
    return kernel, Rows(rows.X, rows.y, noise), blocks
