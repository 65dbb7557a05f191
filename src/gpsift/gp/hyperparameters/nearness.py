r"""How near features that are off came to being switched on: the steepest slope over the ways in which they may enter.

Whatever a feature adds to the covariance, M of it changes the log evidence L by

.. math:: \frac{\partial L}{\partial M} = \tfrac12 [w^T M w - \mathrm{tr}(P M)] ,

where w are the weights of the mean and P is the precision of the observations: w is N(0, P) if the model holds. The
slope in its standard deviations is a score that compares across features and ways: polynomials of the feature, where
the line is what is left when all features that are off had one at once; bends of any shape, on top of what the active
features do; and a product with another feature. Only one of the ways has to be open, so the largest score counts.

It costs O(n^2) for each feature, and orders what shares the score 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpsift.gp.hyperparameters.screening import DEGREE_WEIGHTS, entering_scores
from gpsift.gp.inference import Slope

# Length-scales, in standard deviations, of bends; each is twice the one before.
BENDS = (0.5, 1.0, 2.0, 4.0)
# Features whose bends are looked at: the nearest by what is cheaper.
N_BENT = 50
# Rows of the matrices of bends that are looked at together: a quarter of a megabyte of a thousand columns.
BENT_ROWS = 32
# What the square of the best of p standard normal numbers exceeds 2 log p by in few cases: the price of the best pair.
PAIR_MARGIN = 3.0


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What a model leaves, and the features that could take it up: columns X, and their polynomials (3, n, p)."""

    slope: Slope
    K0: np.ndarray  # the radial part of the covariance
    X: np.ndarray
    features: np.ndarray
    active: Sequence[int]
    with_pairs: bool

    @property
    def weights(self) -> np.ndarray:
        return self.slope.weights

    @cached_property
    def precision(self) -> np.ndarray:
        return np.outer(self.weights, self.weights) - 2.0 * self.slope.G

    @cached_property
    def is_off(self) -> np.ndarray:
        off = np.ones(self.X.shape[1], bool)
        off[list(self.active)] = False
        return off


def nearness(around: Surroundings) -> np.ndarray:
    """The steepest slope of each feature, in its standard deviations under noise, (p,)."""
    if around.weights.ndim > 1:  # several classes share no precision
        return entering_scores(around.slope.G, around.K0, around.features)
    near = polynomial_scores(around)
    if around.with_pairs:
        near = np.maximum(near, pair_scores(around))
    nearest = [j for j in np.argsort(-near) if around.is_off[j]][:N_BENT]
    near[nearest] = np.maximum(near[nearest], bend_scores(around, nearest))
    return near


def polynomial_scores(around: Surroundings) -> np.ndarray:
    """Of a line, given lines of all others that are off, and of polynomials of degree 2 and 3, weighted, (p,)."""
    w, P = around.weights, around.precision
    line, *curves = around.features
    squares = [joint_squares(w, P, line, line[:, around.is_off]), *(own_squares(w, P, curve) for curve in curves)]
    c = np.array(DEGREE_WEIGHTS)
    return (c @ squares - c.sum()) / np.sqrt(2.0 * np.sum(c**2))


def own_squares(w: np.ndarray, P: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """(phi^T w)^2 of each column in units of its variance phi^T P phi, (p,)."""
    return in_units((phi.T @ w) ** 2, np.einsum("ij,ij->j", phi, P @ phi))


def joint_squares(w: np.ndarray, P: np.ndarray, phi: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The same when the columns `others` have slopes whose sum has about the variance that the model leaves, (p,)."""
    n, p = phi.shape
    return own_squares(w, P, left_by(others, P @ others, n / (p * np.trace(P)), phi))


def left_by(others: np.ndarray, seen: np.ndarray, slope_var: float, phi: np.ndarray) -> np.ndarray:
    """(1 + slope_var others seen^T)^-1 phi, by a system of as many equations as there are rows or others."""
    n, n_others = others.shape
    if n_others > n:
        return np.linalg.solve(np.eye(n) + slope_var * others @ seen.T, phi)
    core = np.eye(n_others) / slope_var + seen.T @ others
    return phi - others @ np.linalg.solve(core, seen.T @ phi)


def bend_scores(around: Surroundings, columns: Sequence[int]) -> np.ndarray:
    """The largest over length-scales, of K0 times a squared exponential of each of the columns."""
    blocks = list(bent_blocks(around))
    return np.array([steepest_bend(blocks, around.X[:, j]) for j in columns])


class Block(NamedTuple):
    """Some rows of two symmetric matrices up to the diagonal; what stands for two entries is doubled."""

    rows: slice
    pull: np.ndarray  # K0 o 2 G
    spread: np.ndarray  # its squared standard deviations, which take the precision for diagonal, as it almost is


def bent_blocks(around: Surroundings) -> Iterator[Block]:
    """The lower triangles in blocks that stay in the processor's cache."""
    w, P, K0 = around.weights, around.precision, around.K0
    sd = np.sqrt(np.abs(np.diag(P)))
    for start in range(0, len(w), BENT_ROWS):
        rows, columns = slice(start, start + BENT_ROWS), slice(0, start + BENT_ROWS)
        pull = K0[rows, columns] * (np.outer(w[rows], w[columns]) - P[rows, columns])
        spread = (K0[rows, columns] * np.outer(sd[rows], sd[columns])) ** 2
        twice = np.tril(np.ones_like(pull), start) + np.tril(np.ones_like(pull), start - 1)
        yield Block(rows, pull * twice, spread * twice)


def steepest_bend(blocks: Sequence[Block], x: np.ndarray) -> float:
    """The largest slope along one column, over length-scales."""
    z = x / (x.std() or 1.0) / BENDS[-1]
    pulls, spreads = np.sum([bend_sums(block, z) for block in blocks], axis=0).T
    return float(np.max(in_units(pulls, np.sqrt(2.0 * spreads))))


def bend_sums(block: Block, z: np.ndarray) -> list[tuple[float, float]]:
    """What a block adds to pull and spread of each length-scale, the longest first."""
    kappa = np.exp(-0.5 * np.subtract.outer(z[block.rows], z[: block.rows.stop]) ** 2)
    sums = []
    for _ in BENDS:  # half the length-scale is the fourth power
        squared = kappa * kappa
        sums.append((np.vdot(block.pull, kappa), np.vdot(block.spread, squared)))
        kappa = squared * squared
    return sums


def pair_scores(around: Surroundings) -> np.ndarray:
    """Of the product of each feature with the best other one, less what the best of p would reach by chance, (p,).

    As for bends, the precision is taken for diagonal.
    """
    z, w, r = around.features[0], around.weights, np.diag(around.precision)
    n, p = z.shape
    mean = z.T @ z / n
    pull = (z * w[:, None]).T @ z - mean * w.sum()
    spread = (z**2 * r[:, None]).T @ z**2 - 2.0 * mean * ((z * r[:, None]).T @ z) + mean**2 * r.sum()
    squares = in_units(pull**2, spread)
    np.fill_diagonal(squares, 0.0)
    return (squares.max(axis=1) - 2.0 * np.log(p) - PAIR_MARGIN) / np.sqrt(2.0)


def in_units(values: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Values in units, 0 where these vanish."""
    return np.divide(values, units, out=np.zeros_like(np.asarray(values, float)), where=np.asarray(units) > 0)
