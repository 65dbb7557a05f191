r"""Laplace's method for several classes: C latent functions that a softmax couples.

All functions have the same kernel. At the mode f_c = K a_c with a_c = y_c - pi_c, y_c being the indicators of class c.
With W, M, D_c, L, P_c and Q as in `coupled.py` and B_c = I + D_c^1/2 K D_c^1/2,

.. math::
    \log q(y) = \log p(y \mid f) - \tfrac12 \sum_c a_c^T f_c - \tfrac12 \log |I + K W|, \qquad
    \log |I + K W| = \sum_c \log |B_c| + \log |Q| - \log |I + K|

(Rasmussen & Williams 2006, equation 3.44 and Algorithm 3.3, whose R^T E R is L^-T Q L^-1 here). As for one function
(`laplace.py`),

.. math::
    \partial \log q(y) / \partial K = \tfrac12 \sum_c (a_c a_c^T - M_{cc} + u_c a_c^T + a_c u_c^T), \qquad
    u = (I - M K) s,

s being the derivative of the determinant's term with respect to the mode. With S the posterior covariance of the
classes at a point, -d tr(S W) / 2 gives s = -W t / 2, t_a = S_aa - 2 (S pi)_a.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.special import log_softmax, softmax

from gpsift.inference.laplace import MAX_ITERATIONS, ROUNDING, uphill
from gpsift.linalg import add_diagonal, cholesky, cholesky_solve, log_det_from_cholesky, solve_lower


@dataclass(frozen=True, eq=False)
class CoupledCurvature:
    """The curvature of the height at a point of the latent space: K, L of I + K, and the probabilities pi, (n, C)."""

    K: np.ndarray
    L: np.ndarray
    pi: np.ndarray

    @cached_property
    def _P_and_log_det_B(self) -> tuple[np.ndarray, float]:
        P, log_det = np.empty((self.pi.shape[1], *self.K.shape)), 0.0
        for c, root in enumerate(np.sqrt(self.pi.T)):
            L_B = cholesky(add_diagonal(root[:, None] * self.K * root, 1.0), overwrite=True)
            Y = solve_lower(L_B, root[:, None] * self.L)  # E_c = D^1/2 B^-1 D^1/2
            P[c] = Y.T @ Y
            log_det += float(log_det_from_cholesky(L_B))
        return P, log_det

    @property
    def P(self) -> np.ndarray:
        """P_c of each class, (C, n, n)."""
        return self._P_and_log_det_B[0]

    @cached_property
    def N(self) -> np.ndarray:
        """Cholesky factor of Q."""
        return cholesky(self.P.sum(axis=0), overwrite=True)

    @cached_property
    def log_det(self) -> float:
        """log |I + K W|."""
        coupling = log_det_from_cholesky(self.N) - log_det_from_cholesky(self.L)
        return self._P_and_log_det_B[1] + float(coupling)

    @cached_property
    def _N_P(self) -> list[np.ndarray]:
        """N^-1 P_c of each class."""
        return [solve_lower(self.N, P) for P in self.P]

    @cached_property
    def M_sum(self) -> np.ndarray:
        """The sum of the diagonal blocks M_cc, (n, n)."""
        inner = self.P.sum(axis=0) - sum(root.T @ root for root in self._N_P)
        return solve_lower(self.L, solve_lower(self.L, inner, transpose=True).T, transpose=True)

    @cached_property
    def cov(self) -> np.ndarray:
        """Posterior covariances of the classes at each point, the blocks of K - K M K, (n, C, C)."""
        q = solve_lower(self.L, self.K)
        V = [root @ q for root in self._N_P]
        cov = np.empty((*self.pi.shape, self.pi.shape[1]))
        for c, P in enumerate(self.P):
            for d in range(c + 1):
                cov[:, c, d] = cov[:, d, c] = np.einsum("ij,ij->j", V[c], V[d])
            cov[:, c, c] += np.diagonal(self.K) - np.einsum("ij,ij->j", q, P @ q)
        return cov

    def times_W(self, b: np.ndarray) -> np.ndarray:
        """W b, (n, C)."""
        return self.pi * (b - np.sum(self.pi * b, axis=1, keepdims=True))

    def times_M(self, b: np.ndarray) -> np.ndarray:
        """M b, (n, C)."""
        P_q = np.einsum("cij,jc->ic", self.P, solve_lower(self.L, b))
        coupled = self.P @ cholesky_solve(self.N, P_q.sum(axis=1))
        return solve_lower(self.L, P_q - coupled.T, transpose=True)


@dataclass(frozen=True, eq=False)
class MulticlassResult:
    """The mode and what belongs to it; see `LaplaceResult`."""

    mode: np.ndarray  # (n, C)
    weights: np.ndarray
    curvature: CoupledCurvature
    log_evidence: float
    converged: bool
    n_iterations: int


def multiclass_laplace(
    K: np.ndarray, Y: np.ndarray, *, start: np.ndarray | None = None, tolerance: float = 1e-10
) -> MulticlassResult:
    """Newton's method on weights a with f = K a, from `start` or from zero; Y are the indicators, (n, C)."""
    L = cholesky(add_diagonal(K, 1.0), overwrite=True)
    a = np.zeros(Y.shape) if start is None else start
    f = K @ a
    height = _height(Y, a, f)
    converged, iteration = False, 0
    while not converged and iteration < MAX_ITERATIONS:
        iteration += 1
        curvature = CoupledCurvature(K, L, softmax(f, axis=1))
        slope = Y - curvature.pi
        b = curvature.times_W(f) + slope
        direction = b - curvature.times_M(K @ b) - a
        K_direction = K @ direction
        gain = 0.5 * float(np.sum(K_direction * (slope - a)))
        # The quadratic's gain foretells what is left; its step is still taken, and squares the error.
        converged = 0.0 <= gain < tolerance * max(1.0, abs(height))
        if converged:
            a, f = a + direction, f + K_direction
            break
        a, f, new_height = uphill(partial(_height, Y), a, f, direction, K_direction, height)
        if new_height <= height:  # rounding hides what little is left to gain
            converged = abs(gain) < ROUNDING * max(1.0, abs(height))
            break
        height = new_height
    curvature = CoupledCurvature(K, L, softmax(f, axis=1))
    log_evidence = _height(Y, a, f) - 0.5 * curvature.log_det
    return MulticlassResult(f, a, curvature, log_evidence, converged, iteration)


