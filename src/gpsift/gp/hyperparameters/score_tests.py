r"""Score tests of inactive features: the slope of the log evidence as a feature enters the model.

An inactive feature has an infinite length-scale. If its entry adds a small multiple of a matrix M to the covariance,
the slope of the log evidence L is

.. math:: \frac{\partial L}{\partial M} = \mathrm{tr}(G M) = \tfrac12 [w^T M w - \mathrm{tr}(P M)] ,

where G is the derivative of L by the covariance matrix, w are the weights of the posterior mean and P is the precision
of the observations: w is N(0, P) if the model holds. This slope in units of its standard deviation is a score statistic
that compares across features and effects.

**As a feature enters** (`entry_scores`). With K0 the radial part of the covariance, the slope at an infinite
length-scale is

.. math:: \frac{\partial L}{\partial (1 / l_j^2)} = x_j^T (W - \mathrm{diag}(W 1))\, x_j, \qquad W = G \circ K_0 ,

for all features in O(n^2 p). It is sensitive to linear effects only. It is sensitive to curved effects, too, if
:math:`K_0 \circ (1 + e \sum_r c_r \phi_r \phi_r^T)` takes the place of the kernel, where :math:`\phi_r` are
orthonormal polynomials of the feature's normal scores.

**Over several effects** (`feature_scores`). The largest score is taken over polynomials of the feature, of which the
linear one is adjusted for linear effects of all other inactive features; nonlinear effects of any shape, on top of
those of the active features; and products with another feature. It costs O(n^2) for each feature, and orders features
whose entry scores are all near 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from gpsift.gp.hyperparameters.problem import Problem
from gpsift.gp.inference import DenseInference, Slope

# Weights c_r of Hermite polynomials of degree 1, 2 and 3.
DEGREE_WEIGHTS = (1.0, 0.5, 0.2)
# Length-scales, in standard deviations, of nonlinear effects; each is twice the one before.
NONLINEAR_LENGTHSCALES = (0.5, 1.0, 2.0, 4.0)
# Features that are tested for nonlinear effects: those with the largest other scores.
N_NONLINEAR = 50
# Rows of the matrices of these tests that are handled together: a quarter of a megabyte of a thousand columns.
BLOCK_ROWS = 32
# The largest square of p standard normal numbers rarely exceeds 2 log p by this; both are subtracted for the best pair.
PAIR_MARGIN = 3.0


def normal_scores(X: np.ndarray) -> np.ndarray:
    """Replace each column by the quantiles of a standard normal at its ranks; ties share theirs."""
    return ndtri((average_ranks(X) - 0.5) / len(X))


def average_ranks(X: np.ndarray) -> np.ndarray:
    """Rank each column from 1 on; equal values have their mean rank.

    `scipy.stats.rankdata` does the same, but loading it takes half a second, and every default fit needs ranks.
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
    """Return Hermite polynomials of degree 1, 2 and 3 of the columns' normal scores, standardised, (3, n, p).

    One that does not vary, as those of higher degree of a column with two values, is 0.
    """
    z = normal_scores(X)
    features = np.stack([z, z**2, z**3 - 3.0 * z])
    features -= features.mean(axis=1, keepdims=True)
    sd = features.std(axis=1, keepdims=True)
    return np.divide(features, sd, out=np.zeros_like(features), where=sd > 1e-9)


