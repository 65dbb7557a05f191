r"""Exact inference without inputs: a model that knows a level and noise has its evidence without a matrix.

Where no input is seen, all rows have the same covariance c, the sum of all terms of the kernel. With D the diagonal
matrix of the noise variances, r = D^{-1} 1, s = r^T 1 and t = r^T y, the inverse of A = c 1 1^T + D is that of a matrix
of rank one beside a diagonal (Sherman & Morrison 1950),

.. math::
    A^{-1} = D^{-1} - \frac{c}{1 + c s} \, r r^T, \qquad \log |A| = \log |D| + \log(1 + c s), \qquad
    \partial \log p(y) / \partial c = \tfrac12 \Bigl(\frac{t}{1 + c s}\Bigr)^2 - \tfrac12 \frac{s}{1 + c s} .
"""

from __future__ import annotations

import numpy as np

from gpsift.gp.inference.exact import LOG_2PI, Evidence
from gpsift.kernels import Kernel


def level_evidence(kernel: Kernel, X: np.ndarray, y: np.ndarray, noise_var: np.ndarray | float) -> Evidence:
    """`exact_evidence` for an X without columns, (n, 0), in O(n)."""
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
