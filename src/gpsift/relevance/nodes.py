r"""The values that VAR sets a feature to, around its mean given the others, and their weights.

Under the normal conditional the values are nodes of a quadrature, m_ij + s_j t_q. They reach beyond data that are
bounded or skewed: the outermost of 11 nodes are 5 conditional standard deviations away, a uniform variable ends at 1.7.
Residuals of the training rows have sizes that do occur:

.. math:: m_{ij} + r_{jq} , \qquad r_{jq} \text{ the mean of the q-th of Q equal slices of the sorted } x_{ij} - m_{ij}

over the training rows i, each weighing as much as it has rows. A group takes the residuals of whole rows, which keep
its columns together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np

from gpsift._utils.quadrature import gauss_hermite, gauss_hermite_product, normal_sobol
from gpsift.relevance.conditionals import Conditionals

# A group's conditional is normal in several dimensions: a product rule of at most this many nodes, or this many Sobol
# points (a power of 2).
LARGEST_PRODUCT = 1500
SOBOL_POWER = 10
# Residuals of a group are those of at most this many rows, as many as there are Sobol points.
MOST_RESIDUAL_ROWS = 2**SOBOL_POWER


@dataclass(frozen=True, eq=False)
class Nodes(ABC):
    """Offsets from the conditional means, the same for every row, and their weights."""

    conditionals: Conditionals

    @abstractmethod
    def of_feature(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Offsets of a feature and their weights, (q,) each."""

    @abstractmethod
    def of_group(self, group: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Offsets of several features that move together, (q, k), and their weights, (q,)."""


@dataclass(frozen=True, eq=False)
class NormalNodes(Nodes):
    """Gauss-Hermite quadrature under the normal conditional."""

    n_nodes: int

    def of_feature(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        nodes, weights = gauss_hermite(self.n_nodes)
        return self.conditionals.sd[j] * nodes, weights

    def of_group(self, group: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        nodes, weights = normal_nodes(len(group), self.n_nodes)
        return nodes @ self.conditionals.root(group).T, weights


@dataclass(frozen=True, eq=False)
class ResidualNodes(Nodes):
    """Quantiles of the residuals of a feature, given the others, at the training rows; made by `ResidualNodes.of`."""

    X: np.ndarray  # training inputs, (n, p)
    quantiles: np.ndarray  # (q, p)
    weights: np.ndarray  # (q,)

    @classmethod
    def of(cls, conditionals: Conditionals, X: np.ndarray, n_nodes: int) -> Self:
        """Compute the residuals at the rows of X; there are no more nodes than rows."""
        return cls(conditionals, X, *slice_means(X - conditionals.mean(X), n_nodes))

    def of_feature(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        return self.quantiles[:, j], self.weights

    def of_group(self, group: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        residuals = self.X[:, list(group)] - self.conditionals.mean_of_group(self.X, group)
        chosen = spread_rows(residuals / self.conditionals.sd[list(group)], MOST_RESIDUAL_ROWS)
        return residuals[chosen], equal_weights(len(chosen))


def slice_means(values: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Means of equal slices of each sorted column, (q, p): quantiles that keep the mean, and nearly all of the spread.

    There are `most` slices, or one for each row where these are fewer; beside them the part of the rows in each, (q,).
    Quantiles in the middle of slices, and nodes that are stretched by what slices lose of the variance, are no better.
    """
    n = len(values)
    edges = np.rint(np.linspace(0, n, min(most, n) + 1)).astype(int)
    sizes = np.diff(edges)
    return np.add.reduceat(np.sort(values, axis=0), edges[:-1], axis=0) / sizes[:, None], sizes / n


def spread_rows(values: np.ndarray, most: int) -> np.ndarray:
    """Choose rows that represent all: each of them, or `most` evenly spaced ones along the longest axis."""
    n = len(values)
    if n <= most:
        return np.arange(n)
    axis = np.linalg.eigh(values.T @ values)[1][:, -1]
    return np.argsort(values @ axis, kind="stable")[(2 * np.arange(most) + 1) * n // (2 * most)]


def equal_weights(n: int) -> np.ndarray:
    """Equal weights of n nodes, (n,)."""
    return np.full(n, 1.0 / n)


def normal_nodes(dimension: int, n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (Q, dimension) and weights of the expectation under independent standard normals.

    A product of Gauss-Hermite rules while it is small, a Sobol sequence with a fixed seed after that.
    """
    if n_nodes**dimension <= LARGEST_PRODUCT:
        return gauss_hermite_product(dimension, n_nodes)
    nodes = normal_sobol(dimension, SOBOL_POWER)
    return nodes, equal_weights(len(nodes))
