"""Conjugate gradients: a linear system whose matrix is only seen in products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# Products with the matrix, at most, as a share of the unknowns m: a product costs O(m^2), a factor O(m^3).
MOST_PRODUCTS = 0.15
LEAST_PRODUCTS = 60


def conjugate_gradients(
    times: Callable[[np.ndarray], np.ndarray], target: np.ndarray, accuracy: float
) -> np.ndarray | None:
    """The z with A z = target to an accuracy, as a share of the target's length; None where that takes too long.

    Parameters
    ----------
    times : function
        z -> A z of a symmetric positive definite A; arrays of any shape.
    target : array
    accuracy : float
    """
    z, residual, direction = np.zeros_like(target), target.copy(), target.copy()
    left = float(np.vdot(residual, residual))
    enough = accuracy**2 * left
    for _ in range(max(LEAST_PRODUCTS, int(MOST_PRODUCTS * target.size))):
        if left <= enough:
            return z
        A_direction = times(direction)
        length = left / float(np.vdot(direction, A_direction))
        z += length * direction
        residual -= length * A_direction
        before, left = left, float(np.vdot(residual, residual))
        direction *= left / before
        direction += residual
    return z if left <= enough else None
