r"""The same from predictions alone: averages over points that are drawn from the margins.

For models without a triple. Nodes of a unit's margin are summed over where that is one unit; all other units have the
values of Sobol points. With f_i for f at a point x whose unit i has the value of an independent point y, and z_k for a
point on the way from x to y on which units change one after another in random order,

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

from gpsift._utils.chunks import row_chunks
from gpsift.decomposition.margins import Margin
from gpsift.decomposition.variances import Variances
from gpsift.reference.base import MissingCapability, Reference
from gpsift.reference.inputs import Points

# What is said of numbers that were made here.
HOW = "the model's own predictions at points drawn from the margins"
# Sobol points, powers of 2: for Shapley's shares and for what is averaged over the nodes of a unit.
N_POINTS = 4096
N_AVERAGED = 256
# Points for a pair: up to as many, fewer where there are many pairs, with this number of predictions in all.
PAIR_PREDICTIONS = 200_000
LEAST_PAIR_POINTS = 64
# Points at which it is asked what the data have not decided of a pair.
N_OPEN = 128
# Points whose values a row has where its own are not known; each is used in one order of the units and its reverse.
N_BACKGROUND = 128
# Doubles that the rows of one call may hold.
ROWS_DOUBLES = 2**21

Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class TwoPoints:
    """Two independent points for each of n draws from the margins of units, (n, p) each, in the user's units."""

    columns: tuple[tuple[int, ...], ...]
    x: np.ndarray
    y: np.ndarray

    @classmethod
    def of(cls, columns: Sequence[tuple[int, ...]], margins: Sequence[Margin], row: np.ndarray, n: int) -> Self:
        """Columns that are in no unit have the values of the row."""
        behind = [tuple(len(row) + column for column in own) for own in columns]  # y beside x in one table
        both = drawn_points([*columns, *behind], [*margins, *margins], np.tile(row, 2), n)
        x, y = np.split(both, 2, axis=1)
        return cls(tuple(columns), x, y)

    def first(self, n: int) -> TwoPoints:
        """The first draws."""
        return TwoPoints(self.columns, self.x[:n], self.y[:n])

    def changed(self, *units: int) -> np.ndarray:
        """x with the values that y has of some units."""
        moved, own = self.x.copy(), [column for unit in units for column in self.columns[unit]]
        moved[:, own] = self.y[:, own]
        return moved


def drawn_points(columns: Sequence[tuple[int, ...]], margins: Sequence[Margin], row: np.ndarray, n: int) -> np.ndarray:
    """Sobol points, the values of each unit among the nodes of its margin, (n, p)."""
    from scipy.stats import qmc  # takes a while to load

    uniform, points = qmc.Sobol(len(columns), seed=0).random(n), np.tile(row, (n, 1))
    for u, own, margin in zip(uniform.T, columns, margins, strict=True):
        points[:, list(own)] = margin.nodes[np.searchsorted(np.cumsum(margin.weights)[:-1], u)]
    return points


def latent_mean_of(model: Reference) -> Function:
    """The latent mean of a model as a function of rows in the user's units, asked for in chunks."""

    def mean(X: np.ndarray) -> np.ndarray:
        chunks = row_chunks(len(X), X.shape[1], 8 * ROWS_DOUBLES)
        found = [model.at(model.inputs.points(X[rows])).latent_mean for rows in chunks]
        if found[0].ndim > 1:
            raise MissingCapability(f"{type(model).__name__} predicts several numbers at a row; ask for one of them.")
        return np.concatenate(found)

    return mean


