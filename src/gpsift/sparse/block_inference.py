r"""Inference with inducing points and blocks of rows: the posterior of `gpsift.sparse.block_posterior`.

In its terms, the values v at the inducing points see the rows of each block through T = R + diag(s):

.. math::
    v \mid y \sim N(\mu, P^{-1}), \qquad P = I + \sum_{blocks} A^T T^{-1} A, \qquad
    \mu = P^{-1} \sum_{blocks} A^T T^{-1} y .

Of very many rows a sample are in blocks; each of the others is a block of its own, so that it has its say about v (this
is FITC), and is predicted in the block where it lies.

Without itself, a sampled row is predicted as y_i - w_i / C_ii with variance 1 / C_ii, noise included, where C is the
inverse covariance of all observations: T^-1 - T^-1 A P^-1 A^T T^-1 within a block. Any other row takes its part of P
and mu with it: with d = T_i - A_i P^-1 A_i^T and h = g^T P^-1 A_i^T the mean goes down by h (y_i - A_i mu) / d and the
variance up by h^2 / d.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np

from gpsift.arrays import Array, like, namespace, rows_of, to_numpy
from gpsift.inference.exact import LOG_2PI
from gpsift.linalg import (
    add_diagonal,
    cholesky_solve,
    invert_lower,
    jittered_cholesky,
    log_det_from_cholesky,
    row_products,
    times_transposed,
)
from gpsift.posterior import Posterior
from gpsift.sparse.block_posterior import BlockFactor, BlockPosterior, in_blocks
from gpsift.sparse.blocks import cut_into_blocks
from gpsift.sparse.bound import BoundModel, row_sums
from gpsift.sparse.inducing import Inducing
from gpsift.sparse.rows import LocalRows, Rows, RowSource, Totals


@dataclass(frozen=True, eq=False)
class BlockMoments(Totals):
    """What the first visit finds."""

    CC: Array  # A^T T^-1 A, (m, m)
    Cy: Array  # A^T T^-1 y, (m,)
    yy: float  # y^T T^-1 y
    log_det: float  # of T


def block_moments(inducing: Inducing, rows: Rows) -> BlockMoments:
    """The first visit of a block."""
    block = BlockFactor.of(inducing, rows)
    xp, y = namespace(rows.y), block.L_T_inverse @ rows.y
    log_det = -2.0 * float(xp.sum(xp.log(xp.linalg.diagonal(block.L_T_inverse))))
    return BlockMoments(block.C.T @ block.C, y @ block.C, float(y @ y), log_det)


def block_weights(inducing: Inducing, mean: Array, L_P_inverse: Array, rows: Rows) -> tuple[Array, Array, Array]:
    """The second visit of a block: w, the diagonal of C, and the weights of the inducing points, (1, m)."""
    block = BlockFactor.of(inducing, rows)
    weights = block.L_T_inverse.T @ (block.L_T_inverse @ (rows.y - block.A @ mean))
    pull = (block.L_T_inverse.T @ block.C) @ L_P_inverse.T
    precision = row_products(block.L_T_inverse.T, block.L_T_inverse.T) - row_products(pull, pull)
    smooth = (mean - weights @ block.A) @ inducing.L_inverse
    return weights, precision, smooth[None, :]


@dataclass(frozen=True, eq=False)
class BlockInference:
    """The posterior with blocks, and what it takes to leave rows out."""

    posterior: BlockPosterior
    mean: Array  # mu, (m,)
    y: Array  # targets of the sampled rows in the order of blocks, (n,)
    precision: Array  # the diagonal of C there, (n,)
    noise_var: float | None  # of all rows; None where each has its own
    log_evidence: float  # log density of all observations together, log N(y; 0, C^-1)

    @classmethod
    def of(cls, model: BoundModel, source: RowSource, sampled: Rows, most: int) -> Self:
        """With some of the rows, or all, in blocks of at most `most`."""
        xp, inducing = namespace(sampled.X), model.inducing
        blocks, order = cut_into_blocks(to_numpy(sampled.X), inducing.kernel, most)
        rows = sampled.take(order)
        noise_var = xp.zeros_like(rows.y) + model.noise(rows)
        by_block = LocalRows(Rows(rows.X, rows.y, noise_var), chunks=blocks.slices)
        _ = inducing.L_inverse  # made once, not by every thread
        total = by_block.total(partial(block_moments, inducing))
        if sampled.n < source.n:
            alone = partial(row_sums, replace(model, power=1.0))
            everywhere, here = source.total(alone), LocalRows(rows, inducing.Z.shape[0]).total(alone)
            total = total + BlockMoments(
                everywhere.AA - here.AA,
                everywhere.Ay - here.Ay,
                everywhere.yy - here.yy,
                everywhere.log_det - here.log_det,
            )
        L_P, _ = jittered_cholesky(add_diagonal(total.CC, 1.0))
        mean = cholesky_solve(L_P, total.Cy)
        log_det = total.log_det + float(log_det_from_cholesky(L_P))
        log_evidence = -0.5 * (source.n * LOG_2PI + log_det + total.yy - float(mean @ total.Cy))
        visit = partial(block_weights, inducing, mean, invert_lower(L_P))
        weights, precision, smooth_weights = by_block.joined(visit)
        posterior = BlockPosterior(inducing.kernel, inducing.Z, L_P, blocks, rows.X, noise_var, weights, smooth_weights)
        return cls(posterior, mean, rows.y, precision, model.noise_var, log_evidence)

    @property
    def elpd(self) -> float:
        """Log density of the sampled rows, each given all other rows."""
        xp, weights = namespace(self.y), self.posterior.weights
        return -0.5 * float(xp.sum(LOG_2PI - xp.log(self.precision) + weights**2 / self.precision))

    def left_out(self, rows: Rows) -> tuple[Array, Array]:
        """Latent mean and variance at some rows, each given all others."""
        xp = namespace(rows.X)
        noise_var = rows.noise_var if self.noise_var is None else self.noise_var
        rows = Rows(rows.X, rows.y, xp.zeros_like(rows.y) + noise_var)
        self.posterior.prepare()

        def of_block(number: int, which: np.ndarray) -> list[Array]:
            triple, here = self.posterior.triple(number), rows.take(which)
            parts = [self._left_out_of(number, triple, here.chunk(part)) for part in triple.parts(here.n)]
            return [xp.concat(pieces) for pieces in zip(*parts, strict=True)]

        mean, var = in_blocks(of_block, self.posterior.visited(rows.X), rows.X)
        return mean, xp.clip(var, 0.0, None)

    def _left_out_of(self, number: int, triple: Posterior, rows: Rows) -> tuple[Array, Array]:
        """The same for some rows of one block."""
        posterior, xp = self.posterior, namespace(rows.X)
        K, prior = posterior.kernel.between(rows.X, triple.Z).K, posterior.kernel.diag(rows.X)
        explained, unknown = (factor.root(K.T).T for factor in triple.factors)
        A = explained[:, : posterior.Z.shape[0]]
        pull = times_transposed(A, posterior.L_P_inverse)
        h, d = row_products(unknown, pull), prior - row_products(A, A) + rows.noise_var - row_products(pull, pull)
        mean = K @ triple.weights - h * (rows.y - A @ self.mean) / d
        var = prior - row_products(explained, explained) + row_products(unknown, unknown) + h**2 / d

        which = posterior.blocks.rows(number)
        places = {key: place for place, key in enumerate(_keys(Rows(posterior.X[which, :], self.y[which])))}
        at = np.array([places.get(key, -1) for key in _keys(rows)])  # where each row is among those of the block, or -1
        is_sampled = like(rows.X, at >= 0) > 0.0
        weights, precision = (rows_of(a[which], np.maximum(at, 0)) for a in (posterior.weights, self.precision))
        return (
            xp.where(is_sampled, rows.y - weights / precision, mean),
            xp.where(is_sampled, 1.0 / precision - rows.noise_var, var),
        )


def _keys(rows: Rows) -> Iterator[bytes]:
    return (row.tobytes() for row in np.column_stack([to_numpy(rows.X), to_numpy(rows.y)]))
