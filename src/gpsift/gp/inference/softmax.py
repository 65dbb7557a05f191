r"""Laplace's method for several classes: C latent functions that a softmax couples.

All functions have the same kernel. At the mode f_c = K a_c with a_c = y_c - pi_c, y_c being the indicators of class c.
With W, M, D_c, L, P_c and Q as in `softmax_posterior.py` and B_c = I + D_c^1/2 K D_c^1/2,

.. math::
    \log q(y) = \log p(y \mid f) - \tfrac12 \sum_c a_c^T f_c - \tfrac12 \log |I + K W|, \qquad
    \log |I + K W| = \sum_c \log |B_c| + \log |Q| - \log |I + K|

(Rasmussen & Williams 2006, equation 3.44 and Algorithm 3.3, whose R^T E R is L^-T Q L^-1 here). As for one function
(`laplace.py`),

.. math::
    \partial \log q(y) / \partial K = \tfrac12 \sum_c (a_c a_c^T - M_{cc} + u_c a_c^T + a_c u_c^T), \qquad
    u = (I - M K) s,

s being the derivative of the determinant's term with respect to the mode, -d tr(S W) / 2 with S the posterior
covariance of the classes at a point. W and all its derivatives are 0 along (1, ..., 1), so S may be replaced by the
matrix with S pi = 0 that differs from it in this direction only. With T = D^1/2 S D^1/2 for this S, which needs no
division by probabilities,

.. math::
    s_c = -\tfrac12 \bigl(T_{cc} - \pi_c \textstyle\sum_d T_{dd}\bigr), \qquad
    T_{cc} = 1 - \pi_c - \mathrm{diag}(D_c^{-1/2} M_{cc} D_c^{-1/2}) .

Newton's steps are found by conjugate gradients, which need products with K only; the factors are made once, at the
mode. Where K has a low rank (`LowRankCurvature`) its factors are small, and steps are found by them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
from scipy.linalg import blas, helmert
from scipy.special import log_softmax, softmax

from gpsift._utils.linalg import (
    add_diagonal,
    cholesky,
    cholesky_solve,
    invert_lower,
    log_det_from_cholesky,
    pivoted_cholesky,
    solve_lower,
    solve_lower_for_lower,
    triangle_gram,
)
from gpsift._utils.newton import (
    FIRST_ACCURACY,
    LATER_ACCURACY,
    Iterate,
    NewtonStep,
    conjugate_gradients,
    newton_ascent,
    symv,
    try_newton_step,
)
from gpsift.gp.inference.base import InferenceResult, IteratedInference
from gpsift.gp.inference.laplace import LOW_PRECISION, MAX_ITERATIONS, TOLERANCE, VALUE_ALONE
from gpsift.gp.inference.softmax_posterior import SoftmaxPosterior
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood

# Factors of low rank are quicker than products with K up to a rank whose square is this many times the rows.
FEW_COLUMNS = 50
# Residual variance of a low-rank covariance matrix at each point, in units of the tolerance (1 for a value without
# gradient). It changes the log density of a point by a quarter of itself at most. On 700 rows 1e-5 changed the log
# evidence by 2e-4 nats and 1e-4 by 2e-3, where jumps between ranks ended searches.
RESIDUAL = 10.0


@dataclass(frozen=True, eq=False)
class FullCurvature:
    """The negative Hessian W = diag(pi) - pi pi^T, factorised with any K by a factor for each class.

    M = (K + W^-1)^-1, of which no inverse of W is needed.
    """

    K: np.ndarray
    L: np.ndarray  # lower Cholesky factor of I + K
    pi: np.ndarray  # probabilities at a point of the latent space, (n, C)

    @classmethod
    def at(cls, K: np.ndarray, pi: np.ndarray) -> Self:
        """Return the curvature at probabilities pi, (n, C)."""
        return cls(K, cholesky(add_diagonal(K, 1.0), overwrite=True), pi)

    @cached_property
    def _roots(self) -> np.ndarray:
        """D_c^1/2 of each class, (C, n)."""
        return np.sqrt(self.pi.T)

    @cached_property
    def _factors(self) -> list[np.ndarray]:
        """Cholesky factor of B_c of each class."""
        return [cholesky(add_diagonal(root[:, None] * self.K * root, 1.0), overwrite=True) for root in self._roots]

    @cached_property
    def _triangles(self) -> list[np.ndarray]:
        """Y_c of each class, lower triangular, with P_c = Y_c^T Y_c: the factor of B_c solved for D_c^1/2 L."""
        return [
            solve_lower_for_lower(L, root[:, None] * self.L) for L, root in zip(self._factors, self._roots, strict=True)
        ]

    @cached_property
    def P(self) -> np.ndarray:
        """P_c of each class, (C, n, n)."""
        return np.stack([triangle_gram(Y) for Y in self._triangles])

    @cached_property
    def N(self) -> np.ndarray:
        """Cholesky factor of Q."""
        return cholesky(self.P.sum(axis=0), overwrite=True)

    @cached_property
    def log_det(self) -> float:
        """log |I + K W|."""
        coupling = log_det_from_cholesky(self.N) - log_det_from_cholesky(self.L)
        return float(sum(log_det_from_cholesky(L) for L in self._factors) + coupling)

    @cached_property
    def M_sum_and_spread(self) -> tuple[np.ndarray, np.ndarray]:
        """The sum of the diagonal blocks M_cc, (n, n), and the T_cc of the module's docstring, (n, C)."""
        total, spread = np.zeros(self.K.shape), 1.0 - self.pi
        for c, (L, Y, root) in enumerate(zip(self._factors, self._triangles, self._roots, strict=True)):
            inverse = invert_lower(L)
            spread[:, c] -= np.einsum("ij,ij->j", inverse, inverse)  # the diagonal of B_c^-1
            coupled = solve_lower(self.N, blas.dtrmm(1.0, Y.T, inverse, lower=0))  # N^-1 L^T D_c^1/2 B_c^-1
            spread[:, c] += np.einsum("ij,ij->j", coupled, coupled)
            coupled *= root
            total += triangle_gram(inverse * root)
            total -= coupled.T @ coupled
        return total, spread

    @cached_property
    def cov(self) -> np.ndarray:
        """Posterior covariances of the classes at each point, the blocks of K - K M K, (n, C, C)."""
        q = solve_lower(self.L, self.K)
        V = [solve_lower(self.N, P) @ q for P in self.P]
        cov = np.empty((*self.pi.shape, self.pi.shape[1]))
        for c, P in enumerate(self.P):
            for d in range(c + 1):
                cov[:, c, d] = cov[:, d, c] = np.einsum("ij,ij->j", V[c], V[d])
            cov[:, c, c] += np.diagonal(self.K) - np.einsum("ij,ij->j", q, P @ q)
        return cov

    def times_M(self, b: np.ndarray) -> np.ndarray:
        """Return M b, (n, C)."""
        P_q = np.einsum("cij,jc->ic", self.P, solve_lower(self.L, b))
        coupled = self.P @ cholesky_solve(self.N, P_q.sum(axis=1))
        return solve_lower(self.L, P_q - coupled.T, transpose=True)


