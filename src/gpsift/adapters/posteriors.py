r"""Make posteriors of sparse and variational models: support points Z, weights w and a matrix M.

A variational posterior q(u) = N(m, S) of the function at inducing points, with prior covariance K = L L^T there, has

.. math::
    w = L^{-T} m, \quad M = K^{-1} - L^{-T} S L^{-1} \qquad \text{or} \qquad
    w = K^{-1} m, \quad M = K^{-1} - K^{-1} S K^{-1} ,

the first for a whitened q, that of v = L^-1 u (Hensman et al. 2015). Then var(x) = k(x, x) - k(x, Z) M k(Z, x).
"""

from __future__ import annotations

import numpy as np

from gpsift._utils.linalg import solve_lower
from gpsift.kernels import Kernel
from gpsift.reference.posterior import DenseFactor, Factor, Posterior, TriangularFactor


def variational_posterior(
    kernel: Kernel, Z: np.ndarray, L: np.ndarray, m: np.ndarray, root: np.ndarray | None, *, is_whitened: bool
) -> Posterior:
    """Return the posterior of a function whose values at Z, the inducing points, have the distribution N(m, S).

    L is the lower Cholesky factor of the prior covariance at Z; m is without the mean function of the prior. S is
    root root^T, and 0 without a `root`. Where they are whitened, m and S are those of L^-1 u.
    """
    if not is_whitened:
        m, root = solve_lower(L, m), None if root is None else solve_lower(L, root)
    factors: list[Factor] = [TriangularFactor(L)]
    if root is not None:
        factors.append(DenseFactor(np.ascontiguousarray(solve_lower(L, root, transpose=True).T), sign=-1.0))
    return Posterior(kernel, Z, solve_lower(L, m, transpose=True), tuple(factors))


def collapsed_posterior(
    kernel: Kernel, Z: np.ndarray, L: np.ndarray, L_B: np.ndarray, weights: np.ndarray
) -> Posterior:
    """Return the posterior of Titsias (2009), M = K^-1 - L^-T B^-1 L^-1, from the Cholesky factors of K and B."""
    R = solve_lower(L_B, solve_lower(L, np.eye(len(L))))
    return Posterior(kernel, Z, weights, (TriangularFactor(L), DenseFactor(R, sign=-1.0)))


def signed_factors(M: np.ndarray) -> tuple[Factor, ...]:
    """Factorise a symmetric matrix, which need not be positive definite."""
    try:
        return (DenseFactor(np.ascontiguousarray(np.linalg.cholesky(M).T)),)
    except np.linalg.LinAlgError:
        # A variational posterior may be wider than the prior.
        eigenvalues, vectors = np.linalg.eigh(M)
        roots, signs = np.sqrt(np.abs(eigenvalues))[:, None] * vectors.T, np.sign(eigenvalues)
        return tuple(DenseFactor(roots[signs == sign], sign) for sign in (1.0, -1.0) if np.any(signs == sign))
