r"""Compute variances of the parts of a function of independent units in closed form.

A function of independent units is a sum of parts, one for each set u of units, each with mean 0 along every unit of its
set (analysis of variance; Hoeffding 1948, Sobol 1993). With c_k the weight of support point k times the variance of the
kernel, and in the notation of `gpsift.decomposition.products`

.. math::
    D_j = \int d_j d_j^T d\mu_j , \qquad A_j = a_j a_j^T , \qquad B_j = A_j + D_j ,

all (m, m), the variances of the mean's parts are

.. math::
    V_u = c^T \Big( \bigcirc_{j \in u} D_j \bigcirc_{j \notin u} A_j \Big) c .

No sum over sets needs 2^p terms. The matrix between c^T and c is :math:`D_j \bigcirc_{i \ne j} B_i` for all sets with
j, and :math:`D_i \circ D_j \bigcirc_{k \ne i, j} B_k` for all sets with i and j. For Shapley's share, in which the
variance of each set with j is divided by its size, it is :math:`\int_0^1 D_j \bigcirc_{i \ne j} (A_i + t D_i) \, dt`.
The integrand is a polynomial of degree p - 1 in t: Gauss-Legendre quadrature with ceil(p / 2) nodes is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gpsift._utils.quadrature import gauss_legendre
from gpsift.decomposition.products import Products, UnitProductTerm

# The largest number of doubles in the matrices of all units for one block of support points.
BLOCK_DOUBLES = 2**19
# Factors that underflow are set to this number, because they are divisors. It is too small to change a sum.
SMALLEST_FACTOR = 1e-100


@dataclass(frozen=True, eq=False)
class Variances:
    """Variances of parts of the posterior mean, in squared units of the model.

    `pairs` has the sum over all sets with both of two units, and `undecided_pairs` the excess of the posterior
    expectation of this sum: the part that the data have not decided. `undecided_pairs` and `shapley` are optional.
    """

    first: np.ndarray  # (p,)
    total: np.ndarray  # (p,)
    whole: np.ndarray  # (), the variance of the function
    pairs: np.ndarray  # (p, p), 0 on the diagonal
    shapley: np.ndarray | None = None  # (p,), which add up to the whole
    undecided_pairs: np.ndarray | None = None  # (p, p)


@dataclass(frozen=True, eq=False)
class SupportBlock:
    """Blocks of the matrices D, A and B between some support points and others, for two terms of the kernel."""

    D: np.ndarray  # (p, r, s)
    A: np.ndarray
    B: np.ndarray
    mean_weights: np.ndarray  # c c^T, times the number of blocks that are equal to this one
    undecided_weights: np.ndarray | None  # as `mean_weights`, from M instead of the weights of support points


def variances(products: Products, *, shapley: bool = True, undecided_pairs: bool = False) -> Variances:
    """Compute first-order, total and Shapley variances of all units, and the variances of all pairs."""
    p = len(products.varying)
    total, shares, pairs, explained, whole = np.zeros(p), np.zeros(p), np.zeros((p, p)), np.zeros((p, p)), 0.0
    for block in _make_blocks(products, undecided_pairs) if p else ():
        product = np.multiply.reduce(block.B)
        ratio = block.D / block.B
        weighted = block.mean_weights * product
        total += ratio.reshape(p, -1) @ weighted.ravel()
        pairs += _pair_products(ratio, weighted)
        whole += _total_variance(block)
        if shapley:
            shares += _shapley_variances(block)
        if block.undecided_weights is not None:
            explained += _pair_products(ratio, block.undecided_weights * product)
    np.fill_diagonal(pairs, 0.0)
    undecided = _prior_pairs(products) - explained if undecided_pairs else None
    of_products = _first_order_parts(products)
    first = [values + products.linear_part(unit) for unit, values in enumerate(of_products)]
    # Linear terms have no interactions: they change only the parts of single units.
    linear = _sums_of_squares(first) - _sums_of_squares(of_products)
    return Variances(
        first=_sums_of_squares(first),
        total=total + linear,
        whole=np.asarray(whole + linear.sum()),
        pairs=pairs,
        shapley=shares + linear if shapley else None,
        undecided_pairs=undecided,
    )


def legendre_nodes(n_units: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights on [0, 1] that integrate polynomials of degree n_units - 1 exactly."""
    return gauss_legendre(max(1, (n_units + 1) // 2), 0.0, 1.0)


def _first_order_parts(products: Products) -> list[np.ndarray]:
    """Compute each unit's part of the product terms, at the nodes of its margin, times the roots of their weights."""
    found = [np.zeros(len(margin.weights)) for margin in products.margins]
    for unit, values in enumerate(found):
        for term in products.terms:
            others = np.delete(term.averages, unit, axis=0).prod(axis=0)
            values += (term.variance * products.triple.weights * others) @ term.factors[unit].deviation
    return found


def _sums_of_squares(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.array([values @ values for values in parts])


def _pair_products(ratio: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Sum weights ratio_i ratio_j over pairs of support points, (p, p)."""
    flat = ratio.reshape(len(ratio), -1)
    found = (flat * weights.ravel()) @ flat.T
    return 0.5 * (found + found.T)  # symmetric up to rounding


def _total_variance(block: SupportBlock) -> float:
    """Compute the product of all B less that of all A, unit by unit, which avoids cancellation."""
    before, found = block.mean_weights.copy(), np.zeros_like(block.mean_weights)
    for D, A, B in zip(block.D, block.A, block.B, strict=True):
        found *= B
        found += before * D
        before *= A
    return float(found.sum())


def _shapley_variances(block: SupportBlock) -> np.ndarray:
    share = np.zeros(len(block.D))
    for t, weight in zip(*legendre_nodes(len(block.D)), strict=True):
        factors = t * block.D
        factors += block.A
        _replace_zeros(factors)
        whole = np.multiply.reduce(factors) * block.mean_weights
        np.divide(block.D, factors, out=factors)
        share += weight * (factors.reshape(len(share), -1) @ whole.ravel())
    return share


def _prior_pairs(products: Products) -> np.ndarray:
    """Compute the prior expectation of the variance of each pair."""
    drops = [[-factor.own_excess for factor in term.factors] for term in products.terms]
    drop = np.array(drops).reshape(len(products.terms), len(products.varying))
    shares = np.array([term.variance for term in products.terms])
    return (drop.T * shares) @ drop


def _make_blocks(products: Products, with_undecided: bool) -> Iterator[SupportBlock]:
    """Make the blocks of all pairs of support points in all pairs of terms."""
    m, p = len(products.triple.weights), len(products.varying)
    rows = max(1, BLOCK_DOUBLES // (m * p))
    for number, left in enumerate(products.terms):
        for right in products.terms[number:]:
            for start in range(0, m, rows):
                # The matrices are symmetric: blocks off the diagonal are computed once and count twice.
                yield _make_block(products, left, right, slice(start, start + rows), with_undecided)


def _make_block(
    products: Products, left: UnitProductTerm, right: UnitProductTerm, rows: slice, with_undecided: bool
) -> SupportBlock:
    is_own = left is right
    columns = slice(rows.start if is_own else 0, None)
    factors = list(zip(left.factors, right.factors, strict=True))
    D = np.stack([a.deviation[rows] @ b.deviation[columns].T for a, b in factors])
    B = np.stack([a.value[rows] @ b.value[columns].T for a, b in factors])
    A = left.averages[:, rows, None] * right.averages[:, None, columns]
    times = np.full(D.shape[1:], 2.0 * left.variance * right.variance)
    if is_own:
        times[:, : D.shape[1]] *= 0.5
    w = products.triple.weights
    undecided_weights = times * products.triple.M[rows, columns] if with_undecided else None
    return SupportBlock(D, A, _replace_zeros(B), times * np.outer(w[rows], w[columns]), undecided_weights)


def _replace_zeros(factors: np.ndarray) -> np.ndarray:
    """Replace factors that underflow by a small number, in place."""
    return np.maximum(factors, SMALLEST_FACTOR, out=factors)
