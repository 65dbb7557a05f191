r"""Inducing points by greedy conditional variance.

The next point is the row of X about whose function value the points so far say least: the largest entry of

.. math:: \mathrm{diag}(K - K_{xz} K_{zz}^{-1} K_{zx}) ,

which a Cholesky factorisation with pivots keeps up to date, one column for each point. Its sum is the gap between K and
what the inducing points make of it, so few points serve where the function is smooth and many where it is not
(Burt, Rasmussen and van der Wilk 2020, section 5.2.2).
"""

from __future__ import annotations

import numpy as np

from gpsift.kernels import Kernel

# Points are sought among at most this many rows, or so many for each point: the spread of a sample is that of the data.
CANDIDATES = 4000
CANDIDATES_PER_POINT = 8
# A row whose variance the others explain up to this share adds nothing but rounding errors.
EXPLAINED = 1e-10


def most_candidates(m: int) -> int:
    """Among how many rows m points are sought."""
    return max(CANDIDATES, CANDIDATES_PER_POINT * m)


def inducing_rows(kernel: Kernel, X: np.ndarray, m: int) -> np.ndarray:
    """Indices of at most m rows of X, in the order in which they were picked; fewer where fewer explain the rows."""
    n = X.shape[0]
    m = min(m, n)
    unexplained = np.array(kernel.diag(X), dtype=float)
    least = EXPLAINED * unexplained.max()
    columns = np.empty((m, n))  # of the Cholesky factor, as rows
    picked: list[int] = []
    for k in range(m):
        i = int(np.argmax(unexplained))
        if unexplained[i] <= least:
            break
        column = kernel.between(X, X[i : i + 1]).K[:, 0]
        column = (column - columns[:k, i] @ columns[:k]) / np.sqrt(unexplained[i])
        columns[k] = column
        unexplained = np.maximum(unexplained - column**2, 0.0)
        unexplained[i] = 0.0
        picked.append(i)
    return np.array(picked)
