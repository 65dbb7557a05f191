r"""Which feature should be switched on next: slopes of the log evidence for all of them at once.

A feature with an infinite length-scale is switched off. With K0 the radial part of the covariance and G the derivative
of the log evidence L by the covariance matrix, the slope at the point where feature j would enter is

.. math:: \frac{\partial L}{\partial (1 / l_j^2)} = x_j^T (W - \mathrm{diag}(W 1))\, x_j, \qquad W = G \circ K_0 ,

for all features in O(n^2 p). It sees linear effects only. With K0 o (1 + e sum_r c_r phi_r phi_r^T) in its place, where
phi_r are orthonormal polynomials of the feature's normal scores, curved effects are seen as well. Divided by its
standard deviation under noise the slope is a score that compares across features and steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

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
