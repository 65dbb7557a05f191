r"""Test on held-out rows whether the target depends on a feature given all others: splits, predictions, statistic.

Let m be the prediction of a model that was fitted to other rows, and x~ a row with its feature drawn again from the
conditional distribution given the others. With

.. math:: \bar m_i = E\, m(\tilde x_i), \qquad V_i = \mathrm{Var}\, m(\tilde x_i), \qquad d_i = m(x_i) - \bar m_i ,

let r_i = y_i - \bar m_i, or any other function of y and the other features (without Gaussian noise the derivative of
the log density at \bar m_i). If y does not depend on the feature given the others, then given y and the others

.. math:: T = \sum_i r_i d_i

has mean 0 and variance \sum_i r_i^2 V_i, *for any model*: only the conditional distribution has to be right.
Divided by the larger of this standard deviation and that of the observed products, \sum_i r_i^2 d_i^2, it is at most
standard normal; large values are evidence for the feature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import ndtr

from gpsift._utils.arrays import rows_at_values
from gpsift._utils.threads import blas_threads_for
from gpsift.gp import GP, DrawnGP, FittedGP, first_member
from gpsift.gp.refit import condition_on
from gpsift.reference.inputs import Points
from gpsift.selection.conditional_test.conditionals import TestedUnit
from gpsift.selection.data import Data

# With folds in order, n / UNTESTED_DIVISOR of n rows are only trained on and never tested.
UNTESTED_DIVISOR = 3


@dataclass(frozen=True)
class StatisticSums:
    """Sums over rows: products of residual and deviation, their variance given the conditional, and their squares."""

    products: float = 0.0
    variance: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, residual: np.ndarray, deviation: np.ndarray, covariance: np.ndarray) -> StatisticSums:
        """Sum over residuals and deviations (n, c) of c predictions of each row, with their covariance (n, c, c)."""
        product = np.sum(residual * deviation, axis=1)
        variance = np.einsum("ic,icd,id->", residual, covariance, residual)
        return cls(float(product.sum()), float(variance), float(product @ product))

    def __add__(self, other: StatisticSums) -> StatisticSums:
        return StatisticSums(
            self.products + other.products, self.variance + other.variance, self.squares + other.squares
        )

    @property
    def z(self) -> float:
        """The statistic in standard deviations; minus infinity where no model reacts to the feature."""
        largest = max(self.variance, self.squares)
        return self.products / float(np.sqrt(largest)) if largest > 0 else -np.inf

    @property
    def p(self) -> float:
        """The probability of a value as large where the feature does not matter."""
        return float(ndtr(-self.z))


@dataclass(frozen=True, eq=False)
class Split:
    """Numbers of the rows that are tested, and of those that the model is fitted to."""

    test: np.ndarray
    train: np.ndarray


@dataclass(frozen=True)
class InOrder:
    """Folds that follow each other: each is tested by a model of the rows before it, in a random order.

    A third of the rows is only fitted to. P-values are then right for *any* model, such as one that follows the noise,
    but fewer features are found.

    Parameters
    ----------
    folds : int
    """

    folds: int = 5


def split_k_folds(n: int, folds: int, seed: Sequence[int]) -> list[Split]:
    """Test every row once, after a fit to all rows of other folds."""
    _check_folds(n, folds, n)
    number = np.random.default_rng(seed).permutation(n) % folds
    return [Split(np.flatnonzero(number == k), np.flatnonzero(number != k)) for k in range(folds)]


def split_in_order(n: int, folds: int, seed: Sequence[int]) -> list[Split]:
    """Test every row except the first ones, in a random order, once, after a fit to rows before it.

    No two folds are then fitted to each other, so the variance of a sum over folds is the sum of their variances.
    """
    first = max(2, round(n / UNTESTED_DIVISOR))
    _check_folds(n - first, folds, n)
    order = np.random.default_rng(seed).permutation(n)
    edges = np.linspace(first, n, folds + 1).astype(int)
    return [Split(np.sort(order[a:b]), np.sort(order[:a])) for a, b in pairwise(edges)]


def _check_folds(n_tested: int, folds: int, n: int) -> None:
    if folds > n_tested:
        raise ValueError(f"`folds` must be at most {n_tested} with {n} rows, got {folds}.")


@dataclass(frozen=True, eq=False)
class Predictor:
    """A user's fitted model: its probabilities of classes, or its predictions."""

    fitted: Any

    def mean(self, X: np.ndarray) -> np.ndarray:
        """Predict c numbers for each row, (n, c)."""
        if hasattr(self.fitted, "predict_proba"):
            return np.asarray(self.fitted.predict_proba(X), dtype=float)
        return np.asarray(self.fitted.predict(X), dtype=float).reshape(len(X), -1)

    def curves(self, X: np.ndarray, columns: Sequence[int], values: np.ndarray) -> np.ndarray:
        """Predict (n, g, c) with some columns at each of the values (g, k), or (n, g, k) of each row."""
        return self.mean(rows_at_values(X, columns, values)).reshape(len(X), values.shape[-2], -1)

    def residuals(self, y: np.ndarray, mean: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Compute residuals of the observations at these predictions, (n, c), up to a factor."""
        if hasattr(self.fitted, "predict_proba"):
            return (y[:, None] == np.asarray(self.fitted.classes_)) - mean
        return y[:, None] - mean

    def uses(self, columns: Sequence[int]) -> bool:
        """Whether predictions depend on any of these columns."""
        return True


@dataclass(frozen=True, eq=False)
class GPPredictor(Predictor):
    """A Gaussian process of this package: its latent means, and the derivatives of the log density at these."""

    def mean(self, X: np.ndarray) -> np.ndarray:
        # `predict` would also compute variances, which take most of the time.
        latent = self._average(lambda member, points: member.at(points).latent_mean, X)
        return latent[:, None] if latent.ndim == 1 else latent

    def curves(self, X: np.ndarray, columns: Sequence[int], values: np.ndarray) -> np.ndarray:
        if len(columns) > 1 or values.ndim > 2:
            return super().curves(X, columns, values)
        (j,), base, offset = columns, np.zeros(len(X)), values[:, 0]
        found = self._average(
            lambda member, points: member.scaling.y_center + member.at(points).section(j, base, offset), X
        )
        return found.reshape(len(X), offset.size, -1)

    def _average(self, function: Callable[[FittedGP, Points], np.ndarray], X: np.ndarray) -> np.ndarray:
        """Average a function of the model at rows over its draws, if it has some."""
        members = self.fitted.members if isinstance(self.fitted, DrawnGP) else (self.fitted,)
        with blas_threads_for(self.fitted.inputs.n_rows):
            return np.mean([function(member, member.inputs.points(X)) for member in members], axis=0)

    def residuals(self, y: np.ndarray, mean: np.ndarray, size: np.ndarray) -> np.ndarray:
        one = first_member(self.fitted)
        likelihood = one.likelihood
        if likelihood.has_closed_form:
            return y[:, None] - mean
        f = mean if likelihood.n_latent > 1 else mean[:, 0]
        slopes = likelihood.in_units(one.scaling.y_scale).derivatives(y, f, size).first
        return slopes.reshape(mean.shape)

    def uses(self, columns: Sequence[int]) -> bool:
        return bool(set(columns).intersection(self.fitted.used))


@dataclass(frozen=True, eq=False)
class KnownGP:
    """A Gaussian process whose hyperparameters are known: those of a fitted one."""

    fitted: FittedGP


Fit = Callable[[np.ndarray, np.ndarray], Any]


@dataclass(frozen=True, eq=False)
class HeldOutPredictions:
    """Predictions of rows by a model of other rows.

    `means` (n, c) are its predictions; for each unit that it uses, by number, `curves` (n, g, c) are those along the
    unit's axis, and `residuals` (n, c) those of the observations at its predictions without the unit.
    """

    rows: np.ndarray
    means: np.ndarray
    units: list[int]
    curves: list[np.ndarray]
    residuals: list[np.ndarray]

    @classmethod
    def read(cls, result: Mapping[str, Any]) -> HeldOutPredictions:
        """Restore the result of a task."""
        rows, means = np.array(result["rows"], dtype=int), np.array(result["means"])
        curves, residuals = ([np.array(each) for each in result[name]] for name in ("curves", "residuals"))
        return cls(rows, means, [int(unit) for unit in result["units"]], curves, residuals)

    def sums(self, unit: TestedUnit) -> StatisticSums:
        """Return the sums of the statistic of a unit, under its conditional."""
        if unit.number not in self.units:
            return StatisticSums()
        place = self.units.index(unit.number)
        curves, own = self.curves[place], unit.axis.own
        expected, covariance = unit.draws.at(self.rows).moments(curves)
        means = self.means if own is None else np.einsum("ig,igc->ic", own[self.rows], curves)
        return StatisticSums.of(self.residuals[place], means - expected, covariance)


def predict_held_out(
    data: Data, split: Split, model: GP | KnownGP | Fit, units: Sequence[TestedUnit]
) -> HeldOutPredictions:
    """Fit a model to the training rows of a split, and predict its test rows."""
    rows, train = split.test, data.take(split.train)
    held_out = data.take(rows)
    if isinstance(model, KnownGP):
        predictor: Predictor = GPPredictor(condition_on(model.fitted, train.X, train.y, train.size))
    elif isinstance(model, GP):
        table: Any = train.table(range(len(train.names)))
        predictor = GPPredictor(model.fit(table, train.y, **train.extras))  # type: ignore[arg-type]
    else:
        predictor = Predictor(model(train.X, train.y))
    used = [unit for unit in units if predictor.uses(unit.columns)]
    curves, residuals = [], []
    for unit in used:
        values = unit.axis.values
        curves.append(predictor.curves(held_out.X, unit.columns, values if values.ndim == 2 else values[rows]))
        expected, _ = unit.draws.at(rows).moments(curves[-1])
        residuals.append(predictor.residuals(held_out.y, expected, held_out.size))
    return HeldOutPredictions(rows, predictor.mean(held_out.X), [unit.number for unit in used], curves, residuals)
