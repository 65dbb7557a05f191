"""The linear kernel: Bayesian linear regression as a covariance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpsift._utils.arrays import Array, like, namespace, to_numpy
from gpsift._utils.parameter import Parameter
from gpsift.kernels.base import Kernel, Pairs, Stationary
from gpsift.kernels.products import ProductTerm

LINEAR_VAR = Parameter(
    "linear_var",
    unit="target**2/input**2",
    limits=(1e-30, 1e10),
    prior_argument="linear",
    per_feature=True,
    absent=0.0,
)
# The likelihood depends little on this variance: with first steps of 4, searches for the toy data of the paper take 35
# evaluations instead of 40. Projected submodels depend on it least of all.
CONSTANT_VAR = Parameter(
    "constant_var",
    unit="level**2",
    limits=(1e-30, 1e10),
    prior_argument="constant",
    absent=0.0,
    search_step=4.0,
    projection_step=8.0,
)


@dataclass(frozen=True)
class Linear(Kernel):
    """k(x, z) = sum_j linear_var_j x_j z_j.

    Parameters
    ----------
    linear_var : float or array (p,)
        Prior variance of the slopes: one number for all features, or one for each.
    """

    linear_var: float | np.ndarray = 1.0

    PARAMS: ClassVar[tuple[Parameter, ...]] = (LINEAR_VAR,)
    TITLE: ClassVar[str] = "linear"

    @property
    def switches_features(self) -> bool:
        return np.ndim(self.linear_var) > 0

    @property
    def has_fast_sections(self) -> bool:
        return True

    def product_terms(self, n_features: int) -> tuple[ProductTerm, ...]:
        return ()

    def slope_vars(self, n_features: int) -> np.ndarray:
        return np.array(np.broadcast_to(self.linear_var, (n_features,)))

    def slope_var(self, X: Array) -> Array:
        """Return `slope_vars` as an array of the library, dtype and device of X."""
        return like(X, np.broadcast_to(self.linear_var, (X.shape[1],)))

    def between(self, X: Array, Z: Array) -> Pairs:
        return LinearPairs(self, X, Z)

    def diag(self, X: Array) -> Array:
        return namespace(X).sum(X * X * self.slope_var(X), axis=1)

    def diag_log_gradient(self, X: Array, g: Array) -> np.ndarray:
        by_feature = to_numpy(self.slope_var(X) * (g @ (X * X)))
        return by_feature if np.ndim(self.linear_var) else np.array([by_feature.sum()])

    def diag_gradient(self, X: Array) -> Array:
        return 2.0 * X * self.slope_var(X)

    def diag_hessian(self, X: Array) -> Array:
        xp = namespace(X)
        diagonal = like(X, np.diag(2.0 * np.broadcast_to(self.linear_var, (X.shape[1],))))
        return xp.zeros_like(X)[:, :, None] + diagonal[None, :, :]

    def diag_step(self, X: Array, j: int, delta: float) -> Array:
        return self.slope_var(X)[j] * delta * (2.0 * X[:, j] + delta)


class LinearPairs(Pairs):
    """A linear kernel, sum_j v_j x_j z_j, between two sets of points."""

    def __init__(self, kernel: Linear, X: Array, Z: Array):
        self.kernel, self.X, self.Z = kernel, X, Z
        self.v = kernel.slope_var(X)
        self.K = (X * self.v) @ Z.T

    def log_gradient(self, G: Array) -> np.ndarray:
        by_feature = to_numpy(self.v * self.xp.sum(self.X * (G @ self.Z), axis=0))
        return by_feature if np.ndim(self.kernel.linear_var) else np.array([by_feature.sum()])

    def input_gradient(self, C: Array) -> Array:
        product = C @ self.Z
        return self.v * (product if product.ndim == 2 else self.xp.zeros_like(self.X) + product)

    def input_jacobian(self, j: int) -> Array:
        return self.xp.zeros_like(self.K) + self.v[j] * self.Z[:, j]

    def input_hessian(self, C: Array) -> Array:
        return self.xp.zeros_like(self.X[:, :, None] * self.X[:, None, :])

    def step(self, j: int, delta: float) -> Array:
        return delta * self.input_jacobian(j)

    def section(self, w: Array, j: int, base: Array, offset: Array) -> Array:
        rest = self.K @ w - self.v[j] * self.X[:, j] * (self.Z[:, j] @ w)
        return rest[:, None] + self.v[j] * (self.Z[:, j] @ w) * (base[:, None] + offset)


@dataclass(frozen=True)
class Constant(Stationary):
    """k(x, z) = constant_var.

    Parameters
    ----------
    constant_var : float
        Prior variance of the constant.
    """

    constant_var: float = 1.0

    PARAMS: ClassVar[tuple[Parameter, ...]] = (CONSTANT_VAR,)
    TITLE: ClassVar[str] = "constant"

    @property
    def has_fast_sections(self) -> bool:
        return True

    def product_terms(self, n_features: int) -> tuple[ProductTerm, ...]:
        return (ProductTerm(self.constant_var, np.full(n_features, np.inf)),)

    def between(self, X: Array, Z: Array) -> Pairs:
        return ConstantPairs(self, X, Z)

    @property
    def prior_var(self) -> float:
        return self.constant_var


class ConstantPairs(Pairs):
    """A constant kernel between two sets of points; derivatives with respect to inputs are zero."""

    def __init__(self, kernel: Constant, X: Array, Z: Array):
        self.kernel, self.X, self.Z = kernel, X, Z
        xp = namespace(X, Z)
        self.K = xp.broadcast_to(
            xp.zeros_like(xp.sum(X[:1, :], axis=1, keepdims=True)) + kernel.constant_var, (X.shape[0], Z.shape[0])
        )

    def log_gradient(self, G: Array) -> np.ndarray:
        return np.array([self.kernel.constant_var * float(self.xp.sum(G))])

    def input_gradient(self, C: Array) -> Array:
        return self.xp.zeros_like(self.X)

    def input_jacobian(self, j: int) -> Array:
        return self.xp.zeros_like(self.K)

    def input_hessian(self, C: Array) -> Array:
        return self.kernel.diag_hessian(self.X)

    def step(self, j: int, delta: float) -> Array:
        return self.xp.zeros_like(self.K)

    def section(self, w: Array, j: int, base: Array, offset: Array) -> Array:
        return self.xp.full_like(base[:, None] * offset, self.kernel.constant_var) * self.xp.sum(w)
