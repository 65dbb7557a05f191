"""A kernel some of whose features are switched off: it is evaluated on the others, and what it says of these is 0.

A feature with an infinite length-scale has no part in a distance. Without its column the kernel costs what the active
features do; only derivatives that are asked for all features have zeros for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpsift._utils.arrays import Array, like
from gpsift.kernels.base import Pairs


class SwitchedOffPairs(Pairs):
    """Pairs of points that see the columns `active`, for a kernel that has a length-scale for each of `n_features`."""

    def __init__(self, pairs: Pairs, active: Sequence[int], n_features: int):
        self.pairs, self.K = pairs, pairs.K
        self._place = {j: k for k, j in enumerate(active)}  # of a feature among the active ones
        spread = np.zeros((len(active), n_features))
        spread[np.arange(len(active)), active] = 1.0
        self._spread = like(self.K, spread)

    def log_gradient(self, G: Array) -> np.ndarray:
        found, n_active = self.pairs.log_gradient(G), len(self._place)
        lengthscale = np.zeros(self._spread.shape[1])
        lengthscale[list(self._place)] = found[:n_active]
        return np.concatenate([lengthscale, found[n_active:]])

    def input_gradient(self, C: Array) -> Array:
        return self.pairs.input_gradient(C) @ self._spread

    def input_jacobian(self, j: int) -> Array:
        return self.pairs.input_jacobian(self._place[j]) if j in self._place else self.xp.zeros_like(self.K)

    def input_hessian(self, C: Array) -> Array:
        return self._spread.T @ self.pairs.input_hessian(C) @ self._spread

    def step(self, j: int, delta: float) -> Array:
        return self.pairs.step(self._place[j], delta) if j in self._place else self.xp.zeros_like(self.K)

    def section(self, w: Array, j: int, base: Array, offset: Array) -> Array:
        if j in self._place:
            return self.pairs.section(w, self._place[j], base, offset)
        return (self.K @ w)[:, None] + self.xp.zeros_like(offset)
