"""The values along which a feature is moved, and how predictions there become moments under a conditional.

A model is asked once for its predictions with the feature at each of a few values: a curve for every row. Any
conditional distribution of the feature is then a mixture of these, so that one can be exchanged for another without
asking the model again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from gpsift.gp.hyperparameters.score_tests import normal_scores
from gpsift.relevance.nodes import gauss_hermite

# A column with at most this many values has levels; curves of the others have this many points, and conditionals this
# many nodes.
MOST_LEVELS = 12
N_POINTS = 25
N_NODES = 15
# Draws of several columns that are moved together: 2 to this power.
LOG2_DRAWS = 6
# A feature that the others decide has no deviation left; it is taken for this many standard deviations.
LEAST_SD = 1e-6


@dataclass(frozen=True, eq=False)
class Redraws:
    """Nodes of a conditional at each row, as mixtures (n, q, g) of the points of an axis, and their weights (n, q)."""

    mixtures: np.ndarray
    weights: np.ndarray

    def moments(self, curves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n, c) and covariance (n, c, c) of c predictions, from those at the points of the axis, (n, g, c)."""
        values = self.mixtures @ curves
        mean = np.einsum("iq,iqc->ic", self.weights, values)
        off = values - mean[:, None, :]
        return mean, np.einsum("iq,iqc,iqd->icd", self.weights, off, off)

    def at(self, rows: np.ndarray) -> Redraws:
        """Those of some rows."""
        return Redraws(self.mixtures[rows], self.weights[rows])


class Axis(ABC):
    """Values of the columns of one unit.

    Attributes
    ----------
    values : array (g, k) or (n, g, k)
        The points, in units of the k columns, which may differ from row to row.
    own : array (n, g) or None
        Every row's own value as a mixture of them; None where it is none.
    """

    values: np.ndarray
    own: np.ndarray | None

    @property
    @abstractmethod
    def coordinates(self) -> np.ndarray:
        """Numbers (g, c) or (n, g, c) for the points, in which distances between them are measured."""

    @property
    def places(self) -> np.ndarray:
        """Those of every row's own value, (n, c)."""
        return self.own @ self.coordinates

    @abstractmethod
    def redraws(self, mean: np.ndarray, sd: np.ndarray) -> Redraws:
        """Those of a column whose normal scores have these conditional means and standard deviations, (n,) each."""


@dataclass(frozen=True, eq=False)
class Continuous(Axis):
    """A column of many values: points at equal distances of its normal scores, and cubic splines in between."""

    x: np.ndarray

    @cached_property
    def scores(self) -> np.ndarray:
        return normal_scores(self.x[:, None])[:, 0]

    @cached_property
    def points(self) -> np.ndarray:
        return np.linspace(self.scores.min(), self.scores.max(), N_POINTS)

    @cached_property
    def values(self) -> np.ndarray:  # type: ignore[override]
        return quantiles(self.x, self.points)[:, None]

    @cached_property
    def own(self) -> np.ndarray:  # type: ignore[override]
        return self._mixture(self.scores)

    @property
    def coordinates(self) -> np.ndarray:
        return self.points[:, None]

    def redraws(self, mean: np.ndarray, sd: np.ndarray) -> Redraws:
        t, weights = gauss_hermite(N_NODES)
        return Redraws(
            self._mixture(mean[:, None] + sd[:, None] * t), np.broadcast_to(weights, (mean.size, weights.size))
        )

    def _mixture(self, scores: np.ndarray) -> np.ndarray:
        """Cardinal splines at normal scores, which stay within those of the data."""
        from scipy.interpolate import CubicSpline  # when first used: importing the package stays fast

        spline = CubicSpline(self.points, np.eye(N_POINTS))
        return spline(np.clip(scores, self.points[0], self.points[-1]))


