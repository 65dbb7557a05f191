r"""Exact inference with Gaussian noise: the log marginal likelihood, its gradient, and the posterior.

With A = K + diag(D) and alpha = A^-1 y (Rasmussen & Williams 2006, equations 5.8 and 5.9),

.. math::
    \log p(y) &= -\tfrac12 y^T \alpha - \tfrac12 \log |A| - \tfrac n2 \log 2 \pi \\
    \partial \log p(y) / \partial K &= G = \tfrac12 (\alpha \alpha^T - A^{-1}),

and a hyperparameter's derivative is G contracted with that of K, which the kernel does for all of them at once. The
default kernel takes the fast path of `exact_rbf.py`.

Without inputs all rows have the same covariance c, the sum of all terms of the kernel: the null model. With D the
diagonal matrix of the noise variances, r = D^{-1} 1, s = r^T 1 and t = r^T y, the inverse of A = c 1 1^T + D is that of
a matrix of rank one beside a diagonal (Sherman & Morrison 1950),

.. math::
    A^{-1} = D^{-1} - \frac{c}{1 + c s} \, r r^T, \qquad \log |A| = \log |D| + \log(1 + c s), \qquad
    \partial \log p(y) / \partial c = \tfrac12 \Bigl(\frac{t}{1 + c s}\Bigr)^2 - \tfrac12 \frac{s}{1 + c s} .
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from gpsift._utils.arrays import Array, like, namespace, take_columns, take_rows, to_numpy
from gpsift._utils.linalg import (
    add_diagonal,
    cholesky_solve,
    inverse_from_cholesky,
    is_numpy,
    jittered_cholesky,
    log_det_from_cholesky,
)
from gpsift.gp.inference.base import LOG_2PI, DenseInference, Evidence, InferenceResult, LogParamsEvidence, Slope
from gpsift.gp.inference.exact_rbf import RBFEvidence
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood
from gpsift.reference.posterior import exact_posterior


def exact_evidence(kernel: Kernel, X: Array, y: Array, noise_var: Array | float) -> Evidence:
    """Return the evidence of Gaussian observations y = f(X) + noise; `noise_var` is a number or one for each point."""
    xp = namespace(X, y)
    pairs = kernel.between(X, X)
    L, jitter = jittered_cholesky(add_diagonal(pairs.K, noise_var))
    alpha = cholesky_solve(L, y)
    value = log_evidence_of(y, alpha, L)
    G = inverse_from_cholesky(L)
    del L  # lowers the peak of memory by a matrix, which limits the rows on a device
    G -= alpha[:, None] * alpha
    G *= -0.5
    noise_gradient = float(xp.sum(xp.linalg.diagonal(G) * noise_var))
    return Evidence(value, np.append(pairs.log_gradient(G), noise_gradient), jitter)


def log_evidence_of(y: Array, alpha: Array, L: Array) -> float:
    """Return log N(y; 0, L L^T), given alpha = (L L^T)^-1 y."""
    return -0.5 * float(y @ alpha + log_det_from_cholesky(L)) - 0.5 * y.shape[0] * LOG_2PI


def null_model_evidence(kernel: Kernel, X: np.ndarray, y: np.ndarray, noise_var: np.ndarray | float) -> Evidence:
    """Return `exact_evidence` for an X without columns, (n, 0), in O(n)."""
    pairs = kernel.between(X[:1], X[:1])
    c, D = float(pairs.K[0, 0]), np.zeros_like(y) + noise_var
    r = 1.0 / D
    s, t = float(r.sum()), float(r @ y)
    share = 1.0 / (1.0 + c * s)
    alpha = r * (y - c * share * t)
    value = -0.5 * float(y @ alpha) - 0.5 * float(np.log(D).sum() - np.log(share)) - 0.5 * y.size * LOG_2PI
    by_level = 0.5 * share * (share * t**2 - s)
    by_noise = 0.5 * float(np.sum((alpha**2 - r + c * share * r**2) * D))
    return Evidence(value, np.append(pairs.log_gradient(np.array([[by_level]])), by_noise), 0.0)


class ExactInference(DenseInference):
    """Exact inference in closed form, for Gaussian noise."""

    name = "exact"

    def __init__(self, X: Array, y: Array, *, low_precision: bool = False):
        self.X, self.y = X, y
        self._low_precision = low_precision
        self._rbf: RBFEvidence | None = None

    @property
    def has_exact_slopes(self) -> bool:
        return not self._low_precision

    def evidence(self, kernel: Kernel, likelihood: Likelihood) -> Evidence:
        noise_var = self._noise_var(likelihood)
        if self._has_no_inputs:
            found: Evidence | None = null_model_evidence(kernel, self.X, self.y, noise_var)
        else:
            fast = self._fast_path_for(kernel)
            found = None if fast is None else fast(kernel, noise_var)
        if found is None:
            found = exact_evidence(kernel, self.X, self.y, noise_var)
        return found if likelihood.params else found.without_noise()

    def evidence_by_log_params(self, kernel: Kernel, likelihood: Likelihood) -> LogParamsEvidence:
        fast = None if self._has_no_inputs or not likelihood.params else self._fast_path_for(kernel)
        if fast is None:
            return super().evidence_by_log_params(kernel, likelihood)
        quick = fast.by_log_params(kernel)

        def evidence(log_params: np.ndarray) -> Evidence:
            found = quick(log_params)
            if found is not None:
                return found
            return exact_evidence(kernel.with_log_params(log_params[:-1]), self.X, self.y, np.exp(log_params[-1]))

        return evidence

    def infer(self, kernel: Kernel, likelihood: Likelihood) -> InferenceResult:
        xp = namespace(self.y)
        noise_var = xp.zeros_like(self.y) + self._noise_var(likelihood)
        posterior, jitter = exact_posterior(kernel, self.X, self.y, noise_var)
        log_evidence = log_evidence_of(self.y, posterior.weights, posterior.L)
        # Rasmussen & Williams (2006), equation 5.12, for the latent value: without the noise of the point itself.
        Q = xp.linalg.diagonal(posterior.M)
        return InferenceResult(
            posterior=posterior,
            log_evidence=log_evidence,
            cavity_mean=to_numpy(self.y - posterior.weights / Q),
            cavity_var=to_numpy(xp.clip(1.0 / Q - posterior.site_var, 0.0, None)),
            jitter=jitter,
        )

    def infer_posterior(self, kernel: Kernel, likelihood: Likelihood) -> InferenceResult:
        fast = None if self._has_no_inputs else self._fast_path_for(kernel)
        found = None if fast is None else fast.posterior(kernel, np.zeros_like(self.y) + self._noise_var(likelihood))
        none = np.empty(0)
        return self.infer(kernel, likelihood) if found is None else InferenceResult(*found, none, none)

    def log_evidence(self, kernel: Kernel, likelihood: Likelihood) -> float:
        if self._has_no_inputs:
            return null_model_evidence(kernel, self.X, self.y, self._noise_var(likelihood)).value
        fast = self._fast_path_for(kernel)
        value = None if fast is None else fast.value(kernel, self._noise_var(likelihood))
        if value is not None:
            return value
        L, alpha = self._solve(kernel, likelihood)
        return log_evidence_of(self.y, alpha, L)

    def slope(self, kernel: Kernel, likelihood: Likelihood) -> Slope:
        L, alpha = self._solve(kernel, likelihood)
        return Slope(to_numpy(0.5 * (alpha[:, None] * alpha - inverse_from_cholesky(L))), to_numpy(alpha))

    def on_columns(self, columns: Sequence[int]) -> Self:
        return type(self)(take_columns(self.X, columns), self.y)

    def on_rows(self, rows: np.ndarray) -> Self:
        return type(self)(take_rows(self.X, rows), take_rows(self.y, rows))

    def stateless(self) -> Self:
        # Samplers accept by the value of the evidence, so that inexact gradients leave their steps reversible.
        return type(self)(self.X, self.y, low_precision=True)

    @property
    def _has_no_inputs(self) -> bool:
        return self.X.shape[1] == 0 and is_numpy(self.X)

    def _fast_path_for(self, kernel: Kernel) -> RBFEvidence | None:
        if RBFEvidence.serves(kernel, self.X):
            self._rbf = self._rbf or RBFEvidence(self.X, self.y, low_precision=self._low_precision)
            return self._rbf
        return None

    def _solve(self, kernel: Kernel, likelihood: Likelihood) -> tuple[Array, Array]:
        """Return the factor L of the covariance A of the observations, and A^-1 y."""
        L, _ = jittered_cholesky(add_diagonal(kernel.between(self.X, self.X).K, self._noise_var(likelihood)))
        return L, cholesky_solve(L, self.y)

    def _noise_var(self, likelihood: Likelihood) -> Array | float:
        noise_var = likelihood.noise_var
        return like(self.y, np.asarray(noise_var)) if likelihood.knows_noise else float(noise_var)
