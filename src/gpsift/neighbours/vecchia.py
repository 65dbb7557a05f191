r"""The evidence of many rows, taken block by block (Vecchia 1988).

A density of all rows is a product of conditional ones. Each block b of rows that are near one another is seen given the
rows of earlier blocks that are nearest to it, instead of all of them (Stein, Chi and Welty 2004):
log p(y) is about the sum of log p(y_b | y_N(b)).

With the rows that are given first, and all of a block's rows last, K + noise = L L^T has the conditional density in its
last rows. Let z = L^-1 y and R the last rows of L^-1. Then

.. math::
    \log p(y_b \mid y_{N(b)}) &= -\tfrac12 z_b^T z_b - \sum_{i \in b} \log L_{ii} - \tfrac{|b|}2 \log 2 \pi \\
    \partial \log p(y_b \mid y_{N(b)}) / \partial K &= \tfrac12 (\alpha \alpha^T - a a^T - R^T R),

where alpha = L^-T z, and a = alpha - R^T z_b is that of the rows that are given, 0 elsewhere. The time grows with the
rows alone. A block of rows shares the factorisation that a single row would take for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from gpsift.arrays import Array, like, namespace, to_numpy
from gpsift.inference import Engine, Evidence, Inferred
from gpsift.inference.exact import LOG_2PI
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood
from gpsift.linalg import add_diagonal, jittered_cholesky, solve_lower
from gpsift.neighbours.near import GivenBlock, given_blocks
from gpsift.rows import Rows, mapped

# Rows of a block, at most, and earlier rows that it is given: the nearest, and others.
BLOCK_ROWS = 50
NEAR_ROWS = 200
FAR_ROWS = 50
# Rows whose evidence is taken; of twice as many and more, that of some blocks stands for it.
VECCHIA_ROWS = 10_000


class VecchiaEngine(Engine):
    """The evidence of rows with Gaussian noise, block by block."""

    name = "neighbours"

    def __init__(self, rows: Rows, blocks: Sequence[GivenBlock]):
        self.rows, self.blocks = rows, blocks

    @classmethod
    def near(cls, rows: Rows, kernel: Kernel, seed: int) -> Self:
        """With the blocks and the neighbours that suit this kernel; of very many blocks, with some."""
        every = max(1, rows.n // VECCHIA_ROWS)
        return cls(
            rows, given_blocks(to_numpy(rows.X), kernel, BLOCK_ROWS, NEAR_ROWS, FAR_ROWS, seed=seed, every=every)
        )

    @property
    def n(self) -> int:
        """How many rows there are in the blocks."""
        return sum(block.rows.size for block in self.blocks)

    def evidence(self, kernel: Kernel, likelihood: Likelihood) -> Evidence:
        def of_block(block: GivenBlock) -> Evidence:
            rows = self.rows.take(np.concatenate([block.given, block.rows]))
            noise_var = likelihood.noise_var if rows.noise_var is None else rows.noise_var
            return conditional_evidence(kernel, rows.X, rows.y, noise_var, block.rows.size)

        found = mapped(of_block, self.blocks, self.rows.X)
        gradient = np.sum([each.gradient for each in found], axis=0)
        jitter = max(each.jitter for each in found)
        return Evidence(sum(each.value for each in found), gradient if likelihood.params else gradient[:-1], jitter)

    def infer(self, kernel: Kernel, likelihood: Likelihood) -> Inferred:
        raise NotImplementedError("Vecchia's evidence finds hyperparameters; a BlockInference has the posterior.")

    def fresh(self) -> Self:
        return type(self)(self.rows, self.blocks)


def conditional_evidence(kernel: Kernel, X: Array, y: Array, noise_var: Array | float, n_last: int) -> Evidence:
    """log p of the last observations given those before them; `noise_var` is a number or one for each point."""
    xp, n = namespace(X, y), X.shape[0]
    pairs = kernel.between(X, X)
    L, jitter = jittered_cholesky(add_diagonal(pairs.K, noise_var))
    z = solve_lower(L, y)
    R = solve_lower(L, like(X, np.eye(n)[:, n - n_last :]), transpose=True)  # R^T of the formulas
    alpha, last = solve_lower(L, z, transpose=True), z[n - n_last :]
    a = alpha - R @ last
    value = -0.5 * float(last @ last) - float(xp.sum(xp.log(xp.linalg.diagonal(L)[n - n_last :])))
    G = 0.5 * (alpha[:, None] * alpha - a[:, None] * a - R @ R.T)
    noise_gradient = float(xp.sum(xp.linalg.diagonal(G) * noise_var))
    return Evidence(value - 0.5 * n_last * LOG_2PI, np.append(pairs.log_gradient(G), noise_gradient), jitter)
