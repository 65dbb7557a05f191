r"""Estimate variances, Shapley values and surfaces from predictions alone, by points drawn from the margins.

These estimates are for models without closed forms. An average over one unit is a sum over the nodes of its margin; an
average over several units is one over Sobol points x and y, which are independent. Let f_i be f at x with unit i from
y, and let z_k be x with the first k units of a random order from y. Then

.. math::
    V_j^{total} = \mathrm E \, \mathrm{Var}_j f , \qquad V_j = \mathrm{Var}_j \, \mathrm E f , \qquad
    V_{ij} = \tfrac14 \mathrm E (f - f_i - f_j + f_{ij})^2

(Liu and Owen 2006). Shapley's share of the unit that changes from z_k to z_k+1 is the average of
(f(x) - (f(z_k) + f(z_k+1)) / 2) (f(z_k) - f(z_k+1)) (Goda 2021); these terms add up to (f(x) - f(y))^2 / 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from gpsift._utils.arrays import rows_at_values
from gpsift._utils.rows import row_chunks
from gpsift.decomposition.margins import Margin
from gpsift.decomposition.variances import Variances
from gpsift.reference.base import MissingCapability, Reference
from gpsift.reference.inputs import Points

# The text in results whose numbers come from this file.
SAMPLED = "the model's own predictions at points drawn from the margins"
# Sobol points, powers of 2: for Shapley's shares, and for averages over the nodes of a unit.
N_POINTS = 4096
N_AVERAGED = 256
# The number of predictions for all pairs. Each pair has an equal part of them, but at least this many points.
PAIR_PREDICTIONS = 200_000
LEAST_PAIR_POINTS = 64
# Points over which the undecided part of the variance of a pair is averaged.
N_OPEN = 128
# Background points of Shapley values; each is used in one order of the units and its reverse.
N_BACKGROUND = 128
# The largest number of doubles in the rows of one call of a model.
ROWS_DOUBLES = 2**21

Function = Callable[[np.ndarray], np.ndarray]


def latent_mean_function(model: Reference) -> Function:
    """Return the latent mean of a model as a function of rows in the user's units, evaluated in chunks."""

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


def exchange(x: np.ndarray, y: np.ndarray, *columns: tuple[int, ...]) -> np.ndarray:
    """Return x with the values of y in some units, which are given by their columns."""
    mixed, own = x.copy(), [column for unit in columns for column in unit]
    mixed[:, own] = y[:, own]
    return mixed


def estimate_variances(
    model: Reference,
    row: np.ndarray,
    columns: Sequence[tuple[int, ...]],
    margins: Sequence[Margin],
    *,
    shapley: bool = True,
    undecided_pairs: bool = False,
) -> Variances:
    """Estimate the quantities of `gpsift.decomposition.variances.variances`, in squared units of the target.

    Columns that are in no unit have the values of the row.
    """
    f, n_columns = latent_mean_function(model), len(row)
    # x and y are independent points, (n, columns) each, drawn as one table of twice as many columns.
    of_y = [tuple(n_columns + column for column in own) for own in columns]
    both = draw_points([*columns, *of_y], [*margins, *margins], np.tile(row, 2), N_POINTS)
    x, y = np.split(both, 2, axis=1)
    at_x = f(x)
    whole = float(np.concatenate([at_x, f(y)]).var())
    alone = [_first_and_total(f, x[:N_AVERAGED], own, margin) for own, margin in zip(columns, margins, strict=True)]
    first, total = np.array(alone).reshape(-1, 2).T
    return Variances(
        first=first,
        total=total,
        whole=np.asarray(whole),
        pairs=_pair_variances(f, x, y, at_x, columns),
        shapley=_shapley_shares(f, x, y, at_x, columns, whole) if shapley else None,
        undecided_pairs=_undecided_pairs(model, x[:N_OPEN], y[:N_OPEN], columns) if undecided_pairs else None,
    )


def _first_and_total(f: Function, x: np.ndarray, own: tuple[int, ...], margin: Margin) -> tuple[float, float]:
    """Estimate the variance of a unit's own part, and of all parts that contain it, by the nodes of its margin."""
    n = len(x)
    values = f(rows_at_values(x, own, margin.nodes)).reshape(n, -1)
    deviations = values - (values @ margin.weights)[:, None]
    total = float(np.mean(deviations**2 @ margin.weights))
    first = float(deviations.mean(axis=0) ** 2 @ margin.weights)
    # The variance of an average over n points is too large by (total - first) / n, which is subtracted.
    return max(0.0, (n * first - total) / (n - 1)), total


