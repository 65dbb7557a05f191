r"""Kernels that are functions of a scaled distance.

With :math:`s = \sum_j (x_j - z_j)^2 / l_j^2` and k, k', k'' the profile and its derivatives in s,

.. math::
    \partial k / \partial x_j &= 2 k' u_j, \qquad u_j = (x_j - z_j) / l_j^2 \\
    \partial^2 k / \partial x_j \partial x_m &= 4 k'' u_j u_m + 2 k' \delta_{jm} / l_j^2 \\
    \partial k / \partial \log l_j &= -2 k' (x_j - z_j)^2 / l_j^2 .
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from gpsift._utils.arrays import Array, eye_like, like, namespace, take_columns, to_numpy
from gpsift._utils.linalg import total_product, zero_diagonal
from gpsift._utils.parameter import Parameter
from gpsift._utils.priors import InverseGamma, OnLogScale
from gpsift.kernels.base import Pairs, Stationary
from gpsift.kernels.products import ProductTerm

# Pairs of equal points are set to zero by index where they are fewer than this share of all pairs.
FEW_PAIRS = 0.1
# An infinite length-scale switches a feature off, so it has no upper limit. At the mode of the prior, 10 standard
# deviations of the input, functions are almost linear. The prior is a density of the logarithm, whose longer right tail
# allows very long length-scales of many features.
LENGTHSCALE = Parameter(
    "lengthscale",
    unit="input",
    limits=(1e-3, 1e30),
    prior=OnLogScale(InverseGamma(1.0, 10.0)),
    prior_argument="lengthscale",
    per_feature=True,
    absent=math.inf,
    search_step=1.0,
    short_start=8.0**-0.5,
    posterior_sd=0.1,
)
SIGNAL_VAR = Parameter(
    "signal_var",
    unit="target**2",
    limits=(1e-30, 1e10),
    prior_argument="signal",
    absent=0.0,
    posterior_sd=0.5,
    projection_step=4.0,
)


@dataclass(frozen=True)
class Radial(Stationary, ABC):
    """A kernel k(s) of the scaled squared distance s.

    Parameters
    ----------
    lengthscale : array (p,), float or None
        One length-scale for each feature; a float is the starting value of all. None starts at sqrt(p).
    signal_var : float
        k(x, x), the prior variance.
    shared : bool
        Whether all features share one length-scale.
    """

    lengthscale: Any = None
    signal_var: float = 1.0
    shared: bool = False

    PARAMS: ClassVar[tuple[Parameter, ...]] = (LENGTHSCALE, SIGNAL_VAR)

    def for_features(self, n_features: int) -> Self:
        # Standardised points in p dimensions are about sqrt(2 p) apart: at length-scales of sqrt(p) all are correlated.
        value = np.sqrt(n_features) if self.lengthscale is None else self.lengthscale
        if self.shared and np.ndim(value):
            raise ValueError(f"`lengthscale` has shape {np.shape(value)} but `shared=True` needs one number.")
        if not self.shared and np.ndim(value) == 0:
            value = np.full(n_features, value)
        return super(Radial, replace(self, lengthscale=value)).for_features(n_features)

    @property
    def lengthscales(self) -> list[np.ndarray]:
        return [np.atleast_1d(np.asarray(self.lengthscale, dtype=float))]

    @property
    def switches_features(self) -> bool:
        return not self.shared

    @property
    def mixture(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Multiples of the squared length-scale, and weights, of squared exponentials whose sum is the kernel."""
        return None

    def product_terms(self, n_features: int) -> tuple[ProductTerm, ...] | None:
        mixture, lengthscale = self.mixture, np.broadcast_to(self.lengthscale, (n_features,))
        if mixture is None:
            return None
        terms = zip(*mixture, strict=True)
        return tuple(ProductTerm(self.signal_var * weight, lengthscale * np.sqrt(times)) for times, weight in terms)

    @abstractmethod
    def value(self, s: Array) -> Array:
        """Return k(s)."""

    @abstractmethod
    def slope(self, s: Array, K: Array) -> Array:
        """Return k'(s), given K = k(s)."""

    @abstractmethod
    def curvature(self, s: Array, K: Array) -> Array:
        """Return k''(s), given K = k(s); 0 at s = 0 where k'' is infinite, because its product with u_j u_m is 0."""

    @abstractmethod
    def difference(self, s: Array, h: Array, K: Array) -> Array:
        """Return k(s + h) - k(s) to full relative precision, given K = k(s)."""

    def moved_sums(self, pairs: RadialPairs, V: Array, j: int, start: Array, offset: Array) -> Array:
        """Return sum_k V_kf k(x_i + (start_i + offset_q) e_j, z_k) in scaled coordinates, an (n, q, F) array."""
        difference = pairs.X[:, j][:, None] - pairs.Z[:, j]
        columns = []
        for q in range(offset.shape[0]):
            step = start[:, None] + offset[q]
            moved = pairs.s + step * (2.0 * difference + step)
            columns.append(self.value(pairs.xp.clip(moved, 0.0, None)) @ V)
        return pairs.xp.stack(columns, axis=1)

    def shape_log_gradient(self, s: Array, K: Array) -> list[Array]:
        """Return dk / d log(parameter) of the hyperparameters after the length-scale and the signal variance."""
        return []

    def between(self, X: Array, Z: Array) -> Pairs:
        active = np.flatnonzero(np.isfinite(np.broadcast_to(self.lengthscale, (X.shape[1],)))).tolist()
        if len(active) == X.shape[1]:
            return RadialPairs(self, X, Z)
        near = take_columns(X, active)
        pairs = RadialPairs(self.for_columns(active), near, near if X is Z else take_columns(Z, active))
        return SwitchedOffPairs(pairs, active, X.shape[1])

    @property
    def prior_var(self) -> float:
        return self.signal_var