@dataclass(frozen=True, eq=False)
class LowRankCurvature:
    r"""The curvature where the covariance matrix has a low rank, as that of few or smooth inputs: F, and pi, (n, C).

    K = F F^T with F (n, r), up to a small residual variance at each point. As W is at most 1/2, the error of half the
    log determinant is at most a quarter of the sum of residual variances. Contrasts g = H f of the latent values, H the
    orthonormal rows of Helmert's matrix, have the same prior as each class and curvatures V = H W H^T. The mean of the
    classes changes no probability. With F_j = F for each of the C - 1 contrasts j along the diagonal,

    .. math::
        \log |I + K W| = \log |A|, \qquad M = H^T (V - V F A^{-1} F^T V) H, \qquad
        A_{jk} = \delta_{jk} I + F^T \mathrm{diag}(V_{jk}) \, F .

    The posterior covariances of the contrasts at a point are its blocks of F A^{-1} F^T.
    """

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
        return float(log_det_from_cholesky(self.L))

    @cached_property
    def M_sum_and_spread(self) -> tuple[np.ndarray, np.ndarray]:
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
        V_b = np.einsum("jkn,kn->jn", self._V, self._H @ b.T)
        inner = cholesky_solve(self.L, (V_b @ self.F).ravel()).reshape(len(V_b), -1)
        V_b -= np.einsum("jkn,kn->jn", self._V, inner @ self.F.T)
        return V_b.T @ self._H


SoftmaxCurvature = FullCurvature | LowRankCurvature


