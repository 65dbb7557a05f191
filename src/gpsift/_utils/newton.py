r"""Newton's method for the mode of a latent posterior, and Anderson's acceleration of iterations to a fixed point.

The mode maximises log p(y | f) - a^T f / 2 over weights a, with f = K a. A Newton step is found by conjugate gradients,
which need products with K only, O(m^2) each, or by a Cholesky factor, O(m^3). The ascent starts with the first, raises
their accuracy near the mode, and changes to factors where products do not raise the log joint density any more.

References
----------
Nocedal and Wright (2006), Numerical Optimization, section 7.1 (inexact Newton methods). Anderson (1965), Journal of the
ACM 12, 547-560.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import blas
from scipy.sparse.linalg import LinearOperator, cg

# Products with the matrix, at most, as a share of the unknowns m: a product costs O(m^2), a factor O(m^3).
MOST_PRODUCTS = 0.15
LEAST_PRODUCTS = 60
# Newton steps by products, at most; where they do not converge, factors do. And how often a step is halved that does
# not raise the log joint density.
MOST_BY_PRODUCTS = 30
MAX_HALVINGS = 30
# Accuracy of the first step by products, as a share of it; that of the others depends on what is left to gain. With
# 1e-2 the error of a step grows by the largest eigenvalues of K, and counts took 70 steps in place of 7.
FIRST_ACCURACY = 1e-4
LATER_ACCURACY = 0.1 * FIRST_ACCURACY
# Directions of Anderson's mixture with singular values below this share of the largest one do not count.
LEAST_SINGULAR = 1e-8
# A gain that no step can realise is rounding error below this share of the log joint density.
ROUNDING = 1e-6


class NewtonStep(NamedTuple):
    """A step in the weights, the gain of the quadratic, and its accuracy, None if a factor found the step."""

    direction: np.ndarray
    K_direction: np.ndarray
    gain: float
    accuracy: float | None


class LatentDensity(Protocol):
    """A latent posterior as a function of weights a and latent values f = K a."""

    def log_joint(self, a: np.ndarray, f: np.ndarray) -> float:
        """log p(y | f) - a^T f / 2."""

    def times_K(self, b: np.ndarray) -> np.ndarray:
        """K b, of the shape of b."""

    def newton_step(self, a: np.ndarray, f: np.ndarray, accuracy: float | None) -> NewtonStep:
        """Find the step to the maximum of the quadratic around f, by products to this accuracy if one is given."""

    def newton_weights(self, f: np.ndarray, accuracy: float) -> np.ndarray | None:
        """Find the weights at the maximum of the quadratic around any f; None where products take too long."""


class Point(NamedTuple):
    """Weights, latent values and the log joint density there."""

    a: np.ndarray
    f: np.ndarray
    log_joint: float


class Mode(NamedTuple):
    """The end of an ascent: weights a, latent values f = K a, and how it went."""

    a: np.ndarray
    f: np.ndarray
    converged: bool
    n_iterations: int


def newton_ascent(
    density: LatentDensity, start: Point, *, accuracy: float | None, tolerance: float, max_iterations: int
) -> Mode:
    """Climb to the mode by Newton's method, until less than `tolerance` of the log joint density is left to gain.

    `accuracy` is that of the first step by products; with None all steps are by factors.
    """
    a, f, log_joint = start
    for iteration in range(1, max_iterations + 1):
        step = density.newton_step(a, f, None if iteration > MOST_BY_PRODUCTS else accuracy)
        accuracy = step.accuracy
        left = step.gain / max(1.0, abs(log_joint))
        # The quadratic's gain predicts what is left; its step is still taken, and squares the error.
        if 0.0 <= left < tolerance and (accuracy is None or accuracy < FIRST_ACCURACY):
            return Mode(a + step.direction, f + step.K_direction, True, iteration)
        before = log_joint
        a, f, log_joint = backtracking(density, Point(a, f, log_joint), step)
        if log_joint <= before:  # rounding hides what little is left to gain
            if accuracy is None or abs(left) < ROUNDING:
                return Mode(a, f, abs(left) < ROUNDING, iteration)
            accuracy = None
        elif accuracy is not None:
            accuracy = min(LATER_ACCURACY, max(left**2, tolerance))
    return Mode(a, f, False, max_iterations)


def try_newton_step(density: LatentDensity, near: np.ndarray, otherwise: Point) -> Point:
    """Take a Newton step from any latent values; return `otherwise` where the log joint density is higher there."""
    a = density.newton_weights(near, FIRST_ACCURACY)
    if a is None:
        return otherwise
    f = density.times_K(a)
    log_joint = density.log_joint(a, f)
    return Point(a, f, log_joint) if log_joint > otherwise.log_joint else otherwise


def backtracking(density: LatentDensity, here: Point, step: NewtonStep) -> Point:
    """Take the first of the steps 1, 1/2, 1/4, ... that does not lower the log joint density, or none."""
    for halving in range(MAX_HALVINGS):
        a, f = here.a + 0.5**halving * step.direction, here.f + 0.5**halving * step.K_direction
        log_joint = density.log_joint(a, f)
        if log_joint >= here.log_joint:
            return Point(a, f, log_joint)
    return here


def conjugate_gradients(
    product: Callable[[np.ndarray], np.ndarray], target: np.ndarray, accuracy: float
) -> np.ndarray | None:
    """Solve A z = target to an accuracy, as a share of the target's length; return None where that takes too long.

    `product` returns A z for a symmetric positive definite A; z has the shape of the target, which may be any.
    """
    size, shape = target.size, target.shape
    A = LinearOperator((size, size), matvec=lambda z: product(z.reshape(shape)).ravel(), dtype=target.dtype)
    most = max(LEAST_PRODUCTS, int(MOST_PRODUCTS * size))
    # SciPy checks the residual before each product, not after the last one.
    z, info = cg(A, target.ravel(), rtol=accuracy, atol=0.0, maxiter=most + 1)
    return z.reshape(shape) if info == 0 else None


def symv(K: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return K b for a symmetric K, of which one triangle is read."""
    return blas.dsymv(1.0, K.T, b)


def anderson_shares(residuals: np.ndarray) -> np.ndarray:
    """Return shares g, (k - 1,), of the differences between the last k steps, whose residuals are given, (k, d).

    A residual is the move from the place where a step starts to where it leads. Without the mixture g^T of the
    differences between residuals, the last one is shortest: if all were linear in the places, the last place less the
    same mixture of differences would be the nearest to the fixed point.
    """
    return np.linalg.lstsq(np.diff(residuals, axis=0).T, residuals[-1], rcond=LEAST_SINGULAR)[0]
