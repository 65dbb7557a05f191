"""Models that have not seen the rows at which they are asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gpsift.discovery.axes import Axis, Redraws
from gpsift.discovery.statistic import Sums
from gpsift.gp import GP, DrawnGP, FittedGP
from gpsift.relevance.switched import used_columns
from gpsift.selection.data import Data


class Predictor(Protocol):
    """A fitted model, as far as the test needs it."""

    def mean(self, X: np.ndarray) -> np.ndarray:
        """Of c predictions of each row, (n, c)."""

    def pull(self, y: np.ndarray, mean: np.ndarray, sizes: Mapping[str, np.ndarray]) -> np.ndarray:
        """How the observations pull at these predictions, (n, c): the residuals, up to a factor."""

    def uses(self, columns: Sequence[int]) -> bool:
        """Whether predictions depend on any of these columns."""


@dataclass(frozen=True, eq=False)
class OfGP:
    """A Gaussian process of ours: its latent means, and the slopes of the log density there."""

    fitted: FittedGP | DrawnGP

    def mean(self, X: np.ndarray) -> np.ndarray:
        latent = self.fitted.predict(X).latent_mean
        return latent[:, None] if latent.ndim == 1 else latent

    def pull(self, y: np.ndarray, mean: np.ndarray, sizes: Mapping[str, np.ndarray]) -> np.ndarray:
        likelihood = self.fitted.likelihood
        if likelihood.has_closed_form:
            return y[:, None] - mean
        size = np.ones(len(y))
        for given in sizes.values():
            size = given
        f = mean if likelihood.n_latent > 1 else mean[:, 0]
        slopes = likelihood.in_units(self.fitted.scaling.y_scale).derivatives(y, f, size).first
        return slopes.reshape(mean.shape)

    def uses(self, columns: Sequence[int]) -> bool:
        return bool(set(columns).intersection(used_columns(self.fitted)))


@dataclass(frozen=True, eq=False)
class OfFunction:
    """Whatever a function of the user's has fitted: probabilities of classes, or predictions."""

    fitted: Any

    def mean(self, X: np.ndarray) -> np.ndarray:
        if hasattr(self.fitted, "predict_proba"):
            return np.asarray(self.fitted.predict_proba(X), dtype=float)
        return np.asarray(self.fitted.predict(X), dtype=float).reshape(len(X), -1)

    def pull(self, y: np.ndarray, mean: np.ndarray, _sizes: Mapping[str, np.ndarray]) -> np.ndarray:
        if hasattr(self.fitted, "predict_proba"):
            return (y[:, None] == np.asarray(self.fitted.classes_)) - mean
        return y[:, None] - mean

    def uses(self, _columns: Sequence[int]) -> bool:
        return True


Fit = Callable[[np.ndarray, np.ndarray], Any]


def fitted_to(model: GP | Fit, data: Data) -> Predictor:
    if isinstance(model, GP):
        return OfGP(model.fit(data.table(range(len(data.names))), data.y, **data.extras))
    return OfFunction(model(data.X, data.y))


def curves(predictor: Predictor, X: np.ndarray, columns: Sequence[int], axis: Axis) -> np.ndarray:
    """Predictions (n, g, c) with the columns of a unit at each point of its axis."""
    n, g = len(X), len(axis.values)
    moved = np.repeat(X, g, axis=0)
    moved[:, list(columns)] = np.tile(axis.values, (n, 1))
    return predictor.mean(moved).reshape(n, g, -1)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What a model of the other rows says of some rows: for each unit that it uses, numbered, its curves (n, g, c)
    along the unit's axis, and how the observations pull at what it expects without the unit, (n, c).
    """

    rows: np.ndarray
    curves: Mapping[int, np.ndarray]
    pulls: Mapping[int, np.ndarray]


def held_out(
    data: Data, rows: np.ndarray, model: GP | Fit, axes: Sequence[Axis], columns: Sequence[Sequence[int]],
    redraws: Sequence[Redraws],
) -> HeldOut:
    """Fit to all rows but some, and ask at those."""
    others = np.setdiff1d(np.arange(data.y.size), rows)
    predictor, there = fitted_to(model, data.take(others)), data.take(rows)
    found, pulls = {}, {}
    for unit, (axis, own) in enumerate(zip(axes, columns, strict=True)):
        if predictor.uses(own):
            found[unit] = curves(predictor, there.X, own, axis)
            expected, _ = redraws[unit].at(rows).moments(found[unit])
            pulls[unit] = predictor.pull(there.y, expected, there.sizes)
    return HeldOut(rows, found, pulls)


def sums_of(fold: HeldOut, unit: int, axis: Axis, redraws: Redraws) -> Sums:
    """Of a unit in one fold, under a conditional distribution."""
    if unit not in fold.curves:
        return Sums()
    here = redraws.at(fold.rows)
    expected, covariance = here.moments(fold.curves[unit])
    own = np.einsum("ig,igc->ic", axis.own[fold.rows], fold.curves[unit])
    return Sums.of(fold.pulls[unit], own - expected, covariance)