@dataclass(frozen=True, eq=False)
class Levels(Axis):
    """A column of few values, or the columns that code a category."""

    rows: np.ndarray  # (n, k)

    @cached_property
    def _found(self) -> tuple[np.ndarray, np.ndarray]:
        values, codes = np.unique(self.rows, axis=0, return_inverse=True)
        return values, codes.reshape(-1)

    @property
    def values(self) -> np.ndarray:  # type: ignore[override]
        return self._found[0]

    @property
    def codes(self) -> np.ndarray:
        """The number of the level that each row has."""
        return self._found[1]

    @cached_property
    def own(self) -> np.ndarray:  # type: ignore[override]
        return np.eye(len(self.values))[self.codes]

    @property
    def coordinates(self) -> np.ndarray:
        return np.eye(len(self.values))

    def redraws(self, mean: np.ndarray, sd: np.ndarray) -> Redraws:
        """The normal scores of a column are cut where the shares of its levels say."""
        cuts = ndtri(np.cumsum(self.own.mean(axis=0))[:-1])
        below = ndtr((cuts - mean[:, None]) / np.maximum(sd, LEAST_SD)[:, None])
        edges = np.concatenate([np.zeros((mean.size, 1)), below, np.ones((mean.size, 1))], axis=1)
        return self.by_probability(np.diff(edges, axis=1))

    def by_probability(self, probabilities: np.ndarray) -> Redraws:
        """Those of levels with given probabilities, (n, g)."""
        n, g = probabilities.shape
        return Redraws(np.broadcast_to(np.eye(g), (n, g, g)), probabilities)


@dataclass(frozen=True, eq=False)
class Jointly(Axis):
    """Several columns that are moved together, each row to points of its own: draws of a joint conditional.

    Another conditional would have other points, and the model would have to be asked again.
    """

    rows: np.ndarray  # (n, k)
    mean: np.ndarray  # of their normal scores, (n, k)
    root: np.ndarray  # of the covariance of these, (k, k)

    own = None

    @cached_property
    def values(self) -> np.ndarray:  # type: ignore[override]
        from scipy.stats.qmc import Sobol

        k = self.rows.shape[1]
        draws = ndtri(np.clip(Sobol(k, seed=0).random_base2(LOG2_DRAWS), 1e-9, 1.0 - 1e-9))
        scores = self.mean[:, None] + draws @ self.root.T
        return np.stack([quantiles(self.rows[:, j], scores[..., j]) for j in range(k)], axis=2)

    @property
    def coordinates(self) -> np.ndarray:
        return self.values / self._scale

    @property
    def places(self) -> np.ndarray:
        return self.rows / self._scale

    @property
    def _scale(self) -> np.ndarray:
        sd = self.rows.std(axis=0)
        return np.where(sd > 0, sd, 1.0)

    def redraws(self, mean: np.ndarray, sd: np.ndarray) -> Redraws:
        n, g = self.values.shape[:2]
        return Redraws(np.broadcast_to(np.eye(g), (n, g, g)), np.full((n, g), 1.0 / g))


def axis_of(rows: np.ndarray) -> Continuous | Levels:
    """Of one column, (n, 1): by the number of its values."""
    return Levels(rows) if len(np.unique(rows)) <= MOST_LEVELS else Continuous(rows[:, 0])


def quantiles(x: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The values of a column that have these normal scores, within the range of the data."""
    return np.interp(ndtr(scores), (np.arange(x.size) + 0.5) / x.size, np.sort(x))


# A column with a smaller share of its variance left is decided by the others, and nothing is left to be calibrated.
LEAST_LEFT = 1e-9


class Adequacy(NamedTuple):
    """The share of a feature that the others explain, and squared deviations over those expected, 1 if right."""

    explained: float
    calibration: float


def adequacy(axis: Axis, redraws: Redraws) -> Adequacy:
    """Of a conditional, at all rows; of a feature that the others decide, or that is constant, 1 and 1."""
    mean, covariance = redraws.moments(axis.coordinates)
    here = axis.places
    total = float(np.sum((here - here.mean(axis=0)) ** 2))
    left, expected = float(np.sum((here - mean) ** 2)), float(np.einsum("icc->", covariance))
    if max(left, expected) <= LEAST_LEFT * max(total, 1.0):
        return Adequacy(1.0, 1.0)
    return Adequacy(1.0 - left / total if total > 0 else 1.0, left / max(expected, LEAST_LEFT * max(total, 1.0)))