class RadialPairs(Pairs):
    """A radial kernel between two sets of points, in coordinates centred on Z and divided by the length-scales."""

    def __init__(self, kernel: Radial, X: Array, Z: Array):
        self.kernel, is_same = kernel, X is Z
        self.inverse_lengthscale = like(X, np.broadcast_to(1.0 / np.asarray(kernel.lengthscale), (X.shape[1],)))
        self.center = namespace(X, Z).mean(Z, axis=0)
        self.Z = (Z - self.center) * self.inverse_lengthscale
        self.X = self.Z if is_same else (X - self.center) * self.inverse_lengthscale
        xp = namespace(self.X, self.Z)
        x, z = xp.sum(self.X * self.X, axis=1)[:, None], xp.sum(self.Z * self.Z, axis=1)[:, None]
        # |x|^2 - 2 x^T z + |z|^2 as one matrix product: additions to an (n, m) matrix would take longer.
        s = xp.concat([self.X, x, xp.ones_like(x)], axis=1) @ xp.concat([-2.0 * self.Z, xp.ones_like(z), z], axis=1).T
        s = zero_rounding_errors(s, x, z)
        s = zero_diagonal(s) if is_same else s
        self.s, self.K = s, kernel.value(s)

    @cached_property
    def slope(self) -> Array:
        """k'(s)."""
        return self.kernel.slope(self.s, self.K)

    def log_gradient(self, G: Array) -> np.ndarray:
        xp = self.xp
        W = self.slope * G
        W *= -2.0
        by_feature = (
            xp.sum(W, axis=1) @ (self.X * self.X)
            + xp.sum(W, axis=0) @ (self.Z * self.Z)
            - 2.0 * xp.sum(self.X * (W @ self.Z), axis=0)
        )
        lengthscale = to_numpy(by_feature)
        if np.ndim(self.kernel.lengthscale) == 0:
            lengthscale = np.array([lengthscale.sum()])
        values = [self.K, *self.kernel.shape_log_gradient(self.s, self.K)]
        return np.concatenate([lengthscale, [total_product(G, value) for value in values]])

    def _weighted_differences(self, W: Array, C: Array) -> Array:
        """Return sum_k W_ik C_ik (x_ij - z_kj), or with a vector C_k; an (n, p) array in scaled coordinates."""
        if C.ndim == 1:
            return self.X * (W @ C)[:, None] - W @ (C[:, None] * self.Z)
        W = W * C
        return self.X * self.xp.sum(W, axis=1)[:, None] - W @ self.Z

    def input_gradient(self, C: Array) -> Array:
        return self._weighted_differences(self.slope, C) * (2.0 * self.inverse_lengthscale)

    def input_gradients(self, V: Array) -> Array:
        xp, (m, p), n_functions = self.xp, self.Z.shape, V.shape[1]
        columns = xp.concat([V, xp.reshape(V[:, None, :] * self.Z[:, :, None], (m, p * n_functions))], axis=1)
        found = self.slope @ columns  # one product for all functions
        by_z = xp.reshape(found[:, n_functions:], (-1, p, n_functions))
        return (self.X[:, :, None] * found[:, None, :n_functions] - by_z) * (2.0 * self.inverse_lengthscale)[:, None]

    def input_jacobian(self, j: int) -> Array:
        difference = self.X[:, j][:, None] - self.Z[:, j]
        return 2.0 * self.slope * difference * self.inverse_lengthscale[j]

    def input_hessian(self, C: Array) -> Array:
        xp = self.xp
        curvature = self.kernel.curvature(self.s, self.K)
        rows = [
            self._weighted_differences(curvature * (self.X[:, j][:, None] - self.Z[:, j]), C)
            * (4.0 * self.inverse_lengthscale * self.inverse_lengthscale[j])
            for j in range(self.X.shape[1])
        ]
        isotropic = xp.sum(2.0 * self.slope * C, axis=1)
        diagonal = eye_like(self.X, self.X.shape[1]) * self.inverse_lengthscale**2
        hessian = isotropic[:, None, None] * diagonal
        return hessian + xp.stack(rows, axis=1) if rows else hessian

    def step(self, j: int, delta: float) -> Array:
        scaled = delta * self.inverse_lengthscale[j]
        h = scaled * (2.0 * (self.X[:, j][:, None] - self.Z[:, j]) + scaled)
        return self.kernel.difference(self.s, h, self.K)

    def section(self, w: Array, j: int, base: Array, offset: Array) -> Array:
        return self.sections(w[:, None], j, base, offset)[:, :, 0]

    def sections(self, V: Array, j: int, base: Array, offset: Array) -> Array:
        scaled_base = (base - self.center[j]) * self.inverse_lengthscale[j]
        return self.kernel.moved_sums(self, V, j, scaled_base - self.X[:, j], offset * self.inverse_lengthscale[j])


