r"""Shapley values of single predictions, in closed form, with what the data leave open of them.

The value of unit j at x is what it adds to the prediction, averaged over the orders in which the units of x come to be
known while the others are drawn from their margins. As an operator on functions, with delta the value at x and mu the
average over a margin,

.. math::
    \phi_j = \int_0^1 (\delta_j - \mu_j) \bigotimes_{i \ne j} \big( t \, \delta_i + (1 - t) \, \mu_i \big) \, dt ,

a polynomial of degree p - 1 in t (Owen 1972). Applied to k(., z_k) it is l_kj, a product over units; the posterior mean
of the value is l w, and its variance is the operator applied twice to the prior covariance, less l M l^T. It is linear
in the function, so that the values of a row add up to its prediction less the average.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from gpsift._utils.rows import row_chunks
from gpsift.decomposition.products import Products, ProductTermOfUnits
from gpsift.decomposition.variances import SMALLEST_FACTOR, legendre

# What the factors of all units take for one block of rows.
BLOCK_BYTES = 2**23


class ValuesAndVariances(NamedTuple):
    """Posterior means and variances, (n, p) each, in the units of the model."""

    mean: np.ndarray
    var: np.ndarray


def shapley_values(products: Products, X: np.ndarray) -> ValuesAndVariances:
    """Of the units at the rows of X, which holds all columns as the model sees them."""
    n, p = len(X), len(products.varying)
    mean, var = np.empty((n, p)), np.empty((n, p))
    for rows in row_chunks(n, p * len(products.weights), BLOCK_BYTES) if p else ():
        sections, prior = _of_lines(products, X[rows])
        for term in products.terms:
            sections += term.variance * _sections(term, products.triple.Z, X[rows])
            prior += term.variance * _prior(term, X[rows])
        mean[rows] = (sections @ products.weights).T
        explained = products.triple.explained(sections.reshape(-1, sections.shape[2]))
        var[rows] = (prior - explained.reshape(p, -1)).T
    return ValuesAndVariances(mean, np.maximum(var, 0.0))


def _of_lines(products: Products, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What linear terms have of l_kj, (p, n, m), and of the prior's variance, (p, n)."""
    sections, prior = [], []
    for unit, columns in enumerate(products.columns):
        own = list(columns)
        moved, slope_var = products.from_average(unit, X[:, own]), products.triple.slope_var[own]
        sections.append((moved * slope_var) @ products.triple.Z[:, own].T)
        prior.append(moved**2 @ slope_var)
    return np.stack(sections), np.stack(prior)


def _sections(term: ProductTermOfUnits, Z: np.ndarray, X: np.ndarray) -> np.ndarray:
    """l_kj at each row, without the variance of the term, (p, n, m)."""
    a = term.averages[:, None, :]
    units = list(enumerate(term.columns))
    d = np.stack([term.between(j, X[:, list(own)], Z) - term.factors[j].mean_excess for j, own in units])
    return _over_orders(d, lambda t: a + t * d)


def _prior(term: ProductTermOfUnits, X: np.ndarray) -> np.ndarray:
    """The operator applied twice to the term itself, without its variance, (p, n)."""
    units = list(enumerate(term.columns))
    excess = np.stack(
        [
            term.term.excess(own, X[:, list(own)], term.nodes[j]) @ term.factors[j].weights  # to an independent value
            for j, own in units
        ]
    )
    own_excess = np.array([factor.own_excess for factor in term.factors])[:, None]
    squares = own_excess - 2.0 * excess
    nodes, weights = legendre(len(units))
    total = np.zeros_like(squares)
    for t, weight in zip(nodes, weights, strict=True):
        total += weight * _over_orders(squares, partial(_covariance, t, excess, own_excess))
    return total


def _covariance(t: float, excess: np.ndarray, own_excess: np.ndarray, s: float) -> np.ndarray:
    """Of two mixtures of the value at x and an average over the margin, with shares t and s of the first."""
    return 1.0 + (s + t - 2.0 * s * t) * excess + (1.0 - s) * (1.0 - t) * own_excess


def _over_orders(change: np.ndarray, factors_at: Callable[[float], np.ndarray]) -> np.ndarray:
    """int_0^1 change_j prod_{i != j} factors_i(t) dt, with units along the first axis."""
    total = np.zeros_like(change)
    for t, weight in zip(*legendre(len(change)), strict=True):
        factors = np.maximum(factors_at(t), SMALLEST_FACTOR)
        whole = weight * np.multiply.reduce(factors)
        np.divide(change, factors, out=factors)
        factors *= whole
        total += factors
    return total
