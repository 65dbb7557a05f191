r"""Average curves along a unit over the rows' own joint distribution, and their posterior covariance.

The curve of unit j at t is a weighted sum over rows, sum_i W_ti f(x_i with unit j set to t); all weights are 1 / n, or
slopes of a response where a curve on its scale is asked for. With kappa_j the factor of the unit and kappa_-j that of
all others, for each term of the kernel,

.. math::
    Q(t) = s \, \kappa_j(t, Z) \circ (W \kappa_{-j}(X, Z))_t , \qquad \mathrm{mean}(t) = Q(t) \, w , \\
    \mathrm{cov}(t, t') = s \, \kappa_j(t, t') \, (W \kappa_{-j}(X, X) W^T)_{t t'} - Q(t) \, M \, Q(t')^T .

It is the band of an average, not an average of bands: what rows do not share averages out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpsift.decomposition.products import Products, ProductTermOfUnits


@dataclass(frozen=True, eq=False)
class Sections:
    """A function along one unit at each row: all that curves are made of.

    Parameters
    ----------
    products : Products
    unit : int
        Among those that vary.
    grid : array (g, k)
        Values of the unit's columns.
    X : array (n, p)
        Rows, as the model sees them.
    """

    products: Products
    unit: int
    grid: np.ndarray
    X: np.ndarray

    def along(self, term: ProductTermOfUnits, Z: np.ndarray) -> np.ndarray:
        """The unit's own factor between the grid and rows, (g, m)."""
        return 1.0 + term.between(self.unit, self.grid, Z)

    def across(self, term: ProductTermOfUnits, Z: np.ndarray) -> np.ndarray:
        """That of all other columns between the rows and others, (n, m)."""
        own = set(term.columns[self.unit])
        others = [column for column in range(self.X.shape[1]) if column not in own]
        return np.exp(-0.5 * term.term.squared_distance(others, self.X[:, others], Z[:, others]))

    def means(self) -> np.ndarray:
        """Of each row at each value, (n, g)."""
        products, w = self.products, self.products.weights
        parts = (
            term.variance * (self.across(term, products.Z) * w) @ self.along(term, products.Z).T
            for term in products.terms
        )
        return sum(parts) + products.constant_var * w.sum()

    def covariance(self, W: np.ndarray) -> np.ndarray:
        """Of the curves sum_i W_ti f(x_i with the unit at t), (g, g)."""
        products = self.products
        totals = W.sum(axis=1)
        Q = products.constant_var * totals[:, None] * np.ones(len(products.weights))
        prior = products.constant_var * np.outer(totals, totals)
        for term in products.terms:
            Q = Q + term.variance * self.along(term, products.Z) * (W @ self.across(term, products.Z))
            grid = 1.0 + term.term.excess(term.columns[self.unit], self.grid, self.grid)
            prior = prior + term.variance * grid * (W @ self.across(term, self.X) @ W.T)
        return prior - products.explained_between(Q)