def _shapley_shares(
    f: Function, x: np.ndarray, y: np.ndarray, at_x: np.ndarray, columns: Sequence[tuple[int, ...]], whole: float
) -> np.ndarray:
    """Estimate Shapley's shares, (p,), scaled to add up to the variance of f, whose estimate is more precise."""
    n, p = len(x), len(columns)
    order = np.argsort(np.random.default_rng(0).uniform(size=(n, p)), axis=1)
    share, z, before = np.zeros(p), x.copy(), at_x
    for changing in order.T:
        for unit, own in enumerate(columns):
            cells = np.ix_(np.flatnonzero(changing == unit), np.array(own))
            z[cells] = y[cells]
        after = f(z)
        share += np.bincount(changing, weights=(at_x - 0.5 * (before + after)) * (before - after), minlength=p)
        before = after
    return share * (whole / (share.sum() or 1.0))


def _pair_variances(
    f: Function, x: np.ndarray, y: np.ndarray, at_x: np.ndarray, columns: Sequence[tuple[int, ...]]
) -> np.ndarray:
    """Estimate the variances that need both units of a pair, (p, p)."""
    p = len(columns)
    found, pairs = np.zeros((p, p)), list(combinations(range(p), 2))
    if not pairs:
        return found
    n = min(len(x), max(LEAST_PAIR_POINTS, PAIR_PREDICTIONS // len(pairs)))
    x, y = x[:n], y[:n]
    alone = [f(exchange(x, y, own)) for own in columns]
    for i, j in pairs:
        mixed = at_x[:n] - alone[i] - alone[j] + f(exchange(x, y, columns[i], columns[j]))
        found[i, j] = found[j, i] = 0.25 * np.mean(mixed**2)
    return found


def _undecided_pairs(model: Reference, x: np.ndarray, y: np.ndarray, columns: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Estimate the undecided variances of pairs, (p, p), by the joint posterior; NaN for models without one."""
    n, p = len(x), len(columns)
    found, signs = np.zeros((p, p)), np.repeat([1.0, -1.0, -1.0, 1.0], n)
    for i, j in combinations(range(p), 2):
        a, b = columns[i], columns[j]
        rows = np.concatenate([x, exchange(x, y, a), exchange(x, y, b), exchange(x, y, a, b)])
        try:
            _, covariance = model.joint(model.inputs.points(rows))
        except MissingCapability:
            return np.full((p, p), np.nan)
        blocks = (signs[:, None] * covariance * signs).reshape(4, n, 4, n)
        found[i, j] = found[j, i] = 0.25 * np.einsum("aibi->", blocks) / n
    return found


def estimate_shapley_values(
    model: Reference, X: np.ndarray, columns: Sequence[tuple[int, ...]], margins: Sequence[Margin]
) -> tuple[float, np.ndarray]:
    """Estimate the average of the function and Shapley values of the units at rows, (n, p); they add up to f."""
    f, background = latent_mean_function(model), draw_points(columns, margins, X[0], N_BACKGROUND)
    rng, values = np.random.default_rng(0), np.zeros((len(X), len(columns)))
    for point in background:
        order = rng.permutation(len(columns))
        for units in (order, order[::-1]):
            # Change one unit after another from the value of the background point to that of the row.
            steps = np.tile(point, (len(columns) + 1, len(X), 1))
            for step, unit in enumerate(units):
                own = list(columns[unit])
                steps[step + 1 :, :, own] = X[:, own]
            predictions = f(steps.reshape(-1, X.shape[1])).reshape(len(columns) + 1, len(X))
            values[:, units] += np.diff(predictions, axis=0).T
    return float(f(background).mean()), values / (2 * N_BACKGROUND)


def estimate_surface(
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
    """Compute second derivatives along two columns, per standard deviation of each, by differences, (n,)."""
    f, sd, total = latent_mean_function(model), points.inputs.sd, np.zeros(len(points))
    for up, right in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        moved = points.X.copy()
        moved[:, i] += up * step * sd[i]
        moved[:, j] += right * step * sd[j]
        total += up * right * f(moved)
    return total / (4.0 * step * step)
