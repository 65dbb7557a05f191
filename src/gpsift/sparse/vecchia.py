r"""The evidence of many rows, taken block by block (Vecchia 1988).

A density of all rows is a product of conditional ones. Each block of rows that are near one another is seen given the
rows of earlier blocks that are nearest to it, instead of all of them (Stein, Chi and Welty 2004):

.. math:: \log p(y) \approx \sum_b \log p(y_b \mid y_{N(b)}) = \sum_b \left( \log p(y_b, y_{N(b)}) - \log p(y_{N(b)})
    \right) .

Every term is the evidence of some hundred rows by exact inference, and so is its gradient: the time grows with the rows
alone. A block of rows shares the factorisation that a single row would take for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

import numpy as np

from gpsift.arrays import to_numpy
from gpsift.inference import Engine, Evidence, ExactEngine, Inferred
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood
from gpsift.sparse.neighbours import GivenBlock, given_blocks
from gpsift.sparse.rows import Rows, mapped

# Rows of a block, and nearest earlier rows that it is given.
BLOCK_ROWS = 50
GIVEN_ROWS = 250


class VecchiaEngine(Engine):
    """The evidence of rows with Gaussian noise, block by block."""

    name = "neighbours"

    def __init__(self, rows: Rows, blocks: Sequence[GivenBlock]):
        self.rows, self.blocks = rows, blocks

    @classmethod
    def near(cls, rows: Rows, kernel: Kernel, seed: int) -> Self:
        """With the blocks and the neighbours that suit this kernel."""
        return cls(rows, given_blocks(to_numpy(rows.X), kernel, BLOCK_ROWS, GIVEN_ROWS, seed))

    def evidence(self, kernel: Kernel, likelihood: Likelihood) -> Evidence:
        found = self._of_all(lambda engine, noise: engine.evidence(kernel, noise), likelihood)
        gradient = sum(sign * each.gradient for sign, each in found)
        return Evidence(sum(sign * each.value for sign, each in found), gradient, max(each.jitter for _, each in found))

    def log_evidence(self, kernel: Kernel, likelihood: Likelihood) -> float:
        """Without its gradient."""
        found = self._of_all(lambda engine, noise: engine.log_evidence(kernel, noise), likelihood)
        return sum(sign * each for sign, each in found)

    def infer(self, kernel: Kernel, likelihood: Likelihood) -> Inferred:
        raise NotImplementedError("Vecchia's evidence finds hyperparameters; a BlockInference has the posterior.")

    def fresh(self) -> Self:
        return type(self)(self.rows, self.blocks)

    def _of_all(self, of: Callable, likelihood: Likelihood) -> list:
        """What `of` finds for each block together with the rows that it is given, plus, and for these alone, minus."""

        def of_some(signed: tuple[float, np.ndarray]) -> tuple:
            sign, which = signed
            rows = self.rows.take(which)
            here = likelihood if rows.noise_var is None else likelihood.with_noise_var(to_numpy(rows.noise_var))
            return sign, of(ExactEngine(rows.X, rows.y), here)

        both = [(1.0, np.concatenate([block.given, block.rows])) for block in self.blocks]
        given = [(-1.0, block.given) for block in self.blocks if block.given.size]
        return mapped(of_some, [*both, *given], self.rows.X)
