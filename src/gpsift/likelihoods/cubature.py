r"""Nodes for averages over a normal vector of a few dimensions.

In few dimensions they are a lattice, cut off at a ball: the trapezoidal rule. With step h along an axis it errs by
exp(-2 pi^2 / h^2) because of the normal density, and by exp(-2 pi d / h) because of a pole of the function at distance
d from the real axis. The poles of a softmax are where two of its arguments are i pi apart, so if these move apart by
`spread` while the axis moves by 1, d = pi / spread and the step must shrink with 1 / spread. (A product of
Gauss-Hermite rules cannot follow: with 40 x 40 nodes and standard deviations of 4 it errs by 5e-3, where a lattice of
as many nodes errs by 3e-8.)

Where such a lattice would be too large, a fixed scrambled Sobol sequence takes its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, ndtri

# Steps for spreads of at most 1, and the radius of the ball: errors of about 1e-11, or of 1e-6 where that lattice would
# have too many nodes.
LATTICES = ((0.65, 7.2), (1.1, 5.4))
LARGEST_LATTICE = 2**14
# Averages of a softmax over 4 to 9 dimensions are then right to 2e-5 for standard deviations of 0.5, to 5e-4 for 2, and
# to 3e-3 for 10.
LOG2_SOBOL = 13


class Nodes(NamedTuple):
    """Values of a standard normal vector, (h, d), and the logarithms of their weights, (h,), which add up to 1.

    The axes of a lattice must be those for which the spreads were given.
    """

    z: np.ndarray
    log_weights: np.ndarray
    is_lattice: bool


def nodes_for(spread: np.ndarray) -> Iterator[tuple[np.ndarray, Nodes]]:
    """Nodes that resolve a softmax whose arguments have these spreads (n, d) along the axes; rows that share them."""
    n, d = spread.shape
    levels = np.ceil(2.0 * np.log2(np.maximum(spread, 1.0))).astype(int)  # steps go down by factors of sqrt(2)
    log_ball = 0.5 * d * np.log(np.pi) - gammaln(0.5 * d + 1.0)
    rule = np.full(n, len(LATTICES))
    for k, (step, reach) in reversed(list(enumerate(LATTICES))):
        log_size = log_ball + d * np.log(reach / step) + 0.5 * np.log(2.0) * levels.sum(axis=1)
        rule[log_size <= np.log(LARGEST_LATTICE)] = k
    levels[rule == len(LATTICES)] = 0
    kinds, members = np.unique(np.column_stack([rule, levels]), axis=0, return_inverse=True)
    for k, (chosen, *steps) in enumerate(kinds.tolist()):
        rows = np.flatnonzero(members.ravel() == k)
        yield rows, lattice(*LATTICES[chosen], tuple(steps)) if chosen < len(LATTICES) else sobol(d)


@lru_cache(maxsize=128)
def lattice(coarsest: float, reach: float, levels: tuple[int, ...]) -> Nodes:
    """A lattice with steps of coarsest / sqrt(2)^level along each axis, within a ball."""
    axes = []
    for level in levels:
        step = coarsest * 2.0 ** (-0.5 * level)
        half = int(reach / step)
        axes.append(step * np.arange(-half, half + 1))
    z = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(levels))
    squared = np.sum(z**2, axis=1)
    inside = squared <= reach**2
    z, log_weights = z[inside], -0.5 * squared[inside]
    return Nodes(z, log_weights - np.log(np.exp(log_weights).sum()), True)


@cache
def sobol(d: int) -> Nodes:
    """The same 2^LOG2_SOBOL points whenever they are asked for."""
    from scipy.stats import qmc

    z = ndtri(qmc.Sobol(d, seed=0).random_base2(LOG2_SOBOL))
    return Nodes(z, np.full(len(z), -LOG2_SOBOL * np.log(2.0)), False)
