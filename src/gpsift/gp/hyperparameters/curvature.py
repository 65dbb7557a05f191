r"""Coordinates in which a search takes few steps: those of the curvature that fewer rows have.

With H = L L^T the second derivatives of what is minimised, parameters x = x_0 + c L^{-T} u have coordinates u with the
same curvature in all directions. L-BFGS begins with a step of length 1; with c the length of the gradient by L^{-T} u,
that is the step of Newton's method.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

# A step of differences, in logarithms.
DIFFERENCE = 1e-3
# Curvatures count as at least this, in nats for a factor of e: where it is flat, steps stay sensible.
LEAST_CURVATURE = 0.1
# Nats that a search may leave, by the curvature: half the squared length of the gradient in its coordinates.
LEFT = 1e-4
# Where no curvature is known, the largest slope that ends a search.
LEAST_SLOPE = 1e-5

Gradient = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Steps:
    """Coordinates that are parameters in units of typical steps."""

    steps: np.ndarray
    least_slope: float = LEAST_SLOPE  # the search ends where all slopes are smaller

    def start(self, params: np.ndarray) -> np.ndarray:
        return params / self.steps

    def params(self, u: np.ndarray) -> np.ndarray:
        return u * self.steps

    def gradient(self, by_params: np.ndarray) -> np.ndarray:
        return by_params * self.steps

    def curvature(self, inverse: np.ndarray) -> np.ndarray:
        """Of the parameters, from the inverse of the curvature of the coordinates."""
        return at_least(np.linalg.inv(inverse) / np.outer(self.steps, self.steps), LEAST_CURVATURE)


@dataclass(frozen=True, eq=False)
class Newton:
    """Coordinates around a place, in which a known curvature is the same in all directions."""

    place: np.ndarray
    T: np.ndarray
    least_slope: float  # the search ends where all slopes are smaller

    @classmethod
    def around(cls, place: np.ndarray, curvature: np.ndarray, gradient: np.ndarray) -> Newton:
        L = np.linalg.cholesky(curvature)
        T = solve_triangular(L, np.eye(len(L)), lower=True).T
        least = math.sqrt(2.0 * LEFT)
        length = max(float(np.linalg.norm(gradient @ T)), least)
        return cls(place, length * T, length * least / math.sqrt(len(L)))

    def start(self, params: np.ndarray) -> np.ndarray:
        return np.linalg.solve(self.T, params - self.place)

    def params(self, u: np.ndarray) -> np.ndarray:
        return self.place + self.T @ u

    def gradient(self, by_params: np.ndarray) -> np.ndarray:
        return by_params @ self.T

    def curvature(self, inverse: np.ndarray) -> np.ndarray:
        """Of the parameters, from the inverse of the curvature of the coordinates."""
        return at_least(np.linalg.inv(self.T @ inverse @ self.T.T), LEAST_CURVATURE)


def curvature_by_differences(gradient: Gradient, place: np.ndarray) -> np.ndarray:
    """Second derivatives of a function around its minimum, from its gradient, made positive definite."""
    steps = DIFFERENCE * np.eye(place.size)
    here = gradient(place)
    rows = np.array([gradient(place + step) - here for step in steps]) / DIFFERENCE
    return at_least(0.5 * (rows + rows.T), LEAST_CURVATURE)


def at_least(curvature: np.ndarray, least: float) -> np.ndarray:
    """A symmetric matrix whose eigenvalues have their size, and no less than this."""
    values, vectors = np.linalg.eigh(curvature)
    return (vectors * np.maximum(np.abs(values), least)) @ vectors.T