def zero_rounding_errors(s: Array, x: Array, z: Array) -> Array:
    """Set squared distances to zero below the rounding error of their parts |x|^2 (n, 1) and |z|^2 (m, 1).

    The slope of a Matérn 3/2 kernel depends on their square root, which is far larger than the error.
    """
    xp = namespace(s)
    error = 8.0 * xp.finfo(s.dtype).eps
    if isinstance(s, np.ndarray):
        largest = x.max(initial=0.0) + z.max(initial=0.0)
        small = np.flatnonzero(s.ravel() <= error * largest)
        if small.size <= FEW_PAIRS * s.size:
            row, column = np.divmod(small, max(1, s.shape[1]))
            zero = s[row, column] <= error * (x[row, 0] + z[column, 0])
            s[row[zero], column[zero]] = 0.0
            return s
    return xp.where(s > error * (x + z.T), s, xp.zeros_like(s))


class SwitchedOffPairs(Pairs):
    """A radial kernel over `n_features` columns, of which only `active` have a finite length-scale."""

    def __init__(self, pairs: Pairs, active: Sequence[int], n_features: int):
        self.pairs, self.K = pairs, pairs.K
        self._position = {j: k for k, j in enumerate(active)}  # of a feature among the active ones
        embedding = np.zeros((len(active), n_features))
        embedding[np.arange(len(active)), active] = 1.0
        self._embedding = like(self.K, embedding)

    def log_gradient(self, G: Array) -> np.ndarray:
        found, n_active = self.pairs.log_gradient(G), len(self._position)
        lengthscale = np.zeros(self._embedding.shape[1])
        lengthscale[list(self._position)] = found[:n_active]
        return np.concatenate([lengthscale, found[n_active:]])

    def input_gradient(self, C: Array) -> Array:
        return self.pairs.input_gradient(C) @ self._embedding

    def input_jacobian(self, j: int) -> Array:
        return self.pairs.input_jacobian(self._position[j]) if j in self._position else self.xp.zeros_like(self.K)

    def input_hessian(self, C: Array) -> Array:
        return self._embedding.T @ self.pairs.input_hessian(C) @ self._embedding

    def step(self, j: int, delta: float) -> Array:
        return self.pairs.step(self._position[j], delta) if j in self._position else self.xp.zeros_like(self.K)

    def section(self, w: Array, j: int, base: Array, offset: Array) -> Array:
        return self.sections(w[:, None], j, base, offset)[:, :, 0]

    def input_gradients(self, V: Array) -> Array:
        return self.xp.permute_dims(
            self.xp.permute_dims(self.pairs.input_gradients(V), (2, 0, 1)) @ self._embedding, (1, 2, 0)
        )

    def sections(self, V: Array, j: int, base: Array, offset: Array) -> Array:
        if j in self._position:
            return self.pairs.sections(V, self._position[j], base, offset)
        return (self.K @ V)[:, None, :] + self.xp.zeros_like(offset)[:, None]
