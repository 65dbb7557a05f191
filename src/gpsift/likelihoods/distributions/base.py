"""What a predictive distribution offers to the measures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from gpsift._utils.arrays import Array, namespace


class Family(ABC):
    """A predictive distribution at n points, one set of parameters a point."""

    mean: Array
    var: Array
    VARYING: ClassVar[tuple[str, ...]]  # attributes that the model makes vary from point to point

    @property
    def parameters(self) -> tuple[Array, ...]:
        """What varies with the inputs, in the order of `gradients` and `changes`."""
        return tuple(getattr(self, name) for name in self.VARYING)

    @abstractmethod
    def quantile(self, probability: Array) -> Array:
        """Quantiles: (n,) for one probability, (n, k) for k of them."""

    @abstractmethod
    def cdf(self, y: Array) -> Array:
        """P(Y_i <= y_i)."""

    @abstractmethod
    def sample(self, n_draws: int, rng: np.random.Generator) -> Array:
        """Draws (n_draws, n), independent between points."""

    @abstractmethod
    def log_density(self, y: Array) -> Array:
        """log p(y_i) at each point."""

    @abstractmethod
    def metric_terms(self, *gradients: Array) -> Mapping[str, Array]:
        """Parts of d^T I d, by what they describe; `gradients` holds the derivatives of each parameter, (n, p)."""

    @abstractmethod
    def kl_terms(self, *changes: Array) -> Mapping[str, Array]:
        """Parts of KL(p || q), q having its parameters changed by `changes`, (n,) each or broadcasting to it."""


def log1p_excess(u: Array) -> Array:
    """u - log(1 + u), never negative, to full relative precision."""
    # With r = u / (2 + u), log(1 + u) = 2 (r + r^3/3 + r^5/5 + ...), so the first order cancels on paper instead of in
    # floating point: at u = 1e-7 plain subtraction keeps nine digits, at u = 1e-12 four.
    xp = namespace(u)
    small = xp.abs(u) < 0.3
    near = xp.where(small, u, xp.zeros_like(u))
    r = near / (2.0 + near)
    series = xp.zeros_like(r)
    for order in range(19, 1, -2):
        series = r * r * (series + 1.0 / order)
    return xp.where(small, r * (near - 2.0 * series), u - xp.log1p(u))
