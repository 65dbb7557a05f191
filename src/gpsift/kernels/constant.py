"""The constant kernel: an unknown level that all points share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpsift._utils.arrays import Array, namespace
from gpsift.kernels.base import Pairs, Stationary
from gpsift.kernels.products import ProductTerm


@dataclass(frozen=True)
class Constant(Stationary):
    """k(x, z) = constant_var.

    Parameters
    ----------
    constant_var : float
        Prior variance of the level.
    """

    constant_var: float = 1.0

    PARAMS: ClassVar[tuple[str, ...]] = ("constant_var",)
    TITLE: ClassVar[str] = "constant"

    @property
    def lengthscales(self) -> list[np.ndarray]:
        return []

    @property
    def shares_sections(self) -> bool:
        return True

    def product_terms(self, n_features: int) -> tuple[ProductTerm, ...]:
        return (ProductTerm(self.constant_var, np.full(n_features, np.inf)),)

    def between(self, X: Array, Z: Array) -> Pairs:
        return ConstantPairs(self, X, Z)

    @property
    def prior_var(self) -> float:
        return self.constant_var


class ConstantPairs(Pairs):
    """All derivatives are zero."""

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
