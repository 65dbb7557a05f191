r"""Exact inference with Gaussian noise: the log marginal likelihood, its gradient, and the posterior.

With A = K + diag(D) and alpha = A^-1 y (Rasmussen & Williams 2006, equations 5.8 and 5.9),

.. math::
    \log p(y) &= -\tfrac12 y^T \alpha - \tfrac12 \log |A| - \tfrac n2 \log 2 \pi \\
    \partial \log p(y) / \partial K &= G = \tfrac12 (\alpha \alpha^T - A^{-1}),

and a hyperparameter's derivative is G contracted with that of K, which the kernel does for all of them at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpsift._utils.arrays import Array, namespace
from gpsift._utils.linalg import (
    add_diagonal,
    cholesky_solve,
    inverse_from_cholesky,
    jittered_cholesky,
    log_det_from_cholesky,
)
from gpsift.kernels import Kernel

LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True)
class Evidence:
    """Log marginal likelihood, its gradient with respect to log hyperparameters, and the jitter it needed.

    The gradient has an entry for each of `kernel.log_params`, and a last one for a noise variance that all points
    share.
    """

    value: float
    gradient: np.ndarray
    jitter: float


def exact_evidence(kernel: Kernel, X: Array, y: Array, noise_var: Array | float) -> Evidence:
    """Evidence of Gaussian observations y = f(X) + noise; `noise_var` is a number or one for each point."""
    xp = namespace(X, y)
    pairs = kernel.between(X, X)
    L, jitter = jittered_cholesky(add_diagonal(pairs.K, noise_var))
    alpha = cholesky_solve(L, y)
    value = log_evidence_of(y, alpha, L)
    G = inverse_from_cholesky(L)
    del L  # a matrix less at the worst moment: on a device memory ends before patience does
    G -= alpha[:, None] * alpha
    G *= -0.5
    noise_gradient = float(xp.sum(xp.linalg.diagonal(G) * noise_var))
    return Evidence(value, np.append(pairs.log_gradient(G), noise_gradient), jitter)


def log_evidence_of(y: Array, alpha: Array, L: Array) -> float:
    """log N(y; 0, L L^T), given alpha = (L L^T)^-1 y."""
    return -0.5 * float(y @ alpha + log_det_from_cholesky(L)) - 0.5 * y.shape[0] * LOG_2PI