def low_rank_factor(K: np.ndarray, n_classes: int, residual: float) -> np.ndarray | None:
    """Return F with F F^T = K up to this residual variance at each point; None where A would be larger than K."""
    return pivoted_cholesky(K, residual, max_rank=len(K) // (n_classes - 1)) if residual > 0 else None


@dataclass(frozen=True, eq=False)
class SoftmaxResult:
    """The mode, (n, C), the curvature there and the evidence."""

    K: np.ndarray
    mode: np.ndarray  # (n, C)
    weights: np.ndarray
    curvature: SoftmaxCurvature
    log_evidence: float
    converged: bool
    n_iterations: int

    @cached_property
    def full_curvature(self) -> FullCurvature:
        """The curvature by a factor for each class, which the posterior needs."""
        if isinstance(self.curvature, FullCurvature):
            return self.curvature
        return FullCurvature.at(self.K, self.curvature.pi)


@dataclass(frozen=True, eq=False)
class SoftmaxDensity:
    """The posterior of all latent functions, up to a constant: prior covariance K of each, and indicators Y, (n, C).

    F is the factor of low rank, if K has one.
    """

    K: np.ndarray
    Y: np.ndarray
    F: np.ndarray | None

    def log_joint(self, a: np.ndarray, f: np.ndarray) -> float:
        """Return log p(y | f) - sum_c a_c^T f_c / 2, which the mode maximises."""
        return float(np.sum(self.Y * log_softmax(f, axis=1)) - 0.5 * np.sum(a * f))

    def curvature(self, f: np.ndarray) -> SoftmaxCurvature:
        """Return the curvature at latent values f, (n, C), by the factor of low rank if there is one."""
        pi = softmax(f, axis=1)
        return FullCurvature.at(self.K, pi) if self.F is None else LowRankCurvature(self.F, pi)

    def times_K(self, b: np.ndarray) -> np.ndarray:
        return self.K @ b

    def newton_step(self, a: np.ndarray, f: np.ndarray, accuracy: float | None) -> NewtonStep:
        gradient = self.Y - softmax(f, axis=1) - a  # of the log joint density in f-space
        weights = None if accuracy is None else self.newton_weights(f, accuracy)
        if weights is None:
            accuracy, weights = None, self._weights_by_factors(f)
        K_direction = self.K @ (direction := weights - a)
        return NewtonStep(direction, K_direction, 0.5 * float(np.sum(K_direction * gradient)), accuracy)

    def newton_weights(self, f: np.ndarray, accuracy: float) -> np.ndarray | None:
        """Return the weights of a Newton step from f.

        They come from a factor of low rank if that is quicker, else from products; None if these take too long.
        """
        return self._weights_by_factors(f) if self.is_narrow else self._weights_by_products(f, accuracy)

    @property
    def is_narrow(self) -> bool:
        """Whether factors of low rank find a step in less time than products with K."""
        return self.F is not None and self.F.shape[1] ** 2 <= FEW_COLUMNS * len(self.K)

    def _weights_by_factors(self, f: np.ndarray) -> np.ndarray:
        """Return b - M K b with b = W f + y - pi."""
        curvature = self.curvature(f)
        b = times_W(curvature.pi, f) + self.Y - curvature.pi
        return b - curvature.times_M(self.K @ b)

    def _weights_by_products(self, f: np.ndarray, accuracy: float) -> np.ndarray | None:
        """Return the weights of a Newton step, with M = R (I + R^T K R)^-1 R^T.

        W = R R^T, R = diag(s) (I - s s^T) and s the square roots of the probabilities.
        """
        pi = softmax(f.T, axis=0)
        s = np.sqrt(pi)
        product = np.empty_like(pi)
        slope = self.Y - softmax(f, axis=1)

        def times_R(z: np.ndarray) -> np.ndarray:
            v = s * z
            v -= pi * np.add.reduce(v, axis=0)
            return v

        def times_R_transposed(v: np.ndarray) -> np.ndarray:
            return s * (v - np.einsum("cn,cn->n", pi, v))

        def times_R_transposed_K(v: np.ndarray) -> np.ndarray:
            # The classes sum to 0 at each point. A product with one vector reads a triangle, one with several all of K.
            for row, of_class in zip(product[:-1], v[:-1], strict=True):
                row[:] = symv(self.K, of_class)
            np.negative(np.add.reduce(product[:-1], axis=0), out=product[-1])
            return times_R_transposed(product)

        # Conjugate gradients start at R^T f, which is the solution at the mode: W f - R R^T f = 0 leaves the slope.
        target = times_R_transposed_K(slope.T) - times_R_transposed(f.T)
        step = conjugate_gradients(lambda z: z + times_R_transposed_K(times_R(z)), target, accuracy)
        return None if step is None else slope - times_R(step).T


def softmax_laplace(
    K: np.ndarray,
    Y: np.ndarray,
    *,
    start: np.ndarray | None = None,
    tolerance: float = TOLERANCE,
    residual: float = 0.0,
) -> SoftmaxResult:
    """Find the mode by Newton's method on weights a with f = K a; Y are the indicators, (n, C).

    The search begins with a step from latent values `start`, such as those of other hyperparameters. It ends at
    an expected gain of less than `tolerance` of the log joint density. `residual` is the largest variance at a point
    that a factor of low rank may lack.
    """
    density = SoftmaxDensity(K, Y, low_rank_factor(K, Y.shape[1], residual))
    zero = np.zeros(Y.shape)
    point = Iterate(zero, zero, density.log_joint(zero, zero))
    if start is not None:
        point = try_newton_step(density, start, point)
    accuracy = None if density.is_narrow else LATER_ACCURACY if np.any(point.a) else FIRST_ACCURACY
    mode = newton_ascent(density, point, accuracy=accuracy, tolerance=tolerance, max_iterations=MAX_ITERATIONS)
    curvature = density.curvature(mode.f)
    log_evidence = density.log_joint(mode.a, mode.f) - 0.5 * curvature.log_det
    return SoftmaxResult(K, mode.f, mode.a, curvature, log_evidence, mode.converged, mode.n_iterations)


def softmax_gradient(result: SoftmaxResult) -> np.ndarray:
    """Return G with d log q = sum(G o dK) for a change of K."""
    curvature, a = result.curvature, result.weights
    M_sum, spread = curvature.M_sum_and_spread
    s = -0.5 * (spread - curvature.pi * spread.sum(axis=1, keepdims=True))
    u = s - curvature.times_M(result.K @ s)
    # a a^T + u a^T + a u^T is one product of two blocks of columns with two of rows.
    G = np.hstack([a + u, a]) @ np.hstack([a, u]).T
    G -= M_sum
    G *= 0.5
    return G


def cavities(result: SoftmaxResult, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return latent means (n, C) and covariances (n, C, C) at each point without its own observation.

    The likelihood is a normal site around the mode, of precision W and natural mean W f + y - pi. Taking it out of the
    posterior N(f, S) leaves the precision S^-1 - W, and the mean f - (S^-1 - W)^-1 (y - pi).
    """
    curvature = result.full_curvature
    pi, cov = curvature.pi, curvature.cov
    W = pi[:, :, None] * (np.eye(pi.shape[1]) - pi[:, None, :])
    precisions, axes = np.linalg.eigh(np.linalg.inv(cov) - W)
    # Without its observation a point is at most as uncertain as under the prior; rounding can break that.
    variances = 1.0 / np.maximum(precisions, 1.0 / np.diagonal(curvature.K)[:, None])
    cavity_cov = (axes * variances[:, None, :]) @ np.swapaxes(axes, 1, 2)
    return result.mode - np.einsum("icd,id->ic", cavity_cov, Y - pi), cavity_cov


def times_W(pi: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Multiply by W, (n, C)."""
    return pi * (b - np.sum(pi * b, axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class SoftmaxInference(IteratedInference):
    """Laplace's method for a softmax; each run starts from the last mode if `warm`."""

    likelihood: Likelihood
    tolerance: float = field(default=TOLERANCE, kw_only=True)

    name = "laplace"
    LOW_PRECISION, VALUE_ALONE = LOW_PRECISION, VALUE_ALONE

    @cached_property
    def _indicators(self) -> np.ndarray:
        return self.likelihood.indicators(self.y)

    def log_evidence(self, kernel: Kernel, likelihood: Likelihood) -> float:
        tolerance = self.VALUE_ALONE * self.tolerance
        return self._run(kernel.between(self.X, self.X).K, likelihood, tolerance, residual=tolerance).log_evidence

    def infer(self, kernel: Kernel, likelihood: Likelihood) -> InferenceResult:
        result = self._run(kernel.between(self.X, self.X).K, likelihood, self.tolerance, residual=0.0)
        curvature = result.full_curvature
        cavity_mean, cavity_cov = cavities(result, self._indicators)
        return InferenceResult(
            posterior=SoftmaxPosterior(kernel, self.X, result.weights, curvature.L, curvature.P, curvature.N),
            log_evidence=result.log_evidence,
            cavity_mean=cavity_mean,
            cavity_var=cavity_cov,
            converged=result.converged,
            n_iterations=result.n_iterations,
        )

    def _run(
        self, K: np.ndarray, likelihood: Likelihood, tolerance: float, residual: float | None = None
    ) -> SoftmaxResult:
        residual = RESIDUAL * tolerance if residual is None else residual
        start = self.warm_start.last
        result = softmax_laplace(K, self._indicators, start=start, tolerance=tolerance, residual=residual)
        if self.warm:
            self.warm_start.last = result.mode if result.converged else None
        return result

    def _gradient(self, result: SoftmaxResult, likelihood: Likelihood) -> tuple[np.ndarray, np.ndarray]:
        return softmax_gradient(result), np.empty(0)
