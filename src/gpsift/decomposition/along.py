r"""A model along units: the curve of every row, and the covariance of their average.

Curves are those of `gpsift.decomposition.curves`, each less its own average over the values that the unit has in the
rows. Where an observation is not normal, curves are averages of the mean of an observation, h(m_i(t), v_i(t)); by the
delta method their covariance is that of the latent curves with the weights dh / dm / n. Where an observation depends on
several latent functions f_a, with slopes dh / dm_a, it is that of the sum of their curves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from gpsift.decomposition.asked import closed_posterior
from gpsift.decomposition.curves import RowsOfCurves, Sections
from gpsift.decomposition.margins import Margin
from gpsift.decomposition.triple import ProductTriple
from gpsift.reference.base import MissingCapability, PlacedPosterior, Reference, Response


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
            return Along(
                placed.affine.y_center + placed.affine.y_scale * sections.means(), placed.affine.y_scale**2 * covariance
            )
        means, response = self._observed(way, values)
        try:
            slopes = response.mean_slope()
        except MissingCapability:
            return Along(means, np.full((len(values), len(values)), np.nan))
        if placed.coupled is None:
            W = slopes.reshape(len(values), n) / n
            return Along(means, placed.affine.y_scale**2 * sections.covariance(W))
        W = np.moveaxis(slopes.reshape(len(values), n, -1), 2, 0) / n
        return Along(means, sections.covariance_of_sum(W, placed.coupled))

    def _observed(self, way: Way, values: np.ndarray) -> tuple[np.ndarray, Response]:
        """What is predicted of each row at each value, (n, g), and the response, at all rows of each value."""
        moved = np.tile(self.X, (len(values), 1))
        moved[:, list(way.columns)] = np.repeat(values, len(self.X), axis=0)
        mean, response = self.predicted(moved)
        return mean.reshape(len(values), len(self.X)).T, response
