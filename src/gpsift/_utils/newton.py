r"""Newton's method for the mode of a latent posterior, and Anderson's acceleration of iterations to a fixed point.

The mode maximises log p(y | f) - a^T f / 2 over weights a, with f = K a. A Newton step is computed "by products", with
conjugate gradients, which need products with K only, O(m^2) each, or "by a factor", with a Cholesky factor, O(m^3). The
ascent starts with products, raises their accuracy near the mode, and changes to factors where products do not raise the
log joint density any more.

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

# Largest number of products of a solve, as a share of the number of unknowns m, and the least that is always allowed.
MOST_PRODUCTS = 0.15
LEAST_PRODUCTS = 60
# Largest number of Newton steps by products, after which steps are by factors.
MOST_BY_PRODUCTS = 30
# Largest number of halvings of a step that does not raise the log joint density.
MAX_HALVINGS = 30
# Relative accuracy of the first step by products; that of later ones depends on the gain that is left. With 1e-2 the
# largest eigenvalues of K amplify the error of a step, and a fit to counts took 70 steps instead of 7.
FIRST_ACCURACY = 1e-4
LATER_ACCURACY = 0.1 * FIRST_ACCURACY
# Directions of Anderson's mixture with singular values below this share of the largest one are dropped.
LEAST_SINGULAR = 1e-8
# A predicted gain that no step achieves is rounding error if it is below this share of the log joint density.
ROUNDING = 1e-6


class NewtonStep(NamedTuple):
    """A step in the weights, its gain by the quadratic model, and its accuracy, None for a step by a factor."""

    direction: np.ndarray
    K_direction: np.ndarray
    gain: float
    accuracy: float | None


class LatentDensity(Protocol):
    """A latent posterior as a function of weights a and latent values f = K a."""

    def log_joint(self, a: np.ndarray, f: np.ndarray) -> float:
        """Return log p(y | f) - a^T f / 2."""

    def times_K(self, b: np.ndarray) -> np.ndarray:
        """Return K b, of the shape of b."""

    def newton_step(self, a: np.ndarray, f: np.ndarray, accuracy: float | None) -> NewtonStep:
        """Find the step to the maximum of the quadratic model at f, by products to this accuracy unless it is None."""

    def newton_weights(self, f: np.ndarray, accuracy: float) -> np.ndarray | None:
        """Find the weights at the maximum of the quadratic model at any f; None where products take too long."""


class Iterate(NamedTuple):
    """Weights a, latent values f = K a, and their log joint density."""

    a: np.ndarray
    f: np.ndarray
    log_joint: float


class Mode(NamedTuple):
    """The last iterate of an ascent: weights a and latent values f = K a, with the number of iterations."""

    a: np.ndarray
    f: np.ndarray
    converged: bool
    n_iterations: int


def newton_ascent(
    density: LatentDensity, start: Iterate, *, accuracy: float | None, tolerance: float, max_iterations: int
) -> Mode:
    """Find the mode by Newton's method, until less than `tolerance` of the log joint density is left to gain.

    `accuracy` is that of the first step by products; with None all steps are by factors.
    """
    a, f, log_joint = start
    for iteration in range(1, max_iterations + 1):
        step = density.newton_step(a, f, None if iteration > MOST_BY_PRODUCTS else accuracy)
        accuracy = step.accuracy
        left = step.gain / max(1.0, abs(log_joint))
        # The quadratic model predicts the gain that is left. The step is still taken, and squares the error.
        if 0.0 <= left < tolerance and (accuracy is None or accuracy < FIRST_ACCURACY):
            return Mode(a + step.direction, f + step.K_direction, True, iteration)
        before = log_joint
        a, f, log_joint = backtrack(density, Iterate(a, f, log_joint), step)
        if log_joint <= before:  # the gain that is left is below rounding error, or the step is inaccurate
            if accuracy is None or abs(left) < ROUNDING:
                return Mode(a, f, abs(left) < ROUNDING, iteration)
            accuracy = None
        elif accuracy is not None:
            accuracy = min(LATER_ACCURACY, max(left**2, tolerance))
    return Mode(a, f, False, max_iterations)


def try_newton_step(density: LatentDensity, near: np.ndarray, otherwise: Iterate) -> Iterate:
    """Take a Newton step from any latent values `near`; return `otherwise` if its log joint density is higher."""
    a = density.newton_weights(near, FIRST_ACCURACY)
    if a is None:
        return otherwise
    f = density.times_K(a)
    log_joint = density.log_joint(a, f)
    return Iterate(a, f, log_joint) if log_joint > otherwise.log_joint else otherwise


def backtrack(density: LatentDensity, start: Iterate, step: NewtonStep) -> Iterate:
    """Take the first of the steps 1, 1/2, 1/4, ... that does not lower the log joint density, or none."""
    for halving in range(MAX_HALVINGS):
        a, f = start.a + 0.5**halving * step.direction, start.f + 0.5**halving * step.K_direction
        log_joint = density.log_joint(a, f)
        if log_joint >= start.log_joint:
            return Iterate(a, f, log_joint)
    return start


def conjugate_gradients(
    product: Callable[[np.ndarray], np.ndarray], target: np.ndarray, accuracy: float
) -> np.ndarray | None:
    """Solve A z = target to an accuracy relative to the norm of the target; return None where that takes too long.

    `product` returns A z for a symmetric positive definite A; z has the shape of the target.
    """
    size, shape = target.size, target.shape
    A = LinearOperator((size, size), matvec=lambda z: product(z.reshape(shape)).ravel(), dtype=target.dtype)
    most = max(LEAST_PRODUCTS, int(MOST_PRODUCTS * size))
    # SciPy checks the residual before each product, not after the last one.
    z, info = cg(A, target.ravel(), rtol=accuracy, atol=0.0, maxiter=most + 1)
    return z.reshape(shape) if info == 0 else None


def symv(K: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return K b for a symmetric K; only one triangle of K is read."""
    return blas.dsymv(1.0, K.T, b)


def anderson_shares(residuals: np.ndarray) -> np.ndarray:
    """Return Anderson's coefficients g, (k - 1,), from the residuals of the last k steps of x -> F(x), (k, d).

    A residual is F(x) - x. The coefficients minimise the norm of the last residual minus the mixture g^T of the
    differences between successive residuals. If F were linear, the last x minus the same mixture of the differences
    between successive x would be nearest to the fixed point.
    """
    return np.linalg.lstsq(np.diff(residuals, axis=0).T, residuals[-1], rcond=LEAST_SINGULAR)[0]
