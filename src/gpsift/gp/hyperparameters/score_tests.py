r"""Which feature should be switched on next: slopes of the log evidence for all of them at once.

A feature with an infinite length-scale is switched off. With K0 the radial part of the covariance and G the derivative
of the log evidence L by the covariance matrix, the slope at the point where feature j would enter is

.. math:: \frac{\partial L}{\partial (1 / l_j^2)} = x_j^T (W - \mathrm{diag}(W 1))\, x_j, \qquad W = G \circ K_0 ,

for all features in O(n^2 p). It sees linear effects only. With K0 o (1 + e sum_r c_r phi_r phi_r^T) in its place, where
phi_r are orthonormal polynomials of the feature's normal scores, curved effects are seen as well. Divided by its
standard deviation under noise the slope is a score that compares across features and steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from gpsift.gp.inference import Slope

# Weights c_r of Hermite polynomials of degree 1, 2 and 3.
DEGREE_WEIGHTS = (1.0, 0.5, 0.2)


def normal_scores(X: np.ndarray) -> np.ndarray:
    """Each column as the quantiles of a standard normal that its ranks have, ties sharing theirs."""
    return ndtri((average_ranks(X) - 0.5) / len(X))


def average_ranks(X: np.ndarray) -> np.ndarray:
    """The ranks of each column from 1 on, those of equal values their mean.

    SciPy has them, too, in a package that takes half a second to load.
    """
    order = np.argsort(X, axis=0, kind="stable")
    differs = np.diff(np.take_along_axis(X, order, axis=0), axis=0) != 0
    places = np.broadcast_to(np.arange(len(X))[:, None], X.shape)
    edge = np.ones((1, X.shape[1]), bool)
    first = np.maximum.accumulate(np.where(np.concatenate([edge, differs]), places, 0), axis=0)
    is_last = np.concatenate([differs, edge])
    last = np.minimum.accumulate(np.where(is_last, places, len(X))[::-1], axis=0)[::-1]
    ranks = np.empty(X.shape)
    np.put_along_axis(ranks, order, 0.5 * (first + last) + 1.0, axis=0)
    return ranks


def hermite_features(X: np.ndarray) -> np.ndarray:
    """Hermite polynomials of degree 1, 2 and 3 of the columns' normal scores, standardised, (3, n, p).

    One that does not vary, as those of higher degree of a column with two values, is 0.
    """
    z = normal_scores(X)
    features = np.stack([z, z**2, z**3 - 3.0 * z])
    features -= features.mean(axis=1, keepdims=True)
    sd = features.std(axis=1, keepdims=True)
    return np.divide(features, sd, out=np.zeros_like(features), where=sd > 1e-9)


def inverse_square_slopes(G: np.ndarray, K0: np.ndarray, X: np.ndarray) -> np.ndarray:
    """dL / d(1 / l_j^2) where 1 / l_j^2 = 0, for every column of X, (p,)."""
    W = G * K0
    return np.einsum("ij,ij->j", X, W @ X) - W.sum(axis=1) @ X**2


def entering_scores(G: np.ndarray, K0: np.ndarray, features: np.ndarray) -> np.ndarray:
    """The slope of the log evidence as each feature enters, in its standard deviations under noise, (p,)."""
    W = G * K0
    np.fill_diagonal(W, 0.0)
    slopes = [c * np.einsum("ij,ij->j", phi, W @ phi) for c, phi in zip(DEGREE_WEIGHTS, features, strict=True)]
    spread = 2.0 * np.sum(W**2) * np.sum(np.square(DEGREE_WEIGHTS))
    return np.sum(slopes, axis=0) / np.sqrt(spread) if spread > 0 else np.zeros(features.shape[2])


def unit_scores(scores: np.ndarray, units: Sequence[Sequence[int]]) -> np.ndarray:
    """Scores of units of several features: their sum, in standard deviations that independent ones would have."""
    if all(len(columns) == 1 for columns in units):
        return scores[[columns[0] for columns in units]]
    return np.array([scores[list(columns)].sum() / np.sqrt(len(columns)) for columns in units])


def promising_pairs(weights: np.ndarray, z: np.ndarray, active: Sequence[int], n_pairs: int) -> list[tuple[int, int]]:
    """Pairs of features whose product goes along with what the model leaves: the largest |sum_i w_i z_ij z_ik|.

    Parameters
    ----------
    weights : array (n,) or (n, C)
        Of the posterior mean: what the observations still pull at.
    z : array (n, p)
        Normal scores.
    active : sequence of int
        Pairs of two of these are left out: they are together already.
    n_pairs : int
    """
    columns = weights[:, None] if weights.ndim == 1 else weights
    pull = np.sum([np.abs((z * w[:, None]).T @ z) for w in columns.T], axis=0)
    pull = np.triu(pull, k=1)
    pull[np.ix_(active, active)] = 0.0
    largest = np.argsort(-pull, axis=None)[:n_pairs]
    return [(int(j), int(k)) for j, k in zip(*np.unravel_index(largest, pull.shape), strict=True) if pull[j, k] > 0]


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
