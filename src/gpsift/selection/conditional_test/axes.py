r"""Vary a feature along an axis of values, and compute moments of predictions under a conditional distribution.

A model predicts each row with the feature at each of a few values, the points of its axis: this gives a curve for every
row. Predictions at other values are interpolated, so moments under any conditional need no further predictions.

`assess_calibration` compares a conditional with the data. With o_i the coordinates of row i on the axis of a feature,
and m_i and v_i the mean and the variance of the coordinates under its conditional,

.. math:: \text{explained} = 1 - \sum_i (o_i - m_i)^2 / \sum_i (o_i - \bar o)^2 , \qquad
          \text{calibration} = \sum_i (o_i - m_i)^2 / \sum_i v_i .

Coordinates are normal scores of a continuous column, indicators of levels, and values of columns that vary jointly in
standard deviations; over several coordinates squares are summed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from gpsift._utils.quadrature import gauss_hermite
from gpsift.gp.hyperparameters.score_tests import normal_scores

# A column with at most this many values is discrete. For other columns an axis has N_POINTS points, and a conditional
# N_NODES nodes.
MOST_LEVELS = 12
N_POINTS = 25
N_NODES = 15
# The number of draws of several columns that vary jointly is 2 to this power.
LOG2_DRAWS = 6
# The conditional standard deviation of a feature is at least this, even if the others determine it.
LEAST_SD = 1e-6
# If the residual is a smaller share of the variance, the other columns determine the feature: nothing is calibrated.
LEAST_RESIDUAL_SHARE = 1e-9


@dataclass(frozen=True, eq=False)
class ConditionalDraws:
    """A conditional at each row: nodes, interpolated by `mixtures` (n, q, g) from points of an axis, and weights."""

    mixtures: np.ndarray
    weights: np.ndarray  # (n, q)

    def moments(self, curves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean (n, c) and covariance (n, c, c) of c predictions, from their curves at the points (n, g, c)."""
        values = self.mixtures @ curves
        mean = np.einsum("iq,iqc->ic", self.weights, values)
        deviations = values - mean[:, None, :]
        return mean, np.einsum("iq,iqc,iqd->icd", self.weights, deviations, deviations)

    def at(self, rows: np.ndarray) -> ConditionalDraws:
        """Return the conditional at some rows."""
        return ConditionalDraws(self.mixtures[rows], self.weights[rows])

    @classmethod
    def of_points(cls, probabilities: np.ndarray) -> ConditionalDraws:
        """Make the conditional whose nodes are the points of an axis, with probabilities (n, g)."""
        n, g = probabilities.shape
        return cls(np.broadcast_to(np.eye(g), (n, g, g)), probabilities)


class Axis(ABC):
    """The points along which the columns of one unit vary.

    Attributes
    ----------
    values : array (g, k) or (n, g, k)
        The points, in units of the k columns; they may differ from row to row.
    coordinates, own_coordinates : array (g, c) or (n, g, c), and (n, c)
        Coordinates of the points and of each row's own value, in which a conditional is assessed.
    own : array (n, g) or None
        Weights that interpolate each row's own value from the points; None if they cannot.
    gp_target : tuple of array (n,) and str, or None
        The target and the likelihood of a Gaussian process for the conditional; None where there is none.
    """

    values: np.ndarray
    coordinates: np.ndarray
    own_coordinates: np.ndarray
    own: np.ndarray | None = None
    gp_target: tuple[np.ndarray, str] | None = None

    @abstractmethod
    def draws(self, mean: np.ndarray, sd: np.ndarray) -> ConditionalDraws:
        """Return the conditional of a column whose normal scores have these moments, (n,) each."""

    def draws_by_gp(self, mean: np.ndarray, var: np.ndarray) -> ConditionalDraws:
        """Return the conditional from leave-one-out means and variances of the target of the Gaussian process."""
        return self.draws(mean, np.sqrt(var))


class ContinuousAxis(Axis):
    """The axis of a column of many values: points equally spaced in normal scores, and cubic splines between them."""

    def __init__(self, x: np.ndarray):
        self.x, self.scores = x, normal_scores(x[:, None])[:, 0]
        self.points = np.linspace(self.scores.min(), self.scores.max(), N_POINTS)
        self.values, self.coordinates = quantiles(x, self.points)[:, None], self.points[:, None]
        self.own = self._interpolation(self.scores)
        self.own_coordinates = self.own @ self.coordinates
        self.gp_target = self.scores, "gaussian"

    def draws(self, mean: np.ndarray, sd: np.ndarray) -> ConditionalDraws:
        t, weights = gauss_hermite(N_NODES)
        mixtures = self._interpolation(mean[:, None] + sd[:, None] * t)
        return ConditionalDraws(mixtures, np.broadcast_to(weights, (mean.size, weights.size)))

    def _interpolation(self, scores: np.ndarray) -> np.ndarray:
        """Return cardinal splines at normal scores, which are clipped to the range of the data."""
        from scipy.interpolate import CubicSpline  # when first used: importing the package stays fast

        spline = CubicSpline(self.points, np.eye(N_POINTS))
        return spline(np.clip(scores, self.points[0], self.points[-1]))