def multiclass_gradient(result: MulticlassResult) -> np.ndarray:
    """G with d log q = sum(G o dK) for a change of K."""
    curvature, a = result.curvature, result.weights
    pi, cov = curvature.pi, curvature.cov
    t = np.einsum("icc->ic", cov) - 2.0 * np.einsum("icd,id->ic", cov, pi)
    s = -0.5 * curvature.times_W(t)
    u = s - curvature.times_M(curvature.K @ s)
    across = u @ a.T
    return 0.5 * (a @ a.T - curvature.M_sum + across + across.T)


def cavities(result: MulticlassResult, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Latent means (n, C) and covariances (n, C, C) at each point without its own observation.

    The likelihood is a normal site around the mode, of precision W and natural mean W f + y - pi. Taking it out of the
    posterior N(f, S) leaves the precision S^-1 - W, and the mean f - (S^-1 - W)^-1 (y - pi).
    """
    pi, cov = result.curvature.pi, result.curvature.cov
    W = pi[:, :, None] * (np.eye(pi.shape[1]) - pi[:, None, :])
    precisions, axes = np.linalg.eigh(np.linalg.inv(cov) - W)
    # Without its observation a point is at most as uncertain as under the prior; rounding can say otherwise.
    variances = 1.0 / np.maximum(precisions, 1.0 / np.diagonal(result.curvature.K)[:, None])
    cavity_cov = (axes * variances[:, None, :]) @ np.swapaxes(axes, 1, 2)
    return result.mode - np.einsum("icd,id->ic", cavity_cov, Y - pi), cavity_cov


def _height(Y: np.ndarray, a: np.ndarray, f: np.ndarray) -> float:
    """log p(y | f) - sum_c a_c^T f_c / 2, which the mode maximises."""
    return float(np.sum(Y * log_softmax(f, axis=1)) - 0.5 * np.sum(a * f))
