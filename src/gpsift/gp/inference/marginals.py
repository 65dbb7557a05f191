"""Marginal variances of a posterior whose likelihood terms are normal sites."""

from __future__ import annotations

import numpy as np

from gpsift._utils.linalg import invert_lower, solve_lower

# A site that takes less than this share of its marginal's precision leaves too few digits of the difference from 1.
LEAST_SHARE = 1e-4


def marginal_variances(
    K: np.ndarray, L: np.ndarray, root: np.ndarray, B_inverse: np.ndarray | None = None
) -> np.ndarray:
    """Diagonal of (K^-1 + S^2)^-1, for S = diag(root) and L the Cholesky factor of B = I + S K S.

    S (K^-1 + S^2)^-1 S = I - B^-1, of which the diagonal needs a third of the work of K - K S B^-1 S K; that form
    remains for the points whose sites say almost nothing. `B_inverse` is the diagonal of B^-1, where it is known.
    """
    if B_inverse is None:
        B_inverse = np.einsum("ij,ij->j", inverse := invert_lower(L), inverse)
    share = 1.0 - B_inverse
    weak = share < LEAST_SHARE
    var = share / np.where(weak, 1.0, root) ** 2
    if weak.any():
        V = solve_lower(L, root[:, None] * K[:, weak])
        var[weak] = np.diagonal(K)[weak] - np.einsum("ij,ij->j", V, V)
    return var
