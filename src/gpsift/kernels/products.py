r"""Kernels as sums of products of functions of one feature each.

A squared exponential is a product over the features, and averages of a product over independent features are products
of averages. A constant is a product of ones. Matern kernels and the rational quadratic are averages of squared
exponentials whose squared length-scales, or their inverses, follow a gamma distribution,

.. math::
    k_\nu(s) = \mathrm{E} \exp(-\nu s / (2 g)), \quad g \sim \mathrm{Gamma}(\nu, 1) , \qquad
    (1 + s / (2 \alpha))^{-\alpha} = \mathrm{E} \exp(-g s / (2 \alpha)), \quad g \sim \mathrm{Gamma}(\alpha, 1) ,

and so sums of some of them. Nodes are even in log g, where the trapezoidal rule converges geometrically; those of
Gauss-Laguerre are wrong by 1e-3, since the first of these functions is not smooth at g = 0.

Of these nodes few are needed. With weights w_i and squared length-scales t_i, sum_i w_i exp(-s / (2 t_i)) is the square
of the vector v(s) = (w_i^1/2 exp(-s / (4 t_i))). Where v(s) is near a space of dimension r for all s, the sum is near
one of r terms: with V a basis of that space and V^T diag(log t) V = Q diag(log t') Q^T, its squared length-scales are
t', and its weights the squares of Q^T V^T v(0). Polynomials in log t as that space would give Gauss quadrature, which
needs twice as many terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import gammainccinv, gammaincinv, gammaln

# Nodes of a mixture; squared exponentials that stand for it, at most; how far their sum should be from it for a
# variance of 1, and how far it may be.
N_NODES = 128
N_MIXED = 32
WANTED_ERROR = 3e-8
LARGEST_ERROR = 1e-5
# Squared distances at which they are compared, in length-scales.
COMPARED = np.concatenate([[0.0], np.logspace(-5, 6, 160)])
# The error of the trapezoidal rule over its geometric part, as seen for Matern kernels and the rational quadratic.
SOME = 30.0


@dataclass(frozen=True, eq=False)
class ProductTerm:
    """variance prod_j exp(-((x_j - z_j) / lengthscale_j)^2 / 2); features without a part have infinite length-scales.

    Parameters
    ----------
    variance : float
    lengthscale : array (p,)
    """

    variance: float
    lengthscale: np.ndarray

    def varies_with(self, columns: Sequence[int]) -> bool:
        """Whether it depends on any of these features."""
        return bool(np.isfinite(self.lengthscale[list(columns)]).any())

    def squared_distance(self, columns: Sequence[int], X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Over some features, in length-scales: X (n, k) and Z (m, k) hold these columns only; an (n, m) array."""
        total = np.zeros((len(X), len(Z)))
        for x, z, lengthscale in zip(X.T, Z.T, self.lengthscale[list(columns)], strict=True):
            if np.isfinite(lengthscale):
                total += ((x[:, None] - z) / lengthscale) ** 2
        return total

    def excess(self, columns: Sequence[int], X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """The factors of some features together, less 1: for long length-scales that is what digits are needed of."""
        distance = self.squared_distance(columns, X, Z)
        distance *= -0.5
        return np.expm1(distance, out=distance)


def gamma_nodes(shape: float, n_nodes: int = N_NODES) -> tuple[np.ndarray, np.ndarray] | None:
    """Nodes and weights for averages over g ~ Gamma(shape, 1); None where these are too few for the distribution."""
    # What lies beyond the ends is lost, and the trapezoidal rule is wrong by some exp(-pi^2 / step): the least of both.
    tails = np.logspace(-15, -3, 49)
    low, high = np.log(gammaincinv(shape, tails)), np.log(gammainccinv(shape, tails))
    errors = np.maximum(tails, SOME * np.exp(-(np.pi**2) * (n_nodes - 1) / (high - low)))
    best = int(np.nanargmin(errors))
    if not errors[best] <= LARGEST_ERROR:
        return None
    log_g = np.linspace(low[best], high[best], n_nodes)
    weights = np.exp(shape * log_g - np.exp(log_g) - gammaln(shape))
    return np.exp(log_g), weights / weights.sum()


def fewer_terms(
    times: np.ndarray, weights: np.ndarray, n_terms: int, axes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A sum of n_terms squared exponentials near one with these squared length-scales; see `principal_axes`."""
    basis = axes[:n_terms].T
    log_times, turned = np.linalg.eigh(basis.T @ (np.log(times)[:, None] * basis))
    fewer = (turned.T @ (basis.T @ np.sqrt(weights))) ** 2
    return np.exp(log_times), fewer / fewer.sum()


def principal_axes(times: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Principal axes of v(s) over all squared distances, the longest first, in rows."""
    vectors = np.sqrt(weights) * np.exp(np.multiply.outer(COMPARED, -0.25 / times))
    return np.linalg.svd(vectors, full_matrices=False)[2]


def sum_of_exponentials(times: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """At all squared distances."""
    return np.exp(np.multiply.outer(COMPARED, -0.5 / times)) @ weights


def reduced(times: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Approximate a mixture by as few squared exponentials as possible; None where too many would be needed."""
    axes, whole = principal_axes(times, weights), sum_of_exponentials(times, weights)
    found, error = (times, weights), np.inf
    for n_terms in range(1, min(N_MIXED, len(times)) + 1):
        found = fewer_terms(times, weights, n_terms, axes)
        error = float(np.abs(sum_of_exponentials(*found) - whole).max())
        if error <= WANTED_ERROR:
            break
    return found if error <= LARGEST_ERROR else None


@cache
def matern_mixture(order: float) -> tuple[np.ndarray, np.ndarray] | None:
    """Multiples of the squared length-scale, and weights, of the squared exponentials that make a Matern kernel."""
    nodes = gamma_nodes(order)
    return nodes and reduced(nodes[0] / order, nodes[1])


def rational_quadratic_mixture(shape: float) -> tuple[np.ndarray, np.ndarray] | None:
    """Multiples and weights of the squared exponentials that make a rational quadratic kernel."""
    nodes = gamma_nodes(shape)
    return nodes and reduced(shape / nodes[0], nodes[1])


def mixed_terms(
    variance: float, lengthscale: np.ndarray, mixture: tuple[np.ndarray, np.ndarray] | None
) -> tuple[ProductTerm, ...] | None:
    """Squared exponentials with multiples of the squared length-scale, which a mixture (multiples, weights) has."""
    if mixture is None:
        return None
    return tuple(
        ProductTerm(variance * weight, lengthscale * np.sqrt(times)) for times, weight in zip(*mixture, strict=True)
    )