class DiscreteAxis(Axis):
    """The axis of a column of few values, or of the columns that code a category, (n, k)."""

    own: np.ndarray

    def __init__(self, rows: np.ndarray):
        self.values, inverse = np.unique(rows, axis=0, return_inverse=True)
        codes, n_levels = inverse.reshape(-1), len(self.values)
        self.coordinates = np.eye(n_levels)
        self.own = self.own_coordinates = self.coordinates[codes]
        self.is_category = n_levels == 2 or rows.shape[1] > 1
        if n_levels > 1 and self.is_category:
            self.gp_target = codes.astype(float), "bernoulli" if n_levels == 2 else "softmax"
        elif n_levels > 1:
            self.gp_target = normal_scores(rows)[:, 0], "gaussian"

    def draws(self, mean: np.ndarray, sd: np.ndarray) -> ConditionalDraws:
        """Return the conditional of a column by cutting normal scores at the quantiles of the shares of its levels."""
        cuts = ndtri(np.cumsum(self.own.mean(axis=0))[:-1])
        below = ndtr((cuts - mean[:, None]) / np.maximum(sd, LEAST_SD)[:, None])
        edges = np.concatenate([np.zeros((mean.size, 1)), below, np.ones((mean.size, 1))], axis=1)
        return ConditionalDraws.of_points(np.diff(edges, axis=1))

    def draws_by_gp(self, mean: np.ndarray, var: np.ndarray) -> ConditionalDraws:
        if self.is_category:  # the mean is the probability of the second level, or of each
            return ConditionalDraws.of_points(np.column_stack([1.0 - mean, mean]) if mean.ndim == 1 else mean)
        return super().draws_by_gp(mean, var)


class JointAxis(Axis):
    """The axis of several columns (n, k) that vary jointly: every row has its own points, drawn from a conditional.

    The normal scores of the columns have conditional means (n, k), and a covariance with the root (k, k). Points are
    draws from this conditional, so another one would need new predictions.
    """

    def __init__(self, rows: np.ndarray, mean: np.ndarray, root: np.ndarray):
        from scipy.stats.qmc import Sobol

        k, sd = rows.shape[1], rows.std(axis=0)
        draws = ndtri(np.clip(Sobol(k, seed=0).random_base2(LOG2_DRAWS), 1e-9, 1.0 - 1e-9))
        scores = mean[:, None] + draws @ root.T
        self.values = np.stack([quantiles(rows[:, j], scores[..., j]) for j in range(k)], axis=2)
        scale = np.where(sd > 0, sd, 1.0)
        self.coordinates, self.own_coordinates = self.values / scale, rows / scale

    def draws(self, mean: np.ndarray, sd: np.ndarray) -> ConditionalDraws:
        n, g = self.values.shape[:2]
        return ConditionalDraws.of_points(np.full((n, g), 1.0 / g))


def column_axis(x: np.ndarray) -> ContinuousAxis | DiscreteAxis:
    """Return the axis of one column, (n, 1), by the number of its values."""
    return DiscreteAxis(x) if len(np.unique(x)) <= MOST_LEVELS else ContinuousAxis(x[:, 0])


def quantiles(x: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the values of a column that have these normal scores, within the range of the data."""
    return np.interp(ndtr(scores), (np.arange(x.size) + 0.5) / x.size, np.sort(x))


class Calibration(NamedTuple):
    """The share of a feature that the others explain, and squared deviations over those expected: 1 if right."""

    explained: float
    calibration: float


def assess_calibration(axis: Axis, draws: ConditionalDraws) -> Calibration:
    """Assess a conditional at all rows; both numbers are 1 if the feature is constant or determined by the others."""
    mean, covariance = draws.moments(axis.coordinates)
    own = axis.own_coordinates
    total = float(np.sum((own - own.mean(axis=0)) ** 2))
    observed, expected = float(np.sum((own - mean) ** 2)), float(np.einsum("icc->", covariance))
    least = LEAST_RESIDUAL_SHARE * max(total, 1.0)
    if max(observed, expected) <= least:
        return Calibration(1.0, 1.0)
    return Calibration(1.0 - observed / total if total > 0 else 1.0, observed / max(expected, least))
