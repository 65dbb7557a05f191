"""The in-place twin of `exact_evidence` for the default model: squared exponential, constants, NumPy.

An optimiser evaluates the marginal likelihood hundreds of times on one data set. Here every n x n array is made once
and every operation touches one triangle only, which makes a value with gradient three to four times as fast as the
general form. The numbers are the same (`tests/inference/test_exact.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from gpsift.arrays import Array
from gpsift.inference.exact import LOG_2PI, Evidence, exact_evidence
from gpsift.kernels import Constant, Kernel, SquaredExponential, Sum
from gpsift.linalg import BLOCK, invert_cholesky_in_place, is_numpy
from gpsift.posterior import Posterior, TriangularFactor


class Solution(NamedTuple):
    """A posterior, its log evidence, and the diagonal of (K + diag(D))^-1."""

    posterior: Posterior
    log_evidence: float
    Q: np.ndarray


class InPlaceEvidence:
    """exact_evidence(kernel, X, y, noise_var) for fixed X and y, with workspaces that are reused.

    Kernels are sums of one `SquaredExponential` and any number of `Constant` terms: see `serves`.
    """

    def __init__(self, X: np.ndarray, y: np.ndarray):
        self.X, self.y = X, y
        self._centred = X - X.mean(axis=0)  # products of large coordinates would lose the digits of their differences
        n = X.shape[0]
        # Fortran order throughout, as LAPACK wants it; only the lower triangles are ever read.
        self._scaled = np.zeros(X.shape, order="F")
        self._K = np.zeros((n, n), order="F")
        self._A = np.zeros((n, n), order="F")
        self._ones = np.ones(n)
        self._blocks = [(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]

    @staticmethod
    def serves(kernel: Kernel, X: Array) -> bool:
        """Whether the kernel and the array are of the kind that this class computes."""
        terms = kernel.terms if isinstance(kernel, Sum) else (kernel,)
        radial = [term for term in terms if type(term) is SquaredExponential]
        constant = [term for term in terms if type(term) is Constant]
        return is_numpy(X) and len(radial) == 1 and len(radial) + len(constant) == len(terms)

    def value(self, kernel: Kernel, noise_var: np.ndarray | float) -> float | None:
        """The log evidence alone, at a third of the price; None where the matrix needs jitter."""
        _, radial, level = self._parts(kernel)
        self._fill(radial, level)
        solved = self._solve(noise_var)
        return None if solved is None else solved[1]

    def solution(self, kernel: Kernel, noise_var: np.ndarray) -> Solution | None:
        """The posterior with its moments and their slopes at X; None where the matrix needs jitter."""
        _, radial, level = self._parts(kernel)
        K, A, scaled = self._K, self._A, self._scaled
        self._fill(radial, level)
        solved = self._solve(noise_var, clean=True)
        if solved is None:
            return None
        alpha, value = solved
        posterior = Posterior(kernel, self.X, alpha, (TriangularFactor(A.copy(order="F")),), noise_var)
        pulled = scaled * blas.dsymv(1.0, K, alpha, lower=1)[:, None]
        pulled -= blas.dsymm(1.0, K, scaled * alpha[:, None], lower=1)
        invert_cholesky_in_place(A)
        Q = self._diagonal.copy()
        self._multiply(K, A)
        spread = scaled * blas.dsymv(1.0, K, self._ones, lower=1)[:, None]
        spread -= blas.dsymm(1.0, K, scaled, lower=1)
        # The slopes of a squared exponential are -K_ik (x_ij - x_kj) / l_j^2; `posterior.py` has the rest.
        inverse_lengthscale = 1.0 / np.asarray(radial.lengthscale)
        posterior.known_at_support.update(
            mean=self.y - noise_var * alpha,
            var=np.maximum(noise_var - noise_var**2 * Q, np.finfo(float).eps * noise_var),
            mean_gradient=-inverse_lengthscale * pulled,
            var_gradient=-2.0 * inverse_lengthscale * noise_var[:, None] * spread,
        )
        return Solution(posterior, value, Q)

    def __call__(self, kernel: Kernel, noise_var: np.ndarray | float) -> Evidence:
        terms, radial, level = self._parts(kernel)
        K, A = self._K, self._A
        squares = self._fill(radial, level)
        solved = self._solve(noise_var)
        if solved is None:
            return exact_evidence(kernel, self.X, self.y, noise_var)  # with jitter
        alpha, value = solved
        diagonal = self._diagonal
        invert_cholesky_in_place(A)

        # From here on A holds A^-1 - alpha alpha^T = -2 G, and K becomes W = A o K = -2 G o K.
        blas.dsyr(-1.0, alpha, lower=1, a=A, overwrite_a=1)
        noise_gradient = -0.5 * float(np.sum(diagonal * noise_var))
        total = blas.dsymv(1.0, A, self._ones, lower=1).sum() if level else 0.0
        self._multiply(K, A)
        row_sums = blas.dsymv(1.0, K, self._ones, lower=1)
        product = blas.dsymm(1.0, K, self._scaled, lower=1)
        by_feature = np.einsum("ij,ij->j", self._scaled, product) - row_sums @ squares
        lengthscale_gradient = by_feature if np.ndim(radial.lengthscale) else [by_feature.sum()]
        gradient = []
        for term in terms:
            if isinstance(term, Constant):
                gradient.append([-0.5 * term.constant_var * total])
            else:
                gradient += [lengthscale_gradient, [-0.5 * row_sums.sum()]]
        return Evidence(value, np.concatenate([*gradient, [noise_gradient]]), 0.0)

    @staticmethod
    def _parts(kernel: Kernel) -> tuple[tuple[Kernel, ...], SquaredExponential, float]:
        """The terms of the kernel, the radial one of them, and the variance of all constants."""
        terms = kernel.terms if isinstance(kernel, Sum) else (kernel,)
        radial = next(term for term in terms if isinstance(term, SquaredExponential))
        return terms, radial, sum(term.constant_var for term in terms if isinstance(term, Constant))

    @property
    def _diagonal(self) -> np.ndarray:
        """Of A, as a view."""
        return self._A.ravel(order="K")[:: self.X.shape[0] + 1]

    def _multiply(self, A: np.ndarray, B: np.ndarray) -> None:
        """A becomes A o B."""
        for start, stop in self._blocks:
            A[start:, start:stop] *= B[start:, start:stop]

    def _solve(self, noise_var: np.ndarray | float, *, clean: bool = False) -> tuple[np.ndarray, float] | None:
        """A becomes its Cholesky factor, with the noise; alpha = A^-1 y and the log evidence, None without a factor.

        If it is to be clean, with zeros in its other triangle.
        """
        diagonal = self._diagonal
        diagonal += noise_var
        _, info = lapack.dpotrf(self._A, lower=1, clean=clean, overwrite_a=1)
        if info != 0:
            return None
        alpha, _ = lapack.dpotrs(self._A, self.y, lower=1)
        value = -0.5 * (self.y @ alpha) - np.log(diagonal).sum() - 0.5 * self.X.shape[0] * LOG_2PI
        return alpha, float(value)

    def _fill(self, radial: SquaredExponential, level: float) -> np.ndarray:
        """The lower triangles of K and A = K + level; returns the squares of the scaled coordinates."""
        np.divide(self._centred, radial.lengthscale, out=self._scaled)
        squares = self._scaled**2
        log_signal = np.log(radial.signal_var)
        # log K_ik = x_i . x_k - h_i - h_k with h half the squared norm, less half the logarithm of the signal variance
        h = 0.5 * (squares.sum(axis=1) - log_signal)
        blas.dsyrk(1.0, self._scaled, lower=1, c=self._K, overwrite_c=1)
        blas.dsyr2(-1.0, h, self._ones, lower=1, a=self._K, overwrite_a=1)
        for start, stop in self._blocks:
            block = self._K[start:, start:stop]
            np.minimum(block, log_signal, out=block)
            np.exp(block, out=block)
            np.add(block, level, out=self._A[start:, start:stop])
        return squares
