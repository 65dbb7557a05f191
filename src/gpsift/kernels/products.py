r"""Kernels as sums of products over features, each factor a function of one feature.

A squared exponential is a product over the features, and averages of a product over independent features are products
of averages. A constant is a product of ones. Matérn kernels and the rational quadratic are averages of squared
exponentials whose squared length-scales, or their inverses, follow a gamma distribution,

.. math::
    k_\nu(s) = \mathrm{E} \exp(-\nu s / (2 g)), \quad g \sim \mathrm{Gamma}(\nu, 1) , \qquad
    (1 + s / (2 \alpha))^{-\alpha} = \mathrm{E} \exp(-g s / (2 \alpha)), \quad g \sim \mathrm{Gamma}(\alpha, 1) ,

and a quadrature rule turns each average into a sum. Nodes are even in log g, where the trapezoidal rule converges
geometrically; Gauss-Laguerre rules err by 1e-3, since the first integrand is not smooth at g = 0.

A shorter sum is as accurate. With weights w_i and squared length-scales t_i, sum_i w_i exp(-s / (2 t_i)) is |v(s)|^2,
v(s) the vector of w_i^1/2 exp(-s / (4 t_i)). If v(s) is near a space of dimension r for all s, the sum is near a sum of
r terms: with V a basis of that space and V^T diag(log t) V = Q diag(log t') Q^T, its squared length-scales are t', and
its weights the squares of Q^T V^T v(0). With polynomials in log t as the space this is Gauss quadrature, which needs
twice as many terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from gpsift._utils.quadrature import gamma_nodes

# Nodes of the quadrature rule, and the largest number of terms of the shorter sum.
N_NODES = 128
N_MIXED = 32
# The error of the shorter sum at a variance of 1 that is enough, and the largest that is accepted.
WANTED_ERROR = 3e-8
LARGEST_ERROR = 1e-5
# Squared distances at which the two sums are compared, in length-scales.
COMPARED = np.concatenate([[0.0], np.logspace(-5, 6, 160)])


@dataclass(frozen=True, eq=False)
class ProductTerm:
    """The kernel variance prod_j exp(-((x_j - z_j) / lengthscale_j)^2 / 2), constant along infinite length-scales."""

    variance: float
    lengthscale: np.ndarray  # (p,)

    def varies_with(self, columns: Sequence[int]) -> bool:
        """Whether the term depends on any of these features."""
        return bool(np.isfinite(self.lengthscale[list(columns)]).any())

    def squared_distance(self, columns: Sequence[int], X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return squared distances (n, m) over some features, in length-scales; X and Z hold these columns only."""
        total = np.zeros((len(X), len(Z)))
        for x, z, lengthscale in zip(X.T, Z.T, self.lengthscale[list(columns)], strict=True):
            if np.isfinite(lengthscale):
                total += ((x[:, None] - z) / lengthscale) ** 2
        return total

    def excess(self, columns: Sequence[int], X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return the product of the factors of some features, minus 1, to full precision for long length-scales."""
        distance = self.squared_distance(columns, X, Z)
        distance *= -0.5
        return np.expm1(distance, out=distance)


def reduce_mixture(times: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Approximate a mixture by as few squared exponentials as possible; None where too many would be needed."""

    def total(times: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return np.exp(np.multiply.outer(COMPARED, -0.5 / times)) @ weights

    vectors = np.sqrt(weights) * np.exp(np.multiply.outer(COMPARED, -0.25 / times))
    axes = np.linalg.svd(vectors, full_matrices=False)[2]  # principal axes of v(s), the longest first, in rows
    whole, fewer, error = total(times, weights), (times, weights), np.inf
    for n_terms in range(1, min(N_MIXED, len(times)) + 1):
        V = axes[:n_terms].T
        log_times, Q = np.linalg.eigh(V.T @ (np.log(times)[:, None] * V))
        squares = (Q.T @ (V.T @ np.sqrt(weights))) ** 2
        fewer = np.exp(log_times), squares / squares.sum()
        error = float(np.abs(total(*fewer) - whole).max())
        if error <= WANTED_ERROR:
            break
    return fewer if error <= LARGEST_ERROR else None


@cache
def matern_mixture(order: float) -> tuple[np.ndarray, np.ndarray] | None:
    """Return multiples of the squared length-scale, and weights, of squared exponentials that make a Matérn kernel."""
    nodes = gamma_nodes(order, N_NODES, LARGEST_ERROR)
    return nodes and reduce_mixture(nodes[0] / order, nodes[1])


def rational_quadratic_mixture(shape: float) -> tuple[np.ndarray, np.ndarray] | None:
    """Return multiples and weights of squared exponentials that make a rational quadratic kernel."""
    nodes = gamma_nodes(shape, N_NODES, LARGEST_ERROR)
    return nodes and reduce_mixture(shape / nodes[0], nodes[1])