def inverse_square_slopes(G: np.ndarray, K0: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return dL / d(1 / l_j^2) where 1 / l_j^2 = 0, for every column of X, (p,)."""
    W = G * K0
    return np.einsum("ij,ij->j", X, W @ X) - W.sum(axis=1) @ X**2


def entry_scores(G: np.ndarray, K0: np.ndarray, features: np.ndarray) -> np.ndarray:
    """Return the score statistic of each feature as it enters with its polynomials (3, n, p), (p,)."""
    W = G * K0
    np.fill_diagonal(W, 0.0)
    slopes = [c * np.einsum("ij,ij->j", phi, W @ phi) for c, phi in zip(DEGREE_WEIGHTS, features, strict=True)]
    spread = 2.0 * np.sum(W**2) * np.sum(np.square(DEGREE_WEIGHTS))
    return np.sum(slopes, axis=0) / np.sqrt(spread) if spread > 0 else np.zeros(features.shape[2])


def group_scores(scores: np.ndarray, groups: Sequence[Sequence[int]]) -> np.ndarray:
    """Return scores of groups of features: sums, divided by the standard deviation of sums of independent scores."""
    if all(len(columns) == 1 for columns in groups):
        return scores[[columns[0] for columns in groups]]
    return np.array([scores[list(columns)].sum() / np.sqrt(len(columns)) for columns in groups])


def best_pairs(weights: np.ndarray, z: np.ndarray, active: Sequence[int], n_pairs: int) -> list[tuple[int, int]]:
    """Return the pairs of features whose products correlate most with the residual, by |sum_i w_i z_ij z_ik|.

    Weights are (n,) or (n, C), normal scores z (n, p). Two active features are a pair already.
    """
    columns = weights[:, None] if weights.ndim == 1 else weights
    pull = np.sum([np.abs((z * w[:, None]).T @ z) for w in columns.T], axis=0)
    pull = np.triu(pull, k=1)
    pull[np.ix_(active, active)] = 0.0
    largest = np.argsort(-pull, axis=None)[:n_pairs]
    return [(int(j), int(k)) for j, k in zip(*np.unravel_index(largest, pull.shape), strict=True) if pull[j, k] > 0]


def radial_covariance_and_slope(problem: Problem[DenseInference], log_params: np.ndarray) -> tuple[np.ndarray, Slope]:
    """Return the radial part of the covariance, and the derivative of the log evidence by the whole."""
    kernel, likelihood = problem.split(log_params)
    radial = [term.between(problem.X, problem.X).K for term in kernel.parts if term.lengthscales]
    return np.sum(radial, axis=0), problem.engine.slope(kernel, likelihood)


@dataclass(frozen=True, eq=False)
class ScoreInputs:
    """Inputs of score statistics: a model's residual, and the features that are tested."""

    slope: Slope  # the weights w of the posterior mean, and G
    K0: np.ndarray  # the radial part of the covariance
    X: np.ndarray
    features: np.ndarray  # polynomials of the columns of X, (3, n, p)
    active: Sequence[int] = ()
    with_pairs: bool = False

    @property
    def weights(self) -> np.ndarray:
        return self.slope.weights

    @cached_property
    def precision(self) -> np.ndarray:
        return np.outer(self.weights, self.weights) - 2.0 * self.slope.G

    @cached_property
    def is_inactive(self) -> np.ndarray:
        inactive = np.ones(self.X.shape[1], bool)
        inactive[list(self.active)] = False
        return inactive


def feature_scores(inputs: ScoreInputs) -> np.ndarray:
    """Return the largest score statistic of each feature over the effects that it may have, (p,)."""
    if inputs.weights.ndim > 1:  # several classes share no precision
        return entry_scores(inputs.slope.G, inputs.K0, inputs.features)
    scores = polynomial_scores(inputs)
    if inputs.with_pairs:
        scores = np.maximum(scores, pair_scores(inputs))
    largest = [j for j in np.argsort(-scores) if inputs.is_inactive[j]][:N_NONLINEAR]
    scores[largest] = np.maximum(scores[largest], nonlinear_scores(inputs, largest))
    return scores


def polynomial_scores(inputs: ScoreInputs) -> np.ndarray:
    """Return weighted scores of degree 1, adjusted for other inactive features, and of degrees 2 and 3, (p,)."""
    w, P = inputs.weights, inputs.precision
    line, *curves = inputs.features
    others = line[:, inputs.is_inactive]
    squares = [adjusted_squared_scores(w, P, line, others), *(squared_scores(w, P, curve) for curve in curves)]
    c = np.array(DEGREE_WEIGHTS)
    return (c @ squares - c.sum()) / np.sqrt(2.0 * np.sum(c**2))


def squared_scores(w: np.ndarray, P: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """Return (phi^T w)^2 of each column divided by its variance phi^T P phi, (p,)."""
    return divide((phi.T @ w) ** 2, np.einsum("ij,ij->j", phi, P @ phi))


def adjusted_squared_scores(w: np.ndarray, P: np.ndarray, phi: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return `squared_scores` given random slopes of the columns `others`, of the variance of the residual, (p,)."""
    n, p = phi.shape
    return squared_scores(w, P, adjust(others, P @ others, n / (p * np.trace(P)), phi))


def adjust(others: np.ndarray, weighted: np.ndarray, slope_var: float, phi: np.ndarray) -> np.ndarray:
    """Return (1 + slope_var others weighted^T)^-1 phi, by a system of the size of the rows or of the others."""
    n, n_others = others.shape
    if n_others > n:
        return np.linalg.solve(np.eye(n) + slope_var * others @ weighted.T, phi)
    core = np.eye(n_others) / slope_var + weighted.T @ others
    return phi - others @ np.linalg.solve(core, weighted.T @ phi)


def nonlinear_scores(inputs: ScoreInputs, columns: Sequence[int]) -> np.ndarray:
    """Return the largest score over length-scales, of K0 times a squared exponential of each of the columns.

    Standard deviations approximate the precision by its diagonal. The matrices are symmetric: their lower
    triangles are summed by blocks of rows, which stay in the processor's cache.
    """
    w, P, K0 = inputs.weights, inputs.precision, inputs.K0
    sd = np.sqrt(np.abs(np.diag(P)))
    z = [inputs.X[:, j] / (inputs.X[:, j].std() or 1.0) / NONLINEAR_LENGTHSCALES[-1] for j in columns]
    sums = np.zeros((len(z), len(NONLINEAR_LENGTHSCALES), 2))
    for start in range(0, len(w), BLOCK_ROWS):
        rows, below = slice(start, start + BLOCK_ROWS), slice(0, start + BLOCK_ROWS)
        pull = K0[rows, below] * (np.outer(w[rows], w[below]) - P[rows, below])
        spread = (K0[rows, below] * np.outer(sd[rows], sd[below])) ** 2
        counts = np.tril(np.ones_like(pull), start) + np.tril(np.ones_like(pull), start - 1)  # 2 below the diagonal
        pull, spread = pull * counts, spread * counts
        for x, of_x in zip(z, sums, strict=True):
            kappa = np.exp(-0.5 * np.subtract.outer(x[rows], x[below]) ** 2)
            for of_lengthscale in of_x:  # the longest first: half the length-scale is the fourth power
                squared = kappa * kappa
                of_lengthscale += np.vdot(pull, kappa), np.vdot(spread, squared)
                kappa = squared * squared
    pulls, spreads = np.moveaxis(sums, -1, 0)
    return divide(pulls, np.sqrt(2.0 * spreads)).max(axis=1)


def pair_scores(inputs: ScoreInputs) -> np.ndarray:
    """Return the score of the product of each feature with the best other one, (p,).

    The largest value of p products by chance is subtracted. The precision is approximated by its diagonal.
    """
    z, w, r = inputs.features[0], inputs.weights, np.diag(inputs.precision)
    n, p = z.shape
    mean = z.T @ z / n
    pull = (z * w[:, None]).T @ z - mean * w.sum()
    spread = (z**2 * r[:, None]).T @ z**2 - 2.0 * mean * ((z * r[:, None]).T @ z) + mean**2 * r.sum()
    squares = divide(pull**2, spread)
    np.fill_diagonal(squares, 0.0)
    return (squares.max(axis=1) - 2.0 * np.log(p) - PAIR_MARGIN) / np.sqrt(2.0)


def divide(values: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Return the ratio of two arrays, 0 where the denominator is not positive."""
    return np.divide(values, units, out=np.zeros_like(np.asarray(values, float)), where=np.asarray(units) > 0)
