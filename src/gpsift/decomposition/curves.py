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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpsift.decomposition.triple import ProductTriple
from gpsift.kernels.products import ProductTerm


@dataclass(frozen=True, eq=False)
class Sections:
    """A function along some columns, with those of rows as they are elsewhere: all that curves are made of.

    Parameters
    ----------
    triple : ProductTriple
    columns : sequence of int
        That are set to values.
    grid : array (g, k)
        These values, as the model sees them.
    X : array (n, p)
        Rows, as the model sees them.
    """

    triple: ProductTriple
    columns: Sequence[int]
    grid: np.ndarray
    X: np.ndarray

    def along(self, term: ProductTerm, Z: np.ndarray) -> np.ndarray:
        """The factor of the columns between the grid and other rows, (g, m)."""
        return 1.0 + term.excess(self.columns, self.grid, Z[:, list(self.columns)])

    def across(self, term: ProductTerm, Z: np.ndarray) -> np.ndarray:
        """That of all other columns between the rows and other rows, (n, m)."""
        others = np.delete(np.arange(self.X.shape[1]), list(self.columns)).tolist()
        return 1.0 + term.excess(others, self.X[:, others], Z[:, others])

    def means(self) -> np.ndarray:
        """Of each row at each value, (n, g)."""
        triple = self.triple
        total = np.full((len(self.X), len(self.grid)), triple.level)
        for term in triple.terms:
            total += (term.variance * self.across(term, triple.Z) * triple.weights) @ self.along(term, triple.Z).T
        return total

    def covariance(self, W: np.ndarray) -> np.ndarray:
        """Of the curves sum_i W_ti f(x_i with the columns at t), (g, g)."""
        triple, totals = self.triple, W.sum(axis=1)
        Q = np.outer(triple.constant_var * totals, np.ones(len(triple.weights)))
        prior = triple.constant_var * np.outer(totals, totals)
        for term in triple.terms:
            Q += term.variance * self.along(term, triple.Z) * (W @ self.across(term, triple.Z))
            grid = 1.0 + term.excess(self.columns, self.grid, self.grid)
            prior += term.variance * grid * (W @ self.across(term, self.X) @ W.T)
        return prior - triple.explained_between(Q)


def average_surface(
    triple: ProductTriple, columns: tuple[Sequence[int], Sequence[int]], grids: Sequence[np.ndarray], X: np.ndarray
) -> np.ndarray:
    """The mean with two units set to values, averaged over the rows, (g, h)."""
    both = Sections(triple, [*columns[0], *columns[1]], X[:0, : len(columns[0]) + len(columns[1])], X)
    total = np.full((len(grids[0]), len(grids[1])), triple.level)
    for term in triple.terms:
        weights = term.variance * triple.weights * both.across(term, triple.Z).mean(axis=0)
        first, second = (
            1.0 + term.excess(own, grid, triple.Z[:, list(own)]) for own, grid in zip(columns, grids, strict=True)
        )
        total += (first * weights) @ second.T
    return total
