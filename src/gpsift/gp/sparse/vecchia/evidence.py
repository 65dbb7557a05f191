r"""The evidence of many rows by Vecchia's approximation (Vecchia 1988).

The density of all rows is a product of conditional densities of blocks. Each block b is conditioned on the nearest rows
of earlier blocks, instead of all earlier rows (Stein, Chi and Welty 2004): log p(y) is about the sum of
log p(y_b | y_N(b)).

With the conditioning rows first and the rows of the block last, the last rows of L, K + noise = L L^T, give the
conditional density. Let z = L^-1 y and R the last rows of L^-1. Then

.. math::
    \log p(y_b \mid y_{N(b)}) &= -\tfrac12 z_b^T z_b - \sum_{i \in b} \log L_{ii} - \tfrac{|b|}2 \log 2 \pi \\
    \partial \log p(y_b \mid y_{N(b)}) / \partial K &= \tfrac12 (\alpha \alpha^T - a a^T - R^T R),

where alpha = L^-T z, and a = alpha - R^T z_b is the alpha of the conditioning rows alone, 0 elsewhere. The time is
linear in the number of rows. All rows of a block share one factorisation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self, TypeVar

import numpy as np

from gpsift._utils.arrays import Array, like, namespace, to_numpy
from gpsift._utils.linalg import add_diagonal, jittered_cholesky, solve_lower
from gpsift._utils.rows import Rows, map_chunks
from gpsift.gp.inference import Evidence, InferenceMethod, InferenceResult
from gpsift.gp.inference.base import LOG_2PI
from gpsift.gp.sparse.vecchia.blocks import VecchiaBlock, vecchia_blocks
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood

# Rows of a block, at most, and the rows on which it is conditioned: the nearest, and random ones.
BLOCK_ROWS = 50
NEAR_ROWS = 200
FAR_ROWS = 50
# Rows whose evidence is computed; with twice as many or more it is that of some blocks.
VECCHIA_ROWS = 10_000

T = TypeVar("T")


class VecchiaEngine(InferenceMethod):
    """The evidence of rows with Gaussian noise, block by block."""

    name = "neighbours"

    def __init__(self, rows: Rows, blocks: Sequence[VecchiaBlock]):
        self.rows, self.blocks = rows, blocks

    @classmethod
    def for_kernel(cls, rows: Rows, kernel: Kernel, seed: int) -> Self:
        """Return an engine with the blocks and neighbours that suit this kernel; many blocks are thinned out."""
        every = max(1, rows.n // VECCHIA_ROWS)
        return cls(
            rows, vecchia_blocks(to_numpy(rows.X), kernel, BLOCK_ROWS, NEAR_ROWS, FAR_ROWS, seed=seed, every=every)
        )

    @property
    def n(self) -> int:
        """How many rows there are in the blocks."""
        return sum(block.rows.size for block in self.blocks)

    def evidence(self, kernel: Kernel, likelihood: Likelihood) -> Evidence:
        found = self._map_blocks(Conditional.evidence, kernel, likelihood)
        gradient = np.sum([each.gradient for each in found], axis=0)
        total = Evidence(sum(each.value for each in found), gradient, max(each.jitter for each in found))
        return total if likelihood.params else total.without_noise()

    def log_evidence(self, kernel: Kernel, likelihood: Likelihood) -> float:
        return sum(self._map_blocks(Conditional.log_density, kernel, likelihood))

    def _map_blocks(self, function: Callable[[Conditional], T], kernel: Kernel, likelihood: Likelihood) -> list[T]:
        """Call a function with the conditional density of each block."""

        def call(block: VecchiaBlock) -> T:
            rows = self.rows.take(np.concatenate([block.conditioning, block.rows]))
            noise_var = likelihood.noise_var if rows.noise_var is None else rows.noise_var
            return function(Conditional(kernel, rows.X, rows.y, noise_var, block.rows.size))

        return map_chunks(call, self.blocks, self.rows.X)

    def infer(self, kernel: Kernel, likelihood: Likelihood) -> InferenceResult:
        raise NotImplementedError("Vecchia's evidence finds hyperparameters; the posterior is that of blocks.")

    def stateless(self) -> Self:
        return type(self)(self.rows, self.blocks)


class Conditional:
    """p(last observations | those before them); `noise_var` is a number or one for each point."""

    def __init__(self, kernel: Kernel, X: Array, y: Array, noise_var: Array | float, n_last: int):
        self.xp, self.noise_var, self.n_before = namespace(X, y), noise_var, X.shape[0] - n_last
        self.pairs = kernel.between(X, X)
        self.L, self.jitter = jittered_cholesky(add_diagonal(self.pairs.K, noise_var))
        self.z = solve_lower(self.L, y)

    def log_density(self) -> float:
        last, scales = self.z[self.n_before :], self.xp.linalg.diagonal(self.L)[self.n_before :]
        return -0.5 * float(last @ last) - float(self.xp.sum(self.xp.log(scales))) - 0.5 * last.shape[0] * LOG_2PI

    def evidence(self) -> Evidence:
        """Return the log density with its gradient."""
        L, z, n = self.L, self.z, self.L.shape[0]
        R = solve_lower(L, like(L, np.eye(n)[:, self.n_before :]), transpose=True)  # R^T of the formulas
        alpha = solve_lower(L, z, transpose=True)
        a = alpha - R @ z[self.n_before :]
        alpha_a_R = self.xp.concat([alpha[:, None], a[:, None], R], axis=1)
        signed = self.xp.concat([0.5 * alpha[:, None], -0.5 * a[:, None], -0.5 * R], axis=1)
        G = signed @ alpha_a_R.T  # as one product: three matrices and their sum take as long as the factor
        noise_gradient = float(self.xp.sum(self.xp.linalg.diagonal(G) * self.noise_var))
        return Evidence(self.log_density(), np.append(self.pairs.log_gradient(G), noise_gradient), self.jitter)