@dataclass(frozen=True, eq=False)
class Sampled:
    """A function of rows, drawn points, and margins of the units."""

    f: Function
    drawn: TwoPoints
    margins: tuple[Margin, ...]

    @cached_property
    def at_x(self) -> np.ndarray:
        return self.f(self.drawn.x)

    @cached_property
    def whole(self) -> float:
        """The variance of f."""
        return float(np.concatenate([self.at_x, self.f(self.drawn.y)]).var())

    def over_nodes(self, unit: int) -> np.ndarray:
        """f at the first points with a unit at each node of its margin, (n, q)."""
        x, nodes = self.drawn.x[:N_AVERAGED], self.margins[unit].nodes
        moved = np.repeat(x, len(nodes), axis=0)
        moved[:, list(self.drawn.columns[unit])] = np.tile(nodes, (len(x), 1))
        return self.f(moved).reshape(len(x), len(nodes))

    def first_and_total(self, unit: int) -> tuple[float, float]:
        """Variances of a unit alone and in all."""
        weights, values = self.margins[unit].weights, self.over_nodes(unit)
        deviations = values - (values @ weights)[:, None]
        total = float(np.mean(deviations**2 @ weights))
        first = float(deviations.mean(axis=0) ** 2 @ weights)
        # The average over n points has a variance of its own, a share of what the unit does with others.
        n = len(values)
        return max(0.0, (n * first - total) / (n - 1)), total

    def shapley(self) -> np.ndarray:
        """Shapley's shares, (p,), made to add up to the variance of f at all points, which is known better."""
        n, p = len(self.drawn.x), len(self.margins)
        order = np.argsort(np.random.default_rng(0).uniform(size=(n, p)), axis=1)
        share, way, here = np.zeros(p), self.drawn.x.copy(), self.at_x
        for changing in order.T:
            for unit, own in enumerate(self.drawn.columns):
                cells = np.ix_(np.flatnonzero(changing == unit), np.array(own))
                way[cells] = self.drawn.y[cells]
            there = self.f(way)
            gained = (self.at_x - 0.5 * (here + there)) * (here - there)
            share += np.bincount(changing, weights=gained, minlength=p)
            here = there
        return share * (self.whole / (share.sum() or 1.0))

    def pairs(self) -> np.ndarray:
        """Variances that need both units of a pair, (p, p)."""
        p = len(self.margins)
        found, both = np.zeros((p, p)), list(combinations(range(p), 2))
        n = min(len(self.drawn.x), max(LEAST_PAIR_POINTS, PAIR_PREDICTIONS // max(1, len(both))))
        some = self.drawn.first(n)
        alone = [self.f(some.changed(unit)) for unit in range(p)] if both else []
        for i, j in both:
            mixed = self.at_x[:n] - alone[i] - alone[j] + self.f(some.changed(i, j))
            found[i, j] = found[j, i] = 0.25 * np.mean(mixed**2)
        return found

    def open_pairs(self, model: Reference) -> np.ndarray:
        """What the data have not decided of these, (p, p), from the joint posterior; NaN for models without one."""
        p = len(self.margins)
        found, some = np.zeros((p, p)), self.drawn.first(N_OPEN)
        signs = np.repeat([1.0, -1.0, -1.0, 1.0], N_OPEN)
        for i, j in combinations(range(p), 2):
            rows = np.concatenate([some.x, some.changed(i), some.changed(j), some.changed(i, j)])
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
    """What `gpsift.decomposition.variances.variances` says, in squared units of the target."""
    sampled = Sampled(latent_mean_of(model), TwoPoints.of(columns, margins, row, N_POINTS), tuple(margins))
    alone = np.array([sampled.first_and_total(unit) for unit in range(len(columns))]).reshape(-1, 2)
    return Variances(
        first=alone[:, 0],
        total=alone[:, 1],
        whole=np.asarray(sampled.whole),
        pairs=sampled.pairs(),
        shapley=sampled.shapley() if shapley else None,
        open_pairs=sampled.open_pairs(model) if open_pairs else None,
    )


def sampled_shapley_values(
    model: Reference, X: np.ndarray, columns: Sequence[tuple[int, ...]], margins: Sequence[Margin]
) -> tuple[float, np.ndarray]:
    """The average of the function, and Shapley values of the units at rows, (n, p): with it they add up to f."""
    f, background = latent_mean_of(model), drawn_points(columns, margins, X[0], N_BACKGROUND)
    rng, values = np.random.default_rng(0), np.zeros((len(X), len(columns)))
    for point in background:
        order = rng.permutation(len(columns))
        for units in (order, order[::-1]):
            values[:, units] += np.diff(_along_way(f, X, point, [columns[unit] for unit in units]), axis=1)
    return float(f(background).mean()), values / (2 * N_BACKGROUND)


def _along_way(f: Function, X: np.ndarray, point: np.ndarray, columns: Sequence[tuple[int, ...]]) -> np.ndarray:
    """f from a point to each row, as one unit after another has the row's value, (n, p + 1)."""
    way = np.tile(point, (len(columns) + 1, len(X), 1))
    for step, own in enumerate(columns):
        way[step + 1 :, :, list(own)] = X[:, list(own)]
    return f(way.reshape(-1, X.shape[1])).reshape(len(columns) + 1, len(X)).T


def sampled_surface(
    model: Reference, X: np.ndarray, columns: Sequence[tuple[int, ...]], grids: Sequence[np.ndarray]
) -> np.ndarray:
    """The average over rows of what is predicted with two units set to values, (g, h)."""
    f, (first, second) = latent_mean_of(model), grids
    found = np.empty((len(first), len(second)))
    for number, value in enumerate(first):
        moved = np.tile(X, (len(second), 1))
        moved[:, list(columns[0])] = value
        moved[:, list(columns[1])] = np.repeat(second, len(X), axis=0)
        found[number] = f(moved).reshape(len(second), len(X)).mean(axis=1)
    return found


def mixed_differences(model: Reference, points: Points, i: int, j: int, step: float) -> np.ndarray:
    """Second derivatives along two columns, per standard deviation of each, by differences, (n,)."""
    f, sd, total = latent_mean_of(model), points.inputs.sd, np.zeros(len(points))
    for up, right in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        moved = points.X.copy()
        moved[:, i] += up * step * sd[i]
        moved[:, j] += right * step * sd[j]
        total += up * right * f(moved)
    return total / (4.0 * step * step)
