"""Inducing points: their selection among the rows, and their covariance.

A variational bound is lower by the sum of residual prior variances, the trace of K - Q. Points are picked one after
another. Of some rows, drawn with probabilities proportional to their residual variances, the one that lowers the trace
most is taken: a row among many others, not the outlier that often has the largest variance. On 2000 rows of the Protein
data and 200 points the bound is 500 nats above that of the row of largest variance each time, which is the greedy
choice of Burt, Rasmussen and van der Wilk (2020, section 5.2.2), and 130 above one draw each time, which is randomly
pivoted Cholesky (Chen, Epperly, Tropp and Webber 2025).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from gpsift._utils.arrays import Array, namespace
from gpsift._utils.linalg import add_diagonal, invert_lower, jittered_cholesky, solve_lower, times_transposed
from gpsift.kernels import Kernel, Pairs
from gpsift.reference.posterior import DenseFactor, Posterior

# Added to the diagonal of K_zz, relative to its mean: always the same share, so that the objective stays smooth.
JITTER = 1e-10
# Points are picked among this many rows of a sample, or this many for each point if that is more.
CANDIDATES = 4000
CANDIDATES_PER_POINT = 8
# Rows that compete to be the next point.
COMPETITORS = 20
# A row with less than this share of the largest variance as residual variance adds only rounding errors.
EXPLAINED = 1e-10


@dataclass(frozen=True, eq=False)
class Inducing:
    """The inducing points under a kernel: K_zz plus jitter = L L^T."""

    kernel: Kernel
    Z: Array
    pairs: Pairs
    L: Array
    jitter: float
    added: float  # the part of it that goes beyond the usual share

    @classmethod
    def of(cls, kernel: Kernel, Z: Array) -> Self:
        pairs = kernel.between(Z, Z)
        jitter = JITTER * float(namespace(Z).mean(kernel.diag(Z)))
        L, more = jittered_cholesky(add_diagonal(pairs.K, jitter))
        return cls(kernel, Z, pairs, L, jitter + more, more)

    @cached_property
    def L_inverse(self) -> Array:
        return invert_lower(self.L)

    def whiten(self, pairs: Pairs) -> Array:
        """Return K_xz L^-T."""
        return times_transposed(pairs.K, self.L_inverse)

    def log_gradient(self, inner: Array) -> np.ndarray:
        """Return the gradient by log parameters of the kernel, where L^-T `inner` L^-1 is the derivative by K_zz."""
        G = solve_lower(self.L, solve_lower(self.L, inner, transpose=True).T, transpose=True)
        xp = namespace(G)
        share = self.jitter / float(xp.mean(self.kernel.diag(self.Z)))  # of the mean diagonal, with which it moves
        return self.pairs.log_gradient(add_diagonal(G, share * float(xp.mean(xp.linalg.diagonal(G)))))

    def posterior(self, mean: Array, precision: Array) -> Posterior:
        """Return the triple for L v with v ~ N(mean, B^-1): w = L^-T mean and M = L^-T (I - B^-1) L^-1."""
        xp = namespace(precision)
        scales, directions = xp.linalg.eigh(precision)  # none below 1
        root = xp.sqrt(xp.clip(1.0 - 1.0 / scales, 0.0, None))[:, None] * (directions.T @ self.L_inverse)
        weights = solve_lower(self.L, mean, transpose=True)
        return Posterior(self.kernel, self.Z, weights, (DenseFactor(root),))


def most_candidates(m: int) -> int:
    """Return the number of rows among which m points are picked."""
    return max(CANDIDATES, CANDIDATES_PER_POINT * m)


def inducing_rows(kernel: Kernel, X: np.ndarray, m: int, *, seed: int = 0) -> np.ndarray:
    """Pick at most m rows of X, and return their indices in that order; fewer where fewer explain the rows."""
    n = X.shape[0]
    rng = np.random.default_rng(seed)
    residual = np.array(kernel.diag(X), dtype=float)
    least = EXPLAINED * residual.max()
    columns = np.empty((min(m, n), n))  # of the Cholesky factor, as rows
    picked: list[int] = []
    for k in range(min(m, n)):
        if residual.max() <= least:
            break
        if m < n:
            weights = np.where(residual > least, residual, 0.0)
            size = min(COMPETITORS, int(np.count_nonzero(weights)))
            drawn = rng.choice(n, size=size, replace=False, p=weights / weights.sum())
        else:
            drawn = np.array([np.argmax(residual)])
        found = kernel.between(X, X[drawn]).K - columns[:k].T @ columns[:k, drawn]
        found /= np.sqrt(residual[drawn])
        best = int(np.argmax(np.einsum("ij,ij->j", found, found)))
        columns[k] = found[:, best]
        residual = np.maximum(residual - columns[k] ** 2, 0.0)
        residual[drawn[best]] = 0.0
        picked.append(int(drawn[best]))
    return np.array(picked)
