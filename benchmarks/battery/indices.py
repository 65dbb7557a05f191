r"""How much each input of a function matters when inputs are independent: total Sobol indices.

.. math:: T_j = E \, \mathrm{Var}(f | x_{-j}) / \mathrm{Var} f
          \approx \frac{1}{2 N} \sum_i (f(a_i) - f(a_i \text{ with } b_{ij}))^2 / \mathrm{Var} f

(Jansen 1999), with a and b the halves of the points of a scrambled Sobol sequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from benchmarks.battery.functions import Function

Law = Literal["uniform", "normal"]

POWER = 14


@dataclass(frozen=True, eq=False)
class Spread:
    """Mean and variance of a function, and the total index of each of its inputs, (k,)."""

    mean: float
    var: float
    total: np.ndarray


@cache
def spread(function: Function, n_inputs: int, law: Law, seed: int = 0) -> Spread:
    """Of a function of independent inputs, all of the same law."""
    points = qmc.Sobol(2 * n_inputs, rng=np.random.default_rng(seed)).random_base2(POWER)
    if law == "normal":
        points = ndtri(np.clip(points, 1e-12, 1.0 - 1e-12))
    A, B = points[:, :n_inputs], points[:, n_inputs:]
    f = function(A)
    total = np.empty(n_inputs)
    for j in range(n_inputs):
        moved = A.copy()
        moved[:, j] = B[:, j]
        total[j] = 0.5 * np.mean((f - function(moved)) ** 2)
    return Spread(float(np.mean(f)), float(np.var(f)), total / np.var(f))
