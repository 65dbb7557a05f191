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
from functools import cached_property
from typing import Self

import numpy as np

from gpsift.decomposition.context import closed_posterior
from gpsift.decomposition.margins import Margin
from gpsift.decomposition.products import ProductTriple
from gpsift.kernels.products import ProductTerm
from gpsift.reference.base import Coupled, MissingCapability, PlacedPosterior, Reference, Response


class RowsOfCurves:
    """Rows that curves are averages over, as the model sees them, and their distances, which all curves share."""

    def __init__(self, triple: ProductTriple, X: np.ndarray):
        self.triple = triple
        self.X = triple.Z if np.array_equal(X, triple.Z) else X

    @cached_property
    def to_support(self) -> list[np.ndarray]:
        """Squared distances to the support points over all columns, for each term, (n, m)."""
        return self._distances(self.triple.Z)

    @cached_property
    def to_rows(self) -> list[np.ndarray]:
        """Those between the rows, (n, n)."""
        return self.to_support if self.X is self.triple.Z else self._distances(self.X)

    def _distances(self, Z: np.ndarray) -> list[np.ndarray]:
        columns = range(self.X.shape[1])
        return [term.squared_distance(columns, self.X, Z) for term in self.triple.terms]


@dataclass(frozen=True, eq=False)
class Sections:
    """A function along some columns, with all others as rows have them: all that curves are made of.

    Parameters
    ----------
    rows : RowsOfCurves
    columns : sequence of int
        That are set to values.
    grid : array (g, k)
        These values, as the model sees them.
    """

    rows: RowsOfCurves
    columns: Sequence[int]
    grid: np.ndarray

    def along(self, term: ProductTerm, Z: np.ndarray) -> np.ndarray:
        """The factor of the columns between the grid and other rows, (g, m)."""
        return 1.0 + term.excess(self.columns, self.grid, Z[:, list(self.columns)])

    def across(self, term: ProductTerm, distance: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """That of all other columns between the rows and other rows, given the distance over all columns, (n, m)."""
        own = list(self.columns)
        others = distance - term.squared_distance(own, self.rows.X[:, own], Z[:, own])
        others *= -0.5
        return np.exp(others, out=others)

    @cached_property
    def _to_support(self) -> list[tuple[ProductTerm, np.ndarray]]:
        """Each term, and the factor of the other columns between rows and support points."""
        triple = self.rows.triple
        pairs = zip(triple.terms, self.rows.to_support, strict=True)
        return [(term, self.across(term, distance, triple.Z)) for term, distance in pairs]

    @cached_property
    def _to_rows(self) -> list[np.ndarray]:
        """The same between the rows."""
        if self.rows.X is self.rows.triple.Z:
            return [across for _, across in self._to_support]
        pairs = zip(self.rows.triple.terms, self.rows.to_rows, strict=True)
        return [self.across(term, distance, self.rows.X) for term, distance in pairs]

    def means(self) -> np.ndarray:
        """Of each row at each value, (n, g)."""
        triple = self.rows.triple
        own = list(self.columns)
        planes = np.delete(self.rows.X, own, axis=1) @ np.delete(triple.slopes, own)
        total = triple.level + planes[:, None] + self.grid @ triple.slopes[own]
        for term, across in self._to_support:
            total += across @ (term.variance * triple.weights * self.along(term, triple.Z)).T
        return total

    def surface(self, columns: Sequence[int], grid: np.ndarray) -> np.ndarray:
        """Of the average row at each value, and with other columns at each of their values, (g, h)."""
        triple = self.rows.triple
        own, other = list(self.columns), list(columns)
        planes = np.delete(self.rows.X, [*own, *other], axis=1) @ np.delete(triple.slopes, [*own, *other])
        lines = np.add.outer(self.grid @ triple.slopes[own], grid @ triple.slopes[other])
        total = triple.level + planes.mean() + lines
        others = Sections(self.rows, [*self.columns, *columns], np.empty((0, len(self.columns) + len(columns))))
        for term, across in others._to_support:
            weights = term.variance * triple.weights * across.mean(axis=0)
            second = 1.0 + term.excess(columns, grid, triple.Z[:, list(columns)])
            total += (self.along(term, triple.Z) * weights) @ second.T
        return total

    def covariance(self, W: np.ndarray) -> np.ndarray:
        """Of the curves sum_i W_ti f(x_i with the columns at t), (g, g)."""
        Q, prior = self._to_support_and_prior(W)
        return prior - self.rows.triple.explained_between(Q)

    def covariance_of_sum(self, W: np.ndarray, coupled: Coupled) -> np.ndarray:
        """Of the sum of such curves of several functions, one for each weights in W (C, g, n)."""
        Q, priors = zip(*map(self._to_support_and_prior, W), strict=True)
        return np.sum(priors, axis=0) - coupled.explained_between(np.array(Q))

    def _to_support_and_prior(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Prior covariances of the curves with the function at support points, (g, m), and with one another."""
        triple, totals = self.rows.triple, W.sum(axis=1)
        Q = np.outer(triple.constant_var * totals, np.ones(len(triple.weights)))
        prior = triple.constant_var * np.outer(totals, totals)
        moved = W @ self.rows.X  # what linear terms see: averages of rows, with the columns set to values
        moved[:, list(self.columns)] = totals[:, None] * self.grid
        Q += (moved * triple.slope_var) @ triple.Z.T
        prior += (moved * triple.slope_var) @ moved.T
        for (term, across), among in zip(self._to_support, self._to_rows, strict=True):
            Q += term.variance * self.along(term, triple.Z) * (W @ across)
            prior += term.variance * self.along(term, self._grid_rows()) * (W @ among @ W.T)
        return Q, prior

    def _grid_rows(self) -> np.ndarray:
        """The values of the grid in rows of their own, (g, p)."""
        rows = np.zeros((len(self.grid), self.rows.X.shape[1]))
        rows[:, list(self.columns)] = self.grid
        return rows


@dataclass(frozen=True, eq=False)
class Along:
    """The function along one unit at all rows: means (n, g) and the covariance (g, g) of their average."""

    means: np.ndarray
    covariance: np.ndarray

    def centred(self, n_values: int, weights: np.ndarray) -> Along:
        """At the first values, less the average over the others, which have weights."""
        centring = np.hstack([np.eye(n_values), np.tile(-weights, (n_values, 1))])
        return Along(self.means @ centring.T, centring @ self.covariance @ centring.T)


def pooled(draws: Sequence[Along]) -> Along:
    """Over draws of the hyperparameters: what they agree on, and what they do not."""
    averages = np.array([each.means.mean(axis=0) for each in draws])
    between = (averages - averages.mean(axis=0)).T @ (averages - averages.mean(axis=0)) / len(draws)
    means = np.mean([each.means for each in draws], axis=0)
    return Along(means, np.mean([each.covariance for each in draws], axis=0) + between)


@dataclass(frozen=True, eq=False)
class Way:
    """Where a unit goes: its columns, the values of its curve, (g, k), and the margin whose average is subtracted."""

    columns: tuple[int, ...]
    values: np.ndarray
    margin: Margin

    def on_columns(self, columns: Sequence[int]) -> Way:
        """The same in a table of some of the columns."""
        seen = [place for place, column in enumerate(self.columns) if column in columns]
        own = tuple(list(columns).index(self.columns[place]) for place in seen)
        return Way(own, self.values[:, seen], self.margin.on(seen))


@dataclass(frozen=True, eq=False)
class Member:
    """A model, or a draw of it, and the rows as it sees them."""

    model: Reference
    X: np.ndarray
    is_latent: bool
    closed: tuple[PlacedPosterior, RowsOfCurves] | None  # None where there are predictions only

    @classmethod
    def of(cls, model: Reference, X: np.ndarray, is_latent: bool) -> Self:
        placed = closed_posterior(model, X)
        if placed is None:
            return cls(model, X, is_latent, None)
        return cls(model, X, is_latent, (placed, RowsOfCurves(ProductTriple.of(placed.posterior), placed.inputs(X))))

    def predicted(self, X: np.ndarray) -> tuple[np.ndarray, Response]:
        """The latent mean, or the mean of an observation, at rows, (n,), and the response there."""
        response = self.model.at(self.model.inputs.points(X))
        mean = response.latent_mean if self.is_latent else response.distribution(latent=False).mean
        if mean.ndim > 1:
            raise MissingCapability(
                f"{type(self.model).__name__} predicts several numbers at a row, which have no one curve."
            )
        return mean, response

    def along(self, way: Way) -> Along:
        """At the values of a way, less the average over its margin, in the units of what is observed."""
        values = np.concatenate([way.values, way.margin.nodes])
        found = self._predicted_along(way, values) if self.closed is None else self._closed_along(way, values)
        return found.centred(len(way.values), way.margin.weights)

    def _predicted_along(self, way: Way, values: np.ndarray) -> Along:
        return Along(self._observed(way, values)[0], np.full((len(values), len(values)), np.nan))

    def _closed_along(self, way: Way, values: np.ndarray) -> Along:
        assert self.closed is not None
        placed, rows = self.closed
        sections, n = Sections(rows, *placed.inputs_of(way.columns, values)), len(self.X)
        if self.is_latent:
            covariance = sections.covariance(np.full((len(values), n), 1.0 / n))
            return Along(placed.y_center + placed.y_scale * sections.means(), placed.y_scale**2 * covariance)
        means, response = self._observed(way, values)
        try:
            slopes = response.mean_slope()
        except MissingCapability:
            return Along(means, np.full((len(values), len(values)), np.nan))
        if placed.coupled is None:
            W = slopes.reshape(len(values), n) / n
            return Along(means, placed.y_scale**2 * sections.covariance(W))
        W = np.moveaxis(slopes.reshape(len(values), n, -1), 2, 0) / n
        return Along(means, sections.covariance_of_sum(W, placed.coupled))

    def _observed(self, way: Way, values: np.ndarray) -> tuple[np.ndarray, Response]:
        """What is predicted of each row at each value, (n, g), and the response, at all rows of each value."""
        moved = np.tile(self.X, (len(values), 1))
        moved[:, list(way.columns)] = np.repeat(values, len(self.X), axis=0)
        mean, response = self.predicted(moved)
        return mean.reshape(len(values), len(self.X)).T, response
