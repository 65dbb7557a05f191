r"""Variances, Shapley values and surfaces from predictions alone: averages over points drawn from the margins.

These serve models whose posterior is no triple. The nodes of a unit's margin are summed over where one unit is
averaged; all other units have the values of Sobol points. With f_i for f at a point x whose unit i has the value of an
independent point y, and z_k for a point between x and y, as units change from x to y in random order,

.. math::
    V_j^{total} = \mathrm E \, \mathrm{Var}_j f , \qquad V_j = \mathrm{Var}_j \, \mathrm E f , \qquad
    V_{ij} = \tfrac14 \mathrm E (f - f_i - f_j + f_{ij})^2

(Liu and Owen 2006), and Shapley's share of the unit that changes from z_k to z_k+1 is the average of
(f(x) - (f(z_k) + f(z_k+1)) / 2) (f(z_k) - f(z_k+1)) (Goda 2021), which adds up to (f(x) - f(y))^2 / 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Self

import numpy as np

from gpsift._utils.arrays import rows_at_values
from gpsift._utils.rows import row_chunks
from gpsift.decomposition.margins import Margin
from gpsift.decomposition.variances import Variances
from gpsift.reference.base import MissingCapability, Reference
from gpsift.reference.inputs import Points

# The text that records have for numbers made in this file.
HOW = "the model's own predictions at points drawn from the margins"
# Sobol points, powers of 2: for Shapley's shares, and for averages over the nodes of a unit.
N_POINTS = 4096
N_AVERAGED = 256
# The number of points for a pair falls with the number of pairs, so that there are this many predictions in all.
PAIR_PREDICTIONS = 200_000
LEAST_PAIR_POINTS = 64
# Points at which the variance of a pair that the data have not decided is averaged.
N_OPEN = 128
# Background points of Shapley values; each is used in one order of the units and its reverse.
N_BACKGROUND = 128
# Doubles that the rows of one call of a model may hold.
ROWS_DOUBLES = 2**21

Function = Callable[[np.ndarray], np.ndarray]


def latent_mean_function(model: Reference) -> Function:
    """The latent mean of a model as a function of rows in the user's units, evaluated in chunks."""

    def mean(X: np.ndarray) -> np.ndarray:
        chunks = row_chunks(len(X), X.shape[1], 8 * ROWS_DOUBLES)
        found = [model.at(model.inputs.points(X[rows])).latent_mean for rows in chunks]
        if found[0].ndim > 1:
            raise MissingCapability(f"{type(model).__name__} predicts several numbers at a row; ask for one of them.")
        return np.concatenate(found)

    return mean


def draw_points(columns: Sequence[tuple[int, ...]], margins: Sequence[Margin], row: np.ndarray, n: int) -> np.ndarray:
    """Draw Sobol points, (n, p): values of units among the nodes of their margins, all other columns as in a row."""
    from scipy.stats import qmc  # takes a while to load

    uniform, points = qmc.Sobol(len(columns), seed=0).random(n), np.tile(row, (n, 1))
    for u, own, margin in zip(uniform.T, columns, margins, strict=True):
        points[:, list(own)] = margin.nodes[np.searchsorted(np.cumsum(margin.weights)[:-1], u)]
    return points


@dataclass(frozen=True, eq=False)
class PointPairs:
    """Pairs of independent points x and y from the margins of units, (n, p) each, in the user's units."""

    columns: tuple[tuple[int, ...], ...]
    x: np.ndarray
    y: np.ndarray

    @classmethod
    def draw(cls, columns: Sequence[tuple[int, ...]], margins: Sequence[Margin], row: np.ndarray, n: int) -> Self:
        """Draw n pairs; columns that are in no unit have the values of the row."""
        of_y = [tuple(len(row) + column for column in own) for own in columns]  # x and y beside each other in one table
        both = draw_points([*columns, *of_y], [*margins, *margins], np.tile(row, 2), n)
        x, y = np.split(both, 2, axis=1)
        return cls(tuple(columns), x, y)

    def first(self, n: int) -> PointPairs:
        """Return the first n pairs."""
        return PointPairs(self.columns, self.x[:n], self.y[:n])

    def exchange(self, *units: int) -> np.ndarray:
        """Return x with the values of y for some units."""
        points, own = self.x.copy(), [column for unit in units for column in self.columns[unit]]
        points[:, own] = self.y[:, own]
        return points


