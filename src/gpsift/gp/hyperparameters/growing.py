"""Samples of the rows that grow: a search that begins on few of them goes on from there on more, and last on all."""

from __future__ import annotations

import math

import numpy as np

from gpsift.gp.hyperparameters.problem import Problem
from gpsift.gp.inference import DenseInference

# Rows from which on a search begins on fewer, these, and by which factor samples grow at most.
MANY_ROWS = 600
FEW_ROWS = 300
MOST_GROWTH = 3.5


def begins_on_few(problem: Problem) -> bool:
    """Whether a search is quicker by way of fewer rows: its gradients must have all digits, and rows must be many."""
    is_dense = isinstance(problem.engine, DenseInference) and problem.likelihood.has_closed_form
    return is_dense and len(problem.y) >= MANY_ROWS


def growing_samples(y: np.ndarray, seed: int, most: int | None = None) -> list[np.ndarray]:
    """Row numbers of samples, each within the next, the last of them of all rows, or of `most` if these are fewer.

    Each has the smallest and the largest target, so that it varies.

    >>> [len(rows) for rows in growing_samples(np.arange(2000.0), seed=0)]
    [300, 775, 2000]
    """
    order = extremes_first(y, seed)
    return [np.sort(order[:size]) for size in growing_sizes(min(len(y), most or len(y)))]


def sampled_rows(y: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Row numbers of one sample, with the smallest and the largest target."""
    return np.sort(extremes_first(y, seed)[:size])


def extremes_first(y: np.ndarray, seed: int) -> np.ndarray:
    """All row numbers in a random order, those of the smallest and the largest target before the others."""
    order = np.random.default_rng(seed).permutation(len(y))
    is_extreme = np.isin(order, [y.argmin(), y.argmax()])
    return np.concatenate([order[is_extreme], order[~is_extreme]])


def growing_sizes(n: int) -> list[int]:
    """Sizes from few rows to n, which grow by the same factor.

    >>> growing_sizes(1000), growing_sizes(4000)
    ([300, 1000], [300, 711, 1687, 4000])
    """
    n_steps = max(1, math.ceil(math.log(n / FEW_ROWS, MOST_GROWTH)))
    return [round(size) for size in np.geomspace(min(FEW_ROWS, n), n, n_steps + 1)]


def on_sample(problem: Problem, rows: np.ndarray) -> Problem:
    """The problem on some of the rows; itself where they are all."""
    return problem if rows.size == len(problem.y) else problem.on_rows(rows)
