r"""Kernels as sums of products of functions of one feature each.

A squared exponential is a product over the features, and averages of a product over independent features are products
of averages. A constant is a product of ones. Matern kernels and the rational quadratic are averages of squared
exponentials whose squared length-scales, or their inverses, follow a gamma distribution,

.. math::
    k_\nu(s) = \mathrm{E} \exp(-\nu s / (2 g)), \quad g \sim \mathrm{Gamma}(\nu, 1) , \qquad
    (1 + s / (2 \alpha))^{-\alpha} = \mathrm{E} \exp(-g s / (2 \alpha)), \quad g \sim \mathrm{Gamma}(\alpha, 1) ,

and so sums of some of them. Nodes are even in log g, where the trapezoidal rule converges geometrically; those of
Gauss-Laguerre are wrong by 1e-3, since the first of these functions is not smooth at g = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammainccinv, gammaincinv, gammaln

# Squared exponentials that stand for a mixture, and how far their sum may be from it, for a variance of 1.
N_MIXED = 32
LARGEST_ERROR = 1e-5
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


def gamma_mixture(shape: float, n_nodes: int = N_MIXED) -> tuple[np.ndarray, np.ndarray] | None:
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


def mixed_terms(
    variance: float, lengthscale: np.ndarray, mixture: tuple[np.ndarray, np.ndarray] | None
) -> tuple[ProductTerm, ...] | None:
    """Squared exponentials with multiples of the squared length-scale, which a mixture (multiples, weights) has."""
    if mixture is None:
        return None
    return tuple(
        ProductTerm(variance * weight, lengthscale * np.sqrt(times)) for times, weight in zip(*mixture, strict=True)
    )
