r"""The curvature of a softmax where the covariance matrix has a low rank, as that of few or smooth inputs.

K = F F^T with F (n, r), but for less than a given variance at each point: W is at most 1/2, so that half the log
determinant is right to a quarter of what is left out at all points together. Contrasts g = H f of the latent values,
H the orthonormal rows of Helmert's matrix, have the same prior as each class and curvatures V = H W H^T, and what they
leave out changes no probability. With F_j = F for each of the C - 1 contrasts j along the diagonal,

.. math::
    \log |I + K W| = \log |A|, \qquad M = H^T (V - V F A^{-1} F^T V) H, \qquad
    A_{jk} = \delta_{jk} I + F^T \mathrm{diag}(V_{jk}) \, F .

The posterior covariances of the contrasts at a point are its blocks of F A^{-1} F^T.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import helmert

from gpsift._utils.linalg import cholesky, cholesky_solve, invert_lower, log_det_from_cholesky, pivoted_cholesky


def low_rank_factor(K: np.ndarray, n_classes: int, left_out: float) -> np.ndarray | None:
    """F with F F^T = K but for this variance at each point; None where A would have more rows than K."""
    return pivoted_cholesky(K, left_out, most=len(K) // (n_classes - 1)) if left_out > 0 else None


@dataclass(frozen=True, eq=False)
class LowRankCurvature:
    """The curvature of the height at a point of the latent space: F, and the probabilities pi, (n, C)."""

    F: np.ndarray
    pi: np.ndarray

    @cached_property
    def _H(self) -> np.ndarray:
        return helmert(self.pi.shape[1])

    @cached_property
    def _V(self) -> np.ndarray:
        """V_jk at each point, (C - 1, C - 1, n)."""
        H_pi = self._H @ self.pi.T
        return np.einsum("jc,kc,nc->jkn", self._H, self._H, self.pi, optimize=True) - H_pi[:, None] * H_pi

    @cached_property
    def L(self) -> np.ndarray:
        """Cholesky factor of A, of which only the lower blocks are filled."""
        F, V = self.F, self._V
        m, r = len(V), F.shape[1]
        A = np.empty((m * r, m * r))
        for j in range(m):
            for k in range(j + 1):
                np.matmul(F.T * V[j, k], F, out=A[j * r : (j + 1) * r, k * r : (k + 1) * r])
        A.flat[:: m * r + 1] += 1.0
        return cholesky(A, overwrite=True)

    @cached_property
    def log_det(self) -> float:
        """log |I + K W|."""
        return float(log_det_from_cholesky(self.L))

    @cached_property
    def M_sum_and_spread(self) -> tuple[np.ndarray, np.ndarray]:
        """The sum of the diagonal blocks M_cc, (n, n), and the T_cc of `multiclass.py`, (n, C)."""
        H, V, pi = self._H, self._V, self.pi
        m, (n, r) = len(V), self.F.shape
        inverse = invert_lower(self.L)
        roots = np.zeros((m, n, m * r))  # F L^-T of each contrast: products of two are posterior covariances
        for j in range(m):
            np.matmul(self.F, inverse[j * r :, j * r : (j + 1) * r].T, out=roots[j, :, j * r :])
        Z = np.empty((n, m, m * r))
        for j in range(m):
            np.einsum("kn,knq->nq", V[j], roots, out=Z[:, j])
        Z = Z.reshape(n, -1)
        total = Z @ Z.T
        np.negative(total, out=total)
        total.flat[:: n + 1] += np.einsum("jjn->n", V)
        covariances = np.empty((m, m, n))
        for j in range(m):
            for k in range(j + 1):
                covariances[j, k] = covariances[k, j] = np.einsum("nq,nq->n", roots[j], roots[k])
        S_pi = np.einsum("jc,jkn,kn->nc", H, covariances, H @ pi.T, optimize=True)
        variances = np.einsum("jc,kc,jkn->nc", H, H, covariances, optimize=True)
        return total, pi * (variances - 2.0 * S_pi + np.sum(pi * S_pi, axis=1, keepdims=True))

    def times_M(self, b: np.ndarray) -> np.ndarray:
        """M b, (n, C)."""
        V_b = np.einsum("jkn,kn->jn", self._V, self._H @ b.T)
        inner = cholesky_solve(self.L, (V_b @ self.F).ravel()).reshape(len(V_b), -1)
        V_b -= np.einsum("jkn,kn->jn", self._V, inner @ self.F.T)
        return V_b.T @ self._H
