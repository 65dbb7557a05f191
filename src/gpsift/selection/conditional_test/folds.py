r"""A test of whether the target depends on a feature, given all others, on rows that a model has not seen.

With m the prediction of a model that was fitted to other rows, and with x~ the row whose feature has been drawn anew
from its conditional distribution given the others, let

.. math:: \bar m_i = E\, m(\tilde x_i), \qquad V_i = \mathrm{Var}\, m(\tilde x_i), \qquad d_i = m(x_i) - \bar m_i ,

and r_i = y_i - \bar m_i, or any other number that y and the other features decide (for other likelihoods the slope of
the log density at \bar m_i). If y does not depend on the feature given the others, then given y and the others

.. math:: T = \sum_i r_i d_i

has mean 0 and variance \sum_i r_i^2 V_i, *whatever the model is*: only the conditional distribution has to be right.
Divided by the larger of this standard deviation and that of the observed products, \sum_i r_i^2 d_i^2, it is at most
standard normal; large values speak for the feature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtr

from gpsift._utils.threads import blas_threads_for
from gpsift.gp import GP, DrawnGP, FittedGP, one_of
from gpsift.gp.refit import condition_on
from gpsift.reference.inputs import Points
from gpsift.selection.conditional_test.conditionals import TestedUnit
from gpsift.selection.data import Data


@dataclass(frozen=True)
class Sums:
    """Over rows: products of residual and deviation, their variance given the conditional, and their squares."""

    products: float = 0.0
    variance: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, residual: np.ndarray, deviation: np.ndarray, covariance: np.ndarray) -> Sums:
        """From residuals and deviations (n, c) of c predictions of each row, and the covariance (n, c, c) of these."""
        product = np.sum(residual * deviation, axis=1)
        variance = np.einsum("ic,icd,id->", residual, covariance, residual)
        return cls(float(product.sum()), float(variance), float(product @ product))

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.products + other.products, self.variance + other.variance, self.squares + other.squares)

    @property
    def z(self) -> float:
        """In standard deviations; minus infinity where no model reacts to the feature."""
        largest = max(self.variance, self.squares)
        return self.products / float(np.sqrt(largest)) if largest > 0 else -np.inf

    @property
    def p(self) -> float:
        """The probability of a value as large where the feature does not matter."""
        return float(ndtr(-self.z))


# Rows that no model is asked for where each part follows those before it: one in this many.
ONE_IN = 3


@dataclass(frozen=True, eq=False)
class Part:
    """Numbers of rows that are asked for, and of those that the model is fitted to."""

    rows: np.ndarray
    fitted: np.ndarray


@dataclass(frozen=True)
class InOrder:
    """Folds that follow each other: each is tested by a model of the rows before it, in a random order.

    A third of the rows is learnt from alone. P-values are then right for *any* model, such as one that follows the
    noise, at the price of finding less.

    Parameters
    ----------
    folds : int
    """

    folds: int = 5


def divided(n: int, folds: int | InOrder, seed: Sequence[int]) -> list[Part]:
    """The parts of n rows."""
    return growing(n, folds.folds, seed) if isinstance(folds, InOrder) else left_out(n, folds, seed)


def left_out(n: int, folds: int, seed: Sequence[int]) -> list[Part]:
    """Every row is asked for once, after a fit to all rows that are not in its part."""
    _check(n, folds, n)
    number = np.random.default_rng(seed).permutation(n) % folds
    return [Part(np.flatnonzero(number == k), np.flatnonzero(number != k)) for k in range(folds)]


def growing(n: int, folds: int, seed: Sequence[int]) -> list[Part]:
    """Every row but the first ones, in a random order, is asked for once, after a fit to rows before it.

    Then no two parts have each seen the other, and sums over parts have the variance that the parts' own add up to.
    """
    first = max(2, round(n / ONE_IN))
    _check(n - first, folds, n)
    order = np.random.default_rng(seed).permutation(n)
    edges = np.linspace(first, n, folds + 1).astype(int)
    return [Part(np.sort(order[a:b]), np.sort(order[:a])) for a, b in pairwise(edges)]


def _check(n_asked: int, folds: int, n: int) -> None:
    if folds > n_asked:
        raise ValueError(f"`folds` must be at most {n_asked} with {n} rows, got {folds}.")


class Predictor(Protocol):
    """A fitted model, as far as the test needs it."""

    def mean(self, X: np.ndarray) -> np.ndarray:
        """Of c predictions of each row, (n, c)."""

    def curves(self, X: np.ndarray, columns: Sequence[int], values: np.ndarray) -> np.ndarray:
        """Predictions (n, g, c) with some columns at each of the values (g, k), or (n, g, k) of each row."""

    def pull(self, y: np.ndarray, mean: np.ndarray, sizes: Mapping[str, np.ndarray]) -> np.ndarray:
        """How the observations pull at these predictions, (n, c): the residuals, up to a factor."""

    def uses(self, columns: Sequence[int]) -> bool:
        """Whether predictions depend on any of these columns."""


@dataclass(frozen=True, eq=False)
class OfGP:
    """A Gaussian process of ours: its latent means, and the slopes of the log density there."""

    fitted: FittedGP | DrawnGP

    def mean(self, X: np.ndarray) -> np.ndarray:
        # Not `predict`, which has variances too: they would take most of the time.
        latent = self._averaged(lambda member, points: member.at(points).latent_mean, X)
        return latent[:, None] if latent.ndim == 1 else latent

    def curves(self, X: np.ndarray, columns: Sequence[int], values: np.ndarray) -> np.ndarray:
        if len(columns) > 1 or values.ndim > 2:
            return moved_means(self, X, columns, values)
        (j,), base, offset = columns, np.zeros(len(X)), values[:, 0]
        found = self._averaged(
            lambda member, points: member.scaling.y_center + member.at(points).section(j, base, offset), X
        )
        return found.reshape(len(X), offset.size, -1)

    def _averaged(self, of: Callable[[FittedGP, Points], np.ndarray], X: np.ndarray) -> np.ndarray:
        """Over the draws of a model that has some."""
        members = self.fitted.members if isinstance(self.fitted, DrawnGP) else (self.fitted,)
        with blas_threads_for(self.fitted.inputs.n_rows):
            return np.mean([of(member, member.inputs.points(X)) for member in members], axis=0)

    def pull(self, y: np.ndarray, mean: np.ndarray, sizes: Mapping[str, np.ndarray]) -> np.ndarray:
        one = one_of(self.fitted)
        likelihood = one.likelihood
        if likelihood.has_closed_form:
            return y[:, None] - mean
        size = next(iter(sizes.values()), np.ones(len(y)))
        f = mean if likelihood.n_latent > 1 else mean[:, 0]
        slopes = likelihood.in_units(one.scaling.y_scale).derivatives(y, f, size).first
        return slopes.reshape(mean.shape)

    def uses(self, columns: Sequence[int]) -> bool:
        return bool(set(columns).intersection(self.fitted.used))


@dataclass(frozen=True, eq=False)
class OfFunction:
    """Whatever a function of the user's has fitted: probabilities of classes, or predictions."""

    fitted: Any

    def mean(self, X: np.ndarray) -> np.ndarray:
        if hasattr(self.fitted, "predict_proba"):
            return np.asarray(self.fitted.predict_proba(X), dtype=float)
        return np.asarray(self.fitted.predict(X), dtype=float).reshape(len(X), -1)

    def curves(self, X: np.ndarray, columns: Sequence[int], values: np.ndarray) -> np.ndarray:
        return moved_means(self, X, columns, values)

    def pull(self, y: np.ndarray, mean: np.ndarray, _sizes: Mapping[str, np.ndarray]) -> np.ndarray:
        if hasattr(self.fitted, "predict_proba"):
            return (y[:, None] == np.asarray(self.fitted.classes_)) - mean
        return y[:, None] - mean

    def uses(self, _columns: Sequence[int]) -> bool:
        return True