@dataclass(frozen=True, eq=False)
class MonteCarloVariances:
    """Estimators of variances: a function of rows, pairs of points, and the margins of the units."""

    f: Function
    pairs: PointPairs
    margins: tuple[Margin, ...]

    @cached_property
    def at_x(self) -> np.ndarray:
        return self.f(self.pairs.x)

    @cached_property
    def whole(self) -> float:
        """The variance of f."""
        return float(np.concatenate([self.at_x, self.f(self.pairs.y)]).var())

    def first_and_total(self, unit: int) -> tuple[float, float]:
        """The variance of a unit alone, and of all parts that it has a share in."""
        x, margin = self.pairs.x[:N_AVERAGED], self.margins[unit]
        values = self.f(rows_at_values(x, self.pairs.columns[unit], margin.nodes)).reshape(len(x), -1)
        deviations = values - (values @ margin.weights)[:, None]
        total = float(np.mean(deviations**2 @ margin.weights))
        first = float(deviations.mean(axis=0) ** 2 @ margin.weights)
        # The average over n points has a variance of its own, a share of the unit's interactions.
        n = len(values)
        return max(0.0, (n * first - total) / (n - 1)), total

    def shapley(self) -> np.ndarray:
        """Shapley's shares, (p,), scaled to add up to the variance of f at all points, which is known better."""
        n, p = len(self.pairs.x), len(self.margins)
        order = np.argsort(np.random.default_rng(0).uniform(size=(n, p)), axis=1)
        share, z, before = np.zeros(p), self.pairs.x.copy(), self.at_x
        for changing in order.T:
            for unit, own in enumerate(self.pairs.columns):
                cells = np.ix_(np.flatnonzero(changing == unit), np.array(own))
                z[cells] = self.pairs.y[cells]
            after = self.f(z)
            gains = (self.at_x - 0.5 * (before + after)) * (before - after)
            share += np.bincount(changing, weights=gains, minlength=p)
            before = after
        return share * (self.whole / (share.sum() or 1.0))

    def pair_variances(self) -> np.ndarray:
        """Variances that need both units of a pair, (p, p)."""
        p = len(self.margins)
        found, both = np.zeros((p, p)), list(combinations(range(p), 2))
        n = min(len(self.pairs.x), max(LEAST_PAIR_POINTS, PAIR_PREDICTIONS // max(1, len(both))))
        some = self.pairs.first(n)
        alone = [self.f(some.exchange(unit)) for unit in range(p)] if both else []
        for i, j in both:
            mixed = self.at_x[:n] - alone[i] - alone[j] + self.f(some.exchange(i, j))
            found[i, j] = found[j, i] = 0.25 * np.mean(mixed**2)
        return found

    def open_pairs(self, model: Reference) -> np.ndarray:
        """Variances of pairs that the data have not decided, (p, p), by the joint posterior; NaN for models without."""
        p = len(self.margins)
        found, some = np.zeros((p, p)), self.pairs.first(N_OPEN)
        signs = np.repeat([1.0, -1.0, -1.0, 1.0], N_OPEN)
        for i, j in combinations(range(p), 2):
            rows = np.concatenate([some.x, some.exchange(i), some.exchange(j), some.exchange(i, j)])
            try:
                _, covariance = model.joint(model.inputs.points(rows))
            except MissingCapability:
                return np.full((p, p), np.nan)
            blocks = (signs[:, None] * covariance * signs).reshape(4, N_OPEN, 4, N_OPEN)
            found[i, j] = found[j, i] = 0.25 * np.einsum("aibi->", blocks) / N_OPEN
        return found


def sampled_variances(
    model: Reference,
    row: np.ndarray,
    columns: Sequence[tuple[int, ...]],
    margins: Sequence[Margin],
    *,
    shapley: bool = True,
    open_pairs: bool = False,
) -> Variances:
    """Estimate the quantities of `gpsift.decomposition.variances.variances`, in squared units of the target."""
    estimators = MonteCarloVariances(
        latent_mean_function(model), PointPairs.draw(columns, margins, row, N_POINTS), tuple(margins)
    )
    alone = np.array([estimators.first_and_total(unit) for unit in range(len(columns))]).reshape(-1, 2)
    return Variances(
        first=alone[:, 0],
        total=alone[:, 1],
        whole=np.asarray(estimators.whole),
        pairs=estimators.pair_variances(),
        shapley=estimators.shapley() if shapley else None,
        open_pairs=estimators.open_pairs(model) if open_pairs else None,
    )


def sampled_shapley_values(
    model: Reference, X: np.ndarray, columns: Sequence[tuple[int, ...]], margins: Sequence[Margin]
) -> tuple[float, np.ndarray]:
    """Estimate the average of the function and Shapley values of the units at rows, (n, p); together they make f."""
    f, background = latent_mean_function(model), draw_points(columns, margins, X[0], N_BACKGROUND)
    rng, values = np.random.default_rng(0), np.zeros((len(X), len(columns)))
    for point in background:
        order = rng.permutation(len(columns))
        for units in (order, order[::-1]):
            # From the background point to each row, as one unit after another gets the row's value.
            steps = np.tile(point, (len(columns) + 1, len(X), 1))
            for step, unit in enumerate(units):
                own = list(columns[unit])
                steps[step + 1 :, :, own] = X[:, own]
            predictions = f(steps.reshape(-1, X.shape[1])).reshape(len(columns) + 1, len(X))
            values[:, units] += np.diff(predictions, axis=0).T
    return float(f(background).mean()), values / (2 * N_BACKGROUND)


def sampled_surface(
    model: Reference, X: np.ndarray, columns: Sequence[tuple[int, ...]], grids: Sequence[np.ndarray]
) -> np.ndarray:
    """Average predictions over rows with two units at each pair of their values, (g, h)."""
    f, (first, second) = latent_mean_function(model), grids
    found, rows = np.empty((len(first), len(second))), X.copy()
    for number, value in enumerate(first):
        rows[:, list(columns[0])] = value
        found[number] = f(rows_at_values(rows, columns[1], second)).reshape(len(X), len(second)).mean(axis=0)
    return found


def mixed_differences(model: Reference, points: Points, i: int, j: int, step: float) -> np.ndarray:
    """Second derivatives along two columns, per standard deviation of each, by differences, (n,)."""
    f, sd, total = latent_mean_function(model), points.inputs.sd, np.zeros(len(points))
    for up, right in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        moved = points.X.copy()
        moved[:, i] += up * step * sd[i]
        moved[:, j] += right * step * sd[j]
        total += up * right * f(moved)
    return total / (4.0 * step * step)
