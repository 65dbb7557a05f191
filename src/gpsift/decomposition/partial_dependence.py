r"""Compute partial dependence: the average curve of the rows along a unit, and its posterior covariance.

The curve of a row has the unit at each value t of a grid, and the row's own values of all other columns (an individual
conditional expectation; Goldstein et al. 2015). The average is over the rows, and so over their joint distribution. It
is a weighted sum, sum_i W_ti f(x_i with unit j at t). The weights are 1 / n; the delta method below has others. With
kappa_j the factor of the unit and kappa_-j that of all others, each term of the kernel contributes

.. math::
    Q(t) = s \, \kappa_j(t, Z) \circ (W \kappa_{-j}(X, Z))_t , \qquad \mathrm{mean}(t) = Q(t) \, w , \\
    \mathrm{cov}(t, t') = s \, \kappa_j(t, t') \, (W \kappa_{-j}(X, X) W^T)_{t t'} - Q(t) \, M \, Q(t')^T .

The covariance is that of the average: it is smaller than the average variance of the curves.

Each curve is taken less its own average over the margin of the unit. Where an observation is not Gaussian, curves are
those of the mean of an observation, h(m_i(t), v_i(t)). By the delta method their covariance is that of the latent
curves with the weights dh / dm / n. Where an observation depends on several latent functions f_a, with slopes
dh / dm_a, it is that of the sum of their curves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from gpsift._utils.arrays import rows_at_values
from gpsift.decomposition.context import closed_posterior
from gpsift.decomposition.margins import Margin
from gpsift.decomposition.products import ProductTriple
from gpsift.kernels.products import ProductTerm
from gpsift.reference.base import Coupled, MissingCapability, PlacedPosterior, Reference, Response


@dataclass(frozen=True, eq=False)
class PartialDependence:
    """Curves of all rows along a unit, (n, g), and the posterior covariance (g, g) of their average."""

    curves: np.ndarray
    covariance: np.ndarray

    def center(self, n_values: int, weights: np.ndarray) -> PartialDependence:
        """Keep the first values, and subtract the weighted average over the others from each curve."""
        centring = np.hstack([np.eye(n_values), np.tile(-weights, (n_values, 1))])
        return PartialDependence(self.curves @ centring.T, centring @ self.covariance @ centring.T)

    def add_row_sampling(self) -> PartialDependence:
        """Add the covariance of the average that is due to the rows, a sample of those that there could be."""
        n, g = self.curves.shape
        of_rows = np.cov(self.curves, rowvar=False).reshape(g, g) / n if n > 1 else np.zeros((g, g))
        return PartialDependence(self.curves, self.covariance + of_rows)


def pool_draws(draws: Sequence[PartialDependence]) -> PartialDependence:
    """Pool curves of models with drawn hyperparameters: mean curves, and covariance within plus between draws."""
    averages = np.array([each.curves.mean(axis=0) for each in draws])
    between = (averages - averages.mean(axis=0)).T @ (averages - averages.mean(axis=0)) / len(draws)
    curves = np.mean([each.curves for each in draws], axis=0)
    return PartialDependence(curves, np.mean([each.covariance for each in draws], axis=0) + between)


@dataclass(frozen=True, eq=False)
class CurveGrid:
    """The columns of a unit, the values of its curve, (g, k), and the margin whose average is subtracted."""

    columns: tuple[int, ...]
    values: np.ndarray
    margin: Margin

    def on_columns(self, columns: Sequence[int]) -> CurveGrid:
        """Return this grid for a table of some of the columns."""
        kept = [place for place, column in enumerate(self.columns) if column in columns]
        own = tuple(list(columns).index(self.columns[place]) for place in kept)
        return CurveGrid(own, self.values[:, kept], self.margin.on(kept))


@dataclass(frozen=True, eq=False)
class ModelCurves:
    """A model, or a draw of it, and the rows whose curves are averaged.

    `closed` has the posterior and the rows in its units, or is None for a model that offers predictions only.
    """

    model: Reference
    X: np.ndarray
    is_latent: bool
    closed: tuple[PlacedPosterior, ICERows] | None

    @classmethod
    def of(cls, model: Reference, X: np.ndarray, is_latent: bool) -> Self:
        placed = closed_posterior(model, X)
        if placed is None:
            return cls(model, X, is_latent, None)
        return cls(model, X, is_latent, (placed, ICERows(ProductTriple.of(placed.posterior), placed.inputs(X))))

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, Response]:
        """Predict the latent mean, or the mean of an observation, at rows, (n,); returns also the response."""
        response = self.model.at(self.model.inputs.points(X))
        mean = response.latent_mean if self.is_latent else response.distribution(latent=False).mean
        if mean.ndim > 1:
            raise MissingCapability(
                f"{type(self.model).__name__} predicts several numbers at a row, which have no one curve."
            )
        return mean, response

    def partial_dependence(self, grid: CurveGrid) -> PartialDependence:
        """Compute curves on a grid, less their average over its margin, in units of the observations."""
        n, values = len(self.X), np.concatenate([grid.values, grid.margin.nodes])
        g = len(values)
        if not grid.columns:  # the model does not depend on the unit
            curves, covariance = np.zeros((n, g)), np.zeros((g, g))
        elif self.closed is not None and self.is_latent:
            placed, rows = self.closed
            ice = ICECurves(rows, *placed.inputs_of(grid.columns, values))
            curves = placed.affine.y_center + placed.affine.y_scale * ice.means()
            covariance = placed.affine.y_scale**2 * ice.covariance(np.full((g, n), 1.0 / n))
        else:
            mean, response = self.predict(rows_at_values(self.X, grid.columns, values))
            curves, covariance = mean.reshape(n, g), self._delta_method(grid, values, response)
        return PartialDependence(curves, covariance).center(len(grid.values), grid.margin.weights)

    def _delta_method(self, grid: CurveGrid, values: np.ndarray, response: Response) -> np.ndarray:
        """Compute the covariance of curves of observations, (g, g); NaN without closed forms or slopes."""
        n, g = len(self.X), len(values)
        unknown = np.full((g, g), np.nan)
        if self.closed is None:
            return unknown
        try:
            slopes = response.mean_slope().reshape(n, g, -1)
        except MissingCapability:
            return unknown
        placed, rows = self.closed
        ice, W = ICECurves(rows, *placed.inputs_of(grid.columns, values)), np.transpose(slopes, (2, 1, 0)) / n
        if placed.coupled is None:
            return placed.affine.y_scale**2 * ice.covariance(W[0])
        return ice.covariance_of_sum(W, placed.coupled)


class ICERows:
    """Rows whose curves are averaged, in units of the model, with their distances, which all units share."""

    def __init__(self, triple: ProductTriple, X: np.ndarray):
        self.triple = triple
        self.X = triple.Z if np.array_equal(X, triple.Z) else X

    @cached_property
    def to_support(self) -> list[np.ndarray]:
        """Squared distances to the support points over all columns, for each term, (n, m)."""
        return self._distances(self.triple.Z)

    @cached_property
    def to_rows(self) -> list[np.ndarray]:
        """Squared distances between the rows over all columns, for each term, (n, n)."""
        return self.to_support if self.X is self.triple.Z else self._distances(self.X)

    def _distances(self, Z: np.ndarray) -> list[np.ndarray]:
        columns = range(self.X.shape[1])
        return [term.squared_distance(columns, self.X, Z) for term in self.triple.terms]


@dataclass(frozen=True, eq=False)
class ICECurves:
    """Individual conditional expectations in closed form: some columns at given values, all others at the rows' own."""

    rows: ICERows
    columns: Sequence[int]  # that have given values
    grid: np.ndarray  # the given values, in units of the model, (g, k)

    def own_factor(self, term: ProductTerm, Z: np.ndarray) -> np.ndarray:
        """Compute the factor of the columns between the grid and Z, which has all columns, (g, m)."""
        return 1.0 + term.excess(self.columns, self.grid, Z[:, list(self.columns)])

    def _other_factors(self, distances: Sequence[np.ndarray], Z: np.ndarray) -> list[np.ndarray]:
        """Compute the factor of all other columns between the rows and Z, from distances over all columns, (n, m)."""
        own, found = list(self.columns), []
        for term, distance in zip(self.rows.triple.terms, distances, strict=True):
            others = distance - term.squared_distance(own, self.rows.X[:, own], Z[:, own])
            others *= -0.5
            found.append(np.exp(others, out=others))
        return found

    @cached_property
    def _to_support(self) -> list[np.ndarray]:
        return self._other_factors(self.rows.to_support, self.rows.triple.Z)

    @cached_property
    def _to_rows(self) -> list[np.ndarray]:
        is_support = self.rows.X is self.rows.triple.Z
        return self._to_support if is_support else self._other_factors(self.rows.to_rows, self.rows.X)

    def means(self) -> np.ndarray:
        """Compute posterior means of the curves, (n, g)."""
        triple = self.rows.triple
        own = list(self.columns)
        planes = np.delete(self.rows.X, own, axis=1) @ np.delete(triple.slopes, own)
        total = triple.constant + planes[:, None] + self.grid @ triple.slopes[own]
        for term, others in zip(triple.terms, self._to_support, strict=True):
            total += others @ (term.variance * triple.weights * self.own_factor(term, triple.Z)).T
        return total

    def surface(self, columns: Sequence[int], grid: np.ndarray) -> np.ndarray:
        """Average the mean over the rows, with these columns and others at each pair of their values, (g, h)."""
        triple = self.rows.triple
        own, other = list(self.columns), list(columns)
        planes = np.delete(self.rows.X, [*own, *other], axis=1) @ np.delete(triple.slopes, [*own, *other])
        lines = np.add.outer(self.grid @ triple.slopes[own], grid @ triple.slopes[other])
        total = triple.constant + planes.mean() + lines
        both = ICECurves(self.rows, [*own, *other], np.empty((0, len(own) + len(other))))
        for term, others in zip(triple.terms, both._to_support, strict=True):
            weights = term.variance * triple.weights * others.mean(axis=0)
            second = 1.0 + term.excess(columns, grid, triple.Z[:, other])
            total += (self.own_factor(term, triple.Z) * weights) @ second.T
        return total

    def covariance(self, W: np.ndarray) -> np.ndarray:
        """Compute the posterior covariance of the curves sum_i W_ti f(x_i with the columns at t), (g, g)."""
        Q, prior = self._prior_covariances(W)
        return prior - self.rows.triple.explained_covariance(Q)

    def covariance_of_sum(self, W: np.ndarray, coupled: Coupled) -> np.ndarray:
        """Compute the posterior covariance of the sum of curves of several functions, with weights W (C, g, n)."""
        Q, priors = zip(*map(self._prior_covariances, W), strict=True)
        return np.sum(priors, axis=0) - coupled.explained_between(np.array(Q))

    def _prior_covariances(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute prior covariances of the curves with the function at support points, (g, m), and with one another."""
        triple, totals = self.rows.triple, W.sum(axis=1)
        Q = np.outer(triple.constant_var * totals, np.ones(len(triple.weights)))
        prior = triple.constant_var * np.outer(totals, totals)
        inputs = W @ self.rows.X  # of linear terms: averages of rows, with the columns at the values of the grid
        inputs[:, list(self.columns)] = totals[:, None] * self.grid
        Q += (inputs * triple.slope_var) @ triple.Z.T
        prior += (inputs * triple.slope_var) @ inputs.T
        grid_rows = np.zeros((len(self.grid), self.rows.X.shape[1]))
        grid_rows[:, list(self.columns)] = self.grid
        for term, to_support, to_rows in zip(triple.terms, self._to_support, self._to_rows, strict=True):
            Q += term.variance * self.own_factor(term, triple.Z) * (W @ to_support)
            prior += term.variance * self.own_factor(term, grid_rows) * (W @ to_rows @ W.T)
        return Q, prior
