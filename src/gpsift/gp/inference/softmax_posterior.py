r"""The latent posterior of several functions that share a kernel and are coupled by their observations.

With a function for each of C classes, support points Z, weights a_c and blocks M_cd,

.. math::
    \mathrm{mean}_c(x) = k(x, Z) \, a_c, \qquad
    \mathrm{cov}_{cd}(x) = \delta_{cd} \, k(x, x) - k(x, Z) \, M_{cd} \, k(Z, x) .

For a softmax, M = (K + W^-1)^-1 with W = diag(pi) - pi pi^T at each point. With the diagonal matrices D_c of pi_c,

.. math::
    M_{cd} = \delta_{cd} E_c - E_c \bigl(\textstyle\sum_a E_a\bigr)^{-1} E_d, \qquad E_c = (K + D_c^{-1})^{-1}

(Rasmussen & Williams 2006, Algorithms 3.3 and 3.4). The condition number of the sum of the E_c grows with K: at a
signal variance of 1e6 products with its inverse have no digits left. In coordinates L, I + K = L L^T, that does not
happen:

.. math::
    M_{cd} = L^{-T} (\delta_{cd} P_c - P_c Q^{-1} P_d) L^{-1}, \qquad P_c = L^T E_c L, \qquad Q = \textstyle\sum_c P_c ,

where 0 <= P_c <= I because D_c <= I, and the eigenvalues of Q are between 1 / C and C. NumPy only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import softmax

from gpsift._utils.linalg import cholesky, cholesky_solve, invert_lower, solve_lower
from gpsift.kernels import Kernel, Pairs
from gpsift.reference.base import Coupled
from gpsift.reference.function_draws import KernelSums
from gpsift.reference.posterior import DenseFactor, PickledByFields, Posterior

# Probabilities below this one are raised to it where their roots divide.
LEAST_PROBABILITY = 1e-12


@dataclass(frozen=True, eq=False)
class SoftmaxPosterior(PickledByFields, Coupled):
    """The joint posterior of the latent functions of a softmax: support points, weights, and the parts of M."""

    kernel: Kernel
    Z: np.ndarray  # (m, p)
    weights: np.ndarray  # (m, C)
    L: np.ndarray  # lower Cholesky factor of I + K
    P: np.ndarray  # (C, m, m)
    N: np.ndarray  # lower Cholesky factor of Q, the sum of P

    @property
    def n_classes(self) -> int:
        return self.weights.shape[1]

    def at(self, X: np.ndarray) -> SoftmaxPosteriorAt:
        """Return the posterior at the rows of X."""
        return SoftmaxPosteriorAt(self, X, self.kernel.between(X, self.Z))

    def at_support(self, rows: np.ndarray | None = None) -> SoftmaxPosteriorAt:
        """Return the posterior at its own support points, or at those with the given indices."""
        return SoftmaxPosteriorAt(self, self.Z, self.support_pairs) if rows is None else self.at(self.Z[rows])

    @cached_property
    def support_pairs(self) -> Pairs:
        """The kernel between the support points."""
        return self.kernel.between(self.Z, self.Z)

    def covariance(self, X: np.ndarray) -> np.ndarray:
        """Return the latent covariance between the rows of X and the classes, (n, C, n, C)."""
        latent = self.at(X)
        covariance = np.einsum("cmi,dmj->icjd", latent.N_P_q, latent.N_P_q, optimize=True)
        prior = self.kernel.between(X, X).K
        for c in range(self.n_classes):
            covariance[:, c, :, c] += prior - latent.q.T @ latent.P_q[c]
        return covariance

    def draw_corrections(self, prior_values: np.ndarray, rng: np.random.Generator) -> KernelSums:
        """Return k(x, Z) v for functions drawn from the prior, as `Posterior.draw_corrections` with eta = M e.

        The noise e of the observations has the covariance diag(1 / pi), a generalised inverse of W. As M = W M' for
        some M', the covariance of M e is the same for all of these.
        """
        pi = softmax(self.support_pairs.K @ self.weights, axis=1)
        n_draws = prior_values.shape[1] // self.n_classes
        e = rng.normal(size=(len(pi), n_draws, self.n_classes)) / np.sqrt(np.maximum(pi, LEAST_PROBABILITY))[:, None, :]
        drawn = prior_values.reshape(e.shape) + e
        q = [solve_lower(self.L, drawn[:, :, c]) for c in range(self.n_classes)]
        P_q = [P @ columns for P, columns in zip(self.P, q, strict=True)]
        shared = cholesky_solve(self.N, np.sum(P_q, axis=0))
        M_e = [solve_lower(self.L, own - P @ shared, transpose=True) for P, own in zip(self.P, P_q, strict=True)]
        v = self.weights[:, None, :] - np.stack(M_e, axis=2)
        return KernelSums(self.kernel, self.Z, v.reshape(len(pi), -1), self.support_pairs)

    def combination(self, shares: np.ndarray) -> Posterior:
        r"""Return the posterior of sum_c shares_c f_c, as of one function; no share is 0 and their squares add up to 1.

        .. math:: M = L^{-T} \Big( \sum_c s_c^2 P_c - P_s Q^{-1} P_s \Big) L^{-1} , \qquad P_s = \sum_c s_c P_c
        """
        L_inverse = invert_lower(self.L)
        own = cholesky(np.tensordot(shares**2, self.P, axes=1)).T @ L_inverse
        shared = solve_lower(self.N, np.tensordot(shares, self.P, axes=1)) @ L_inverse
        return Posterior(self.kernel, self.Z, self.weights @ shares, (DenseFactor(own), DenseFactor(shared, sign=-1.0)))

    def explained_between(self, Q: np.ndarray) -> np.ndarray:
        q = [solve_lower(self.L, rows.T) for rows in Q]
        P_q = [P @ columns for P, columns in zip(self.P, q, strict=True)]
        shared = solve_lower(self.N, np.sum(P_q, axis=0))
        return np.sum([a.T @ b for a, b in zip(q, P_q, strict=True)], axis=0) - shared.T @ shared


class SoftmaxPosteriorAt:
    """Means, covariances between the classes and their derivatives at the rows of X, computed on first use."""

    def __init__(self, posterior: SoftmaxPosterior, X: np.ndarray, pairs: Pairs):
        self.posterior, self.X, self.pairs = posterior, X, pairs

    @cached_property
    def mean(self) -> np.ndarray:
        """(n, C)"""
        return self.pairs.K @ self.posterior.weights

    @cached_property
    def cov(self) -> np.ndarray:
        """(n, C, C)"""
        own = self.posterior.kernel.diag(self.X) - np.einsum("mi,cmi->ci", self.q, self.P_q)
        return self._diagonal(own) + _products(self.N_P_q, self.N_P_q)

    @cached_property
    def mean_gradient(self) -> np.ndarray:
        """d mean_c / dx_j, (n, C, p)."""
        return np.stack([self.pairs.input_gradient(w) for w in self.posterior.weights.T], axis=1)

    @cached_property
    def cov_gradient(self) -> np.ndarray:
        """d cov_cd / dx_j = delta_cd dk(x, x) - dk (M_cd + M_dc) k, (n, C, C, p)."""
        posterior, n_classes = self.posterior, self.posterior.n_classes
        solved = [solve_lower(posterior.N, root, transpose=True) for root in self.N_P_q]  # Q^-1 P_c q
        gradient = np.empty((len(self.X), n_classes, n_classes, self.X.shape[1]))
        for c in range(n_classes):
            for d in range(c + 1):
                G = posterior.P[c] @ solved[d] + posterior.P[d] @ solved[c]
                if c == d:
                    G -= 2.0 * self.P_q[c]
                G = solve_lower(posterior.L, G, transpose=True)
                gradient[:, c, d] = gradient[:, d, c] = self.pairs.input_gradient(G.T)
            gradient[:, c, c] += posterior.kernel.diag_gradient(self.X)
        return gradient

    def step(self, j: int, delta: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the changes of means (n, C) and covariances (n, C, C) by a step of feature j, without cancellation."""
        posterior = self.posterior
        dk = self.pairs.step(j, delta)
        dq = solve_lower(posterior.L, dk.T)
        P_dq = posterior.P @ dq
        N_P_dq = _solve_each(posterior.N, P_dq)
        own = posterior.kernel.diag_step(self.X, j, delta) - np.einsum("mi,cmi->ci", 2.0 * self.q + dq, P_dq)
        across = _products(self.N_P_q, N_P_dq)
        cov_change = self._diagonal(own) + across + np.swapaxes(across, 1, 2) + _products(N_P_dq, N_P_dq)
        return dk @ posterior.weights, cov_change

    def section(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """Return the means with feature j of row i set to base_i + offset_q, (n, q, C)."""
        return np.stack([self.pairs.section(w, j, base, offset) for w in self.posterior.weights.T], axis=2)

    @cached_property
    def q(self) -> np.ndarray:
        """L^-1 k(Z, x_i), (m, n)."""
        return solve_lower(self.posterior.L, self.pairs.K.T)

    @cached_property
    def P_q(self) -> np.ndarray:
        """P_c q, (C, m, n)."""
        return self.posterior.P @ self.q

    @cached_property
    def N_P_q(self) -> np.ndarray:
        """N^-1 P_c q, (C, m, n)."""
        return _solve_each(self.posterior.N, self.P_q)

    def _diagonal(self, values: np.ndarray) -> np.ndarray:
        """Return diagonal matrices (n, C, C) of the values (C, n)."""
        return values.T[:, :, None] * np.eye(self.posterior.n_classes)


def _solve_each(L: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return L^-1 B_c for each class."""
    return np.stack([solve_lower(L, columns) for columns in B])


def _products(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return sum_m A_cmi B_dmi, (i, c, d)."""
    return np.stack([np.einsum("mi,dmi->id", a, B) for a in A], axis=1)
