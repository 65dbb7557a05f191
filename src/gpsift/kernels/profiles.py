"""Radial kernels: squared exponential, Matérn 3/2 and 5/2, rational quadratic."""

from __future__ import annotations

import math
from abc import ABC
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpsift._utils.arrays import Array, like, namespace
from gpsift._utils.parameter import Parameter
from gpsift._utils.priors import InverseGamma
from gpsift.kernels.products import matern_mixture, rational_quadratic_mixture
from gpsift.kernels.radial import Radial, RadialPairs

# With more Chebyshev terms than this, or more than one for this many rows, the expansion in `moved_sums` costs more
# than the exponentials that it replaces.
MAX_TERMS = 40
ROWS_PER_TERM = 10
# exp(+-LARGEST_EXPONENT) and its products with kernel values stay far from overflow.
LARGEST_EXPONENT = 300.0


@dataclass(frozen=True)
class SquaredExponential(Radial):
    """k(s) = signal_var exp(-s / 2), the kernel of the paper."""

    TITLE: ClassVar[str] = "squared exponential"

    @property
    def has_fast_sections(self) -> bool:
        return True

    def value(self, s: Array) -> Array:
        K = -0.5 * s
        if isinstance(K, np.ndarray):  # in place, because a new matrix costs as much as the multiplication
            np.exp(K, out=K)
            K *= self.signal_var
            return K
        return self.signal_var * namespace(s).exp(K)

    def slope(self, s: Array, K: Array) -> Array:
        return -0.5 * K

    def curvature(self, s: Array, K: Array) -> Array:
        return 0.25 * K

    @property
    def mixture(self) -> tuple[np.ndarray, np.ndarray]:
        return np.ones(1), np.ones(1)

    def difference(self, s: Array, h: Array, K: Array) -> Array:
        return K * namespace(s).expm1(-0.5 * h)

    def moved_sums(self, pairs: RadialPairs, V: Array, j: int, start: Array, offset: Array) -> Array:
        # With the move tau = start + offset, exp(-(x + tau - z)^2 / 2) is exp(-(x - z)^2 / 2) exp(-tau (x + tau / 2))
        # exp(tau z): one kernel matrix K is enough for every tau.
        xp, x, z = pairs.xp, pairs.X[:, j], pairs.Z[:, j]
        tau = start[:, None] + offset
        reach, rate = float(xp.max(xp.abs(tau))), float(xp.max(xp.abs(z)))
        if reach * (float(xp.max(xp.abs(x))) + rate + reach) > LARGEST_EXPONENT:
            return super().moved_sums(pairs, V, j, start, offset)
        n_terms = chebyshev_terms(reach * rate)
        if n_terms <= min(MAX_TERMS, x.shape[0] // ROWS_PER_TERM):
            sums = expanded_exponential_sums(pairs.K, V, z, tau, reach, n_terms)
        else:
            moved = xp.exp(start[:, None] * z)
            moved *= pairs.K
            factors = xp.exp(z[:, None] * offset)
            sums = xp.stack([moved @ (V[:, f][:, None] * factors) for f in range(V.shape[1])], axis=2)
        return xp.exp(-tau * (x[:, None] + 0.5 * tau))[:, :, None] * sums


def expanded_exponential_sums(K: Array, V: Array, z: Array, tau: Array, reach: float, n_terms: int) -> Array:
    """Return sum_k K_ik V_kf exp(z_k tau_iq), an (n, q, F) array, for abs(tau) <= reach.

    As a function of tau the sum is a mixture of exponentials with rates z_k, so its Chebyshev expansion over
    [-reach, reach] converges faster than geometrically: one product of K with a few columns replaces n^2 exponentials.
    """
    xp = namespace(K, tau)
    angle = (np.arange(n_terms) + 0.5) * (math.pi / n_terms)
    to_coefficients = np.cos(np.outer(angle, np.arange(n_terms))) * (2.0 / n_terms)
    to_coefficients[:, 0] *= 0.5
    at_nodes = xp.exp(z[:, None] * like(z, reach * np.cos(angle)))
    coefficients = like(z, to_coefficients.T) @ (V.T[:, None, :] * at_nodes.T) @ K.T  # (function, term, point)
    t = tau.T / reach if reach > 0 else tau.T
    sums = clenshaw(xp.permute_dims(coefficients, (1, 0, 2))[:, :, None, :], t)  # (function, node, point)
    return xp.permute_dims(sums, (2, 1, 0))


def chebyshev_terms(rate: float) -> int:
    """Count the Chebyshev terms that give exp(rate t), -1 <= t <= 1, to rounding error relative to its minimum."""
    # The r-th coefficient is 2 I_r(rate) <= 2 (rate / 2)^r exp(rate^2 / 4 / (r + 1)) / r!.
    tail, n_terms = 1.0, 0
    while tail > 1e-17 * math.exp(-min(rate, LARGEST_EXPONENT)) and n_terms <= MAX_TERMS:
        n_terms += 1
        tail *= 0.5 * rate / n_terms
    return n_terms + 1


def clenshaw(coefficients: Array, t: Array) -> Array:
    """Return sum_r coefficients_r T_r(t), T_r the Chebyshev polynomials, by Clenshaw's recurrence."""
    xp = namespace(coefficients, t)
    next_one = next_two = xp.zeros_like(coefficients[0, ...] + t)
    twice = 2.0 * t
    for r in range(coefficients.shape[0] - 1, 0, -1):
        current = twice * next_one
        current += coefficients[r, ...]
        current -= next_two
        next_one, next_two = current, next_one
    return t * next_one + (coefficients[0, ...] - next_two)


class Matern(Radial, ABC):
    """A Matérn kernel of half-integer order: a polynomial in b = sqrt(2 order s) times exp(-b)."""

    ORDER: ClassVar[float]

    @property
    def mixture(self) -> tuple[np.ndarray, np.ndarray] | None:
        return matern_mixture(self.ORDER)

    def root(self, s: Array) -> Array:
        """Return b = sqrt(2 order s)."""
        return namespace(s).sqrt(2.0 * self.ORDER * s)

    def moved_roots(self, s: Array, h: Array) -> tuple[Array, Array, Array]:
        """Return b at s, b at s + h, and their difference without cancellation."""
        xp = namespace(s)
        b, b_moved = self.root(s), self.root(xp.clip(s + h, 0.0, None))
        total = b + b_moved
        return b, b_moved, 2.0 * self.ORDER * h / xp.where(total > 0.0, total, xp.ones_like(total))


@dataclass(frozen=True)
class Matern32(Matern):
    """k(s) = signal_var (1 + b) exp(-b) with b = sqrt(3 s): once differentiable functions."""

    TITLE: ClassVar[str] = "Matérn 3/2"
    ORDER: ClassVar[float] = 1.5

    def value(self, s: Array) -> Array:
        b = self.root(s)
        return self.signal_var * (1.0 + b) * namespace(s).exp(-b)

    def slope(self, s: Array, K: Array) -> Array:
        return -1.5 * self.signal_var * namespace(s).exp(-self.root(s))

    def curvature(self, s: Array, K: Array) -> Array:
        # As s goes to 0, k'' grows like s^-1/2, but k'' u_j u_m goes to 0.
        xp, b = namespace(s), self.root(s)
        apart = s > 0.0
        return xp.where(apart, 2.25 * self.signal_var * xp.exp(-b) / xp.where(apart, b, xp.ones_like(b)), 0.0 * b)

    def difference(self, s: Array, h: Array, K: Array) -> Array:
        b, b_moved, t = self.moved_roots(s, h)
        xp = namespace(s)
        # The factor is (1 + b + t) exp(-t) - (1 + b), written so that no terms of first order cancel.
        return self.signal_var * xp.exp(-b) * (exponential_excess(t) + b_moved * xp.expm1(-t))


@dataclass(frozen=True)
class Matern52(Matern):
    """k(s) = signal_var (1 + b + b^2 / 3) exp(-b) with b = sqrt(5 s): twice differentiable functions."""

    TITLE: ClassVar[str] = "Matérn 5/2"
    ORDER: ClassVar[float] = 2.5

    def value(self, s: Array) -> Array:
        b = self.root(s)
        return self.signal_var * (1.0 + b + b * b / 3.0) * namespace(s).exp(-b)

    def slope(self, s: Array, K: Array) -> Array:
        b = self.root(s)
        return (-5.0 / 6.0) * self.signal_var * (1.0 + b) * namespace(s).exp(-b)

    def curvature(self, s: Array, K: Array) -> Array:
        return (25.0 / 12.0) * self.signal_var * namespace(s).exp(-self.root(s))

    def difference(self, s: Array, h: Array, K: Array) -> Array:
        b, b_moved, t = self.moved_roots(s, h)
        second_order = exponential_excess(t) * (1.0 + b_moved + b_moved * b_moved / 3.0)
        first_order = t * (b_moved * b_moved + b + 2.0 * t) / 3.0
        return self.signal_var * namespace(s).exp(-b) * (second_order - first_order)


SHAPE = Parameter("shape", limits=(1e-3, 1e30), prior=InverseGamma(2.0, 2.0), prior_argument="shape", absent=math.inf)


@dataclass(frozen=True)
class RationalQuadratic(Radial):
    """k(s) = signal_var (1 + s / (2 shape))^-shape, a mixture of squared exponentials of many length-scales.

    Parameters
    ----------
    shape : float
        The smaller, the wider the range of length-scales. The limit of large values is the squared exponential.
    """

    shape: float = 1.0

    PARAMS: ClassVar[tuple[Parameter, ...]] = (*Radial.PARAMS, SHAPE)
    TITLE: ClassVar[str] = "rational quadratic"

    @property
    def mixture(self) -> tuple[np.ndarray, np.ndarray] | None:
        return rational_quadratic_mixture(self.shape)

    def value(self, s: Array) -> Array:
        xp = namespace(s)
        return self.signal_var * xp.exp(-self.shape * xp.log1p(s / (2.0 * self.shape)))

    def slope(self, s: Array, K: Array) -> Array:
        return -0.5 * K / (1.0 + s / (2.0 * self.shape))

    def curvature(self, s: Array, K: Array) -> Array:
        base = 1.0 + s / (2.0 * self.shape)
        return 0.25 * (1.0 + 1.0 / self.shape) * K / (base * base)

    def difference(self, s: Array, h: Array, K: Array) -> Array:
        xp = namespace(s)
        return K * xp.expm1(-self.shape * xp.log1p(h / (2.0 * self.shape + s)))

    def shape_log_gradient(self, s: Array, K: Array) -> list[Array]:
        ratio = s / (2.0 * self.shape)
        return [self.shape * K * (ratio / (1.0 + ratio) - namespace(s).log1p(ratio))]


def exponential_excess(t: Array) -> Array:
    """Return exp(-t) - 1 + t, never negative, to full relative precision."""
    xp = namespace(t)
    small = xp.abs(t) < 0.5
    near = xp.where(small, t, xp.zeros_like(t))
    series = xp.ones_like(t)
    for order in range(16, 2, -1):
        series = 1.0 - near / order * series
    return xp.where(small, 0.5 * near * near * series, xp.expm1(-t) + t)
