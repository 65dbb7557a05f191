r"""The curvature of a softmax in coordinates of C - 1 contrasts of the classes, for few classes.

W = diag(pi) - pi pi^T of a point is R R^T with R = diag(s) U, s the square roots of the probabilities and U an
orthonormal basis, C x (C - 1), of what is orthogonal to s. With R of all points, of which R_j are the columns,

.. math:: M = R B^{-1} R^T, \qquad \log |I + K W| = \log |B|, \qquad B_{jk} = \delta_{jk} I + K \circ (R_j R_k^T) .

One factor of (C - 1) n rows takes less than the C factors of n rows of `CoupledCurvature` and what couples them as long
as there are three classes, and more from four on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpsift._utils.linalg import cholesky, cholesky_solve, inverse_from_cholesky, log_det_from_cholesky

# Classes up to which the one large factor is the faster one.
MOST_CLASSES = 3


@dataclass(frozen=True, eq=False)
class ContrastCurvature:
    """The curvature of the height at a point of the latent space: K, and the probabilities pi, (n, C)."""

    K: np.ndarray
    pi: np.ndarray

    @cached_property
    def _U(self) -> np.ndarray:
        """The basis at each point, (C - 1, n, C): e_j - s_j (s + e_C) / (1 + s_C), from Householder's reflection."""
        s, last = np.sqrt(self.pi), self.pi.shape[1] - 1
        toward = s / (1.0 + s[:, last:])
        toward[:, last] = 1.0
        U = -s.T[:last, :, None] * toward
        for j in range(last):
            U[j, :, j] += 1.0
        return U

    @cached_property
    def _R(self) -> np.ndarray:
        """R_j of all points, (C - 1, n, C)."""
        return np.sqrt(self.pi) * self._U

    @cached_property
    def L(self) -> np.ndarray:
        """Cholesky factor of B, of which only the lower blocks are filled."""
        m, n = self._R.shape[:2]
        B = np.empty((m * n, m * n))
        for j in range(m):
            for k in range(j + 1):
                np.multiply(self._R[j] @ self._R[k].T, self.K, out=B[j * n : (j + 1) * n, k * n : (k + 1) * n])
        B.flat[:: m * n + 1] += 1.0
        return cholesky(B, overwrite=True)

    @cached_property
    def log_det(self) -> float:
        """log |I + K W|."""
        return float(log_det_from_cholesky(self.L))

    @cached_property
    def M_sum_and_spread(self) -> tuple[np.ndarray, np.ndarray]:
        """The sum of the diagonal blocks M_cc, (n, n), and the T_cc of `multiclass.py`, (n, C)."""
        m, n = self._R.shape[:2]
        inverse = inverse_from_cholesky(self.L).reshape(m, n, m, n)
        total, spread = np.zeros((n, n)), 1.0 - self.pi  # the sum of U_j U_j over j is 1 - pi
        for j in range(m):
            for k in range(j + 1):
                block, share = inverse[j, :, k, :], 1.0 if j == k else 2.0  # of two blocks that mirror each other
                product = self._R[j] @ self._R[k].T
                product *= block
                total += product if j == k else product + product.T
                spread -= share * self._U[j] * self._U[k] * np.diagonal(block)[:, None]
        return total, spread

    def times_M(self, b: np.ndarray) -> np.ndarray:
        """M b, (n, C)."""
        inner = np.einsum("jnc,nc->jn", self._R, b).ravel()
        return np.einsum("jnc,jn->nc", self._R, cholesky_solve(self.L, inner).reshape(self._R.shape[:2]))