@dataclass(frozen=True, eq=False)
class KnownGP:
    """A Gaussian process whose hyperparameters are known: those of a fitted one."""

    fitted: FittedGP

    def fit(self, data: Data) -> FittedGP:
        """Given these rows."""
        return condition_on(self.fitted, data.X, data.y, next(iter(data.sizes.values()), np.ones(len(data.y))))


Fit = Callable[[np.ndarray, np.ndarray], Any]


def fitted_to(model: GP | KnownGP | Fit, data: Data) -> Predictor:
    """A model of these rows."""
    if isinstance(model, KnownGP):
        return OfGP(model.fit(data))
    if isinstance(model, GP):
        return OfGP(model.fit(data.table(range(len(data.names))), data.y, **data.extras))  # type: ignore[arg-type]
    return OfFunction(model(data.X, data.y))


def moved_means(predictor: Predictor, X: np.ndarray, columns: Sequence[int], values: np.ndarray) -> np.ndarray:
    """The curves of any predictor."""
    n, g = len(X), values.shape[-2]
    moved = np.repeat(X, g, axis=0)
    moved[:, list(columns)] = np.broadcast_to(values, (n, g, len(columns))).reshape(n * g, -1)
    return predictor.mean(moved).reshape(n, g, -1)


@dataclass(frozen=True, eq=False)
class Unseen:
    """What a model of the other rows says of some rows.

    `means` (n, c) are its predictions; for each unit that it uses, by number, `curves` (n, g, c) are those along the
    unit's axis, and `pulls` (n, c) say how the observations pull at what it expects without the unit.
    """

    rows: np.ndarray
    means: np.ndarray
    units: list[int]
    curves: list[np.ndarray]
    pulls: list[np.ndarray]

    @classmethod
    def read(cls, result: Mapping[str, Any]) -> Unseen:
        """From the form that a checkpoint keeps."""
        rows, means = np.array(result["rows"], dtype=int), np.array(result["means"])
        curves, pulls = ([np.array(each) for each in result[name]] for name in ("curves", "pulls"))
        return cls(rows, means, [int(unit) for unit in result["units"]], curves, pulls)

    def sums(self, unit: TestedUnit) -> Sums:
        """Of a unit, under its conditional distribution."""
        if unit.number not in self.units:
            return Sums()
        place = self.units.index(unit.number)
        curves, own = self.curves[place], unit.axis.own
        expected, covariance = unit.redraws.at(self.rows).moments(curves)
        here = self.means if own is None else np.einsum("ig,igc->ic", own[self.rows], curves)
        return Sums.of(self.pulls[place], here - expected, covariance)


def unseen(data: Data, part: Part, model: GP | KnownGP | Fit, units: Sequence[TestedUnit]) -> Unseen:
    """Fit to some rows, and ask at others."""
    rows = part.rows
    predictor, there = fitted_to(model, data.take(part.fitted)), data.take(rows)
    used = [unit for unit in units if predictor.uses(unit.columns)]
    found, pulls = [], []
    for unit in used:
        values = unit.axis.values
        found.append(predictor.curves(there.X, unit.columns, values if values.ndim == 2 else values[rows]))
        expected, _ = unit.redraws.at(rows).moments(found[-1])
        pulls.append(predictor.pull(there.y, expected, there.sizes))
    return Unseen(rows, predictor.mean(there.X), [unit.number for unit in used], found, pulls)
