r"""Nodes for averages over a normal latent value of functions as smooth as log p(y | f).

The trapezoidal rule in t = (f - mean) / sd converges exponentially, and what limits it is the nearest singularity of
log p: at a distance of pi for a logistic function, 2.8 for a probit. So its step is at most `STEP` in f, and the number
of nodes grows with the standard deviation. A Gauss-Hermite rule needs fewer nodes below sd = 1, and above it one that
grows with the square: at sd = 4, 64 of its nodes err by 5e-6 where 80 of these err by 1e-8.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

# Averages of log p and of its derivatives are right to 1e-9 for standard deviations up to 16; from there on the
# number of nodes stays, and errors grow to 1e-4 at 100.
STEP = 0.6
REACH = 7.2
MOST_DOUBLINGS = 4
# Rows are taken in blocks, so that a (row, node) array stays below this many numbers.
BLOCK = 200_000
# Below this standard deviation the slope in t says less of the curvature than the curvature itself.
SMALL_SD = 1e-3


class Expected(NamedTuple):
    """Averages over the latent value: of log p, of its first derivative, and of minus its second, (n,) each."""

    log_density: np.ndarray
    first: np.ndarray
    bend: np.ndarray


def latent_nodes(sd: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rows, and for them the nodes t and weights of averages over f = mean + sd t, block by block.

    Which nodes a row gets depends on its own standard deviation only.
    """
    doublings = np.clip(np.ceil(np.log2(np.maximum(sd, 1.0))), 0, MOST_DOUBLINGS).astype(int)
    for doubling in np.unique(doublings):
        t, weights = _rule(int(doubling))
        group = np.flatnonzero(doublings == doubling)
        size = BLOCK // t.size
        for start in range(0, group.size, size):
            yield group[start : start + size], t, weights


@cache
def _rule(doubling: int) -> tuple[np.ndarray, np.ndarray]:
    t = np.linspace(-REACH, REACH, round(2.0 * REACH / STEP) * 2**doubling + 1)
    weights = np.exp(-0.5 * t**2)
    return t, weights / weights.sum()
