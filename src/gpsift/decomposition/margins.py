r"""Describe the distribution of the values of a feature, group or category by nodes and weights: its margin.

The empirical margin of a column gives each of its n values the weight 1 / n. Gauss quadrature with Q nodes has the same
averages of polynomials of degree up to 2 Q - 1. Lanczos' iteration from the start sqrt(1 / n) makes diag(x)
tridiagonal. The eigenvalues of that matrix are the nodes, and the squares of the first entries of its eigenvectors the
weights (Golub and Welsch 1969). Averages of smooth functions are then nearly those over all rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpsift._utils.quadrature import gauss_from_recurrence, gauss_hermite, gauss_legendre
from gpsift._utils.text import join_names
from gpsift.relevance.feature_groups import FeatureGroups

# A column with at most this many values keeps them as nodes. Otherwise this is the number of nodes.
N_NODES = 32
# A group of columns has no Gauss quadrature: at most this many rows represent all of them.
MOST_GROUP_ROWS = 500
# Lanczos' iteration ends at a vector shorter than this, in ranges of the column: the nodes found are then exact.
EXHAUSTED = 1e-13
KINDS = ("data", "uniform", "normal")

Margins = str | Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Margin:
    """The distribution of a unit: values of its columns, (q, k) in the user's units, and their weights, (q,)."""

    nodes: np.ndarray
    weights: np.ndarray

    def on(self, places: Sequence[int]) -> Margin:
        """Return the margin of some of the columns, by their places among those of the unit."""
        return Margin(self.nodes[:, list(places)], self.weights)


def read_margins(
    margins: Margins, X: np.ndarray, units: FeatureGroups, needed: Collection[int] | None = None
) -> tuple[Margin, ...]:
    """Read the margin of each unit from a user's choice; units that are not needed get one row.

    Categories and groups always have the margin of the rows.
    """
    kind, own = (margins, {}) if isinstance(margins, str) else ("data", margins)
    if not isinstance(own, Mapping) or kind not in KINDS:
        raise ValueError(
            f'`margins` must be "data", "uniform", "normal" or a mapping such as {{"age": nodes}} from features to '
            f"their values, got {margins!r}."
        )
    unknown = [name for name in own if name not in units.names]
    if unknown:
        raise ValueError(f"`margins` names {join_names(unknown)}, but the features are {join_names(units.names)}.")
    found = []
    for number, name in enumerate(units.names):
        columns, rows = list(units.columns[number]), X if needed is None or number in needed else X[:1]
        if name in own:
            found.append(check_margin(own[name], name, len(columns)))
        elif number in units.levels:
            found.append(Margin(units.levels[number].values, units.levels[number].shares))
        elif len(columns) > 1:
            found.append(group_margin(rows[:, columns]))
        else:
            margin = {"data": data_margin, "uniform": uniform_margin, "normal": normal_margin}[kind]
            found.append(margin(rows[:, columns[0]]))
    return tuple(found)


def data_margin(x: np.ndarray, n_nodes: int = N_NODES) -> Margin:
    """Return the values of a column with their shares, or nodes of Gauss quadrature if there are more values."""
    values, counts = np.unique(x, return_counts=True)
    shares = counts / counts.sum()
    return Margin(values[:, None], shares) if len(values) <= n_nodes else _gauss(values, shares, n_nodes)


def uniform_margin(x: np.ndarray, n_nodes: int = N_NODES) -> Margin:
    """Return a uniform margin over the range of a column."""
    nodes, weights = gauss_legendre(n_nodes)
    low, high = x.min(), x.max()
    return Margin((0.5 * (low + high) + 0.5 * (high - low) * nodes)[:, None], 0.5 * weights)


def normal_margin(x: np.ndarray, n_nodes: int = N_NODES) -> Margin:
    """Return a normal margin with the mean and the standard deviation of a column."""
    nodes, weights = gauss_hermite(n_nodes)
    return Margin((x.mean() + x.std() * nodes)[:, None], weights / weights.sum())


def group_margin(rows: np.ndarray) -> Margin:
    """Return the rows of a group with their shares; large tables are sampled."""
    if len(rows) > MOST_GROUP_ROWS:
        rows = rows[np.random.default_rng(0).choice(len(rows), MOST_GROUP_ROWS, replace=False)]
    values, counts = np.unique(rows, axis=0, return_counts=True)
    return Margin(values, counts / counts.sum())


def check_margin(given: Any, name: str, n_columns: int) -> Margin:
    """Check a user's margin: nodes, (q,) or (q, k), or a pair of nodes and weights."""
    nodes, weights = given if isinstance(given, tuple) else (given, None)
    nodes = np.asarray(nodes, dtype=float)
    nodes = nodes[:, None] if nodes.ndim == 1 else nodes
    if nodes.ndim != 2 or nodes.shape[1] != n_columns or not nodes.size or not np.all(np.isfinite(nodes)):
        raise ValueError(f"The margin of {name!r} must be finite values, (q,) or (q, {n_columns}), got {given!r}.")
    weights = np.ones(len(nodes)) if weights is None else np.asarray(weights, dtype=float)
    if weights.shape != (len(nodes),) or not np.all(weights >= 0) or not 0 < weights.sum() < np.inf:
        raise ValueError(f"The margin of {name!r} has {len(nodes)} values and needs as many weights of at least 0.")
    return Margin(nodes, weights / weights.sum())


def _gauss(values: np.ndarray, shares: np.ndarray, n_nodes: int) -> Margin:
    """Compute Gauss quadrature for the distribution that gives these values these shares."""
    center, scale = 0.5 * (values[0] + values[-1]), 0.5 * (values[-1] - values[0])
    x = (values - center) / scale
    basis = np.zeros((n_nodes, len(x)))
    diagonal, off_diagonal = np.empty(n_nodes), np.empty(n_nodes - 1)
    vector, found = np.sqrt(shares), n_nodes
    for k in range(n_nodes):
        basis[k] = vector
        moved = x * vector
        diagonal[k] = vector @ moved
        for _ in range(2):  # a second pass makes the vectors orthogonal up to rounding
            moved -= basis[: k + 1].T @ (basis[: k + 1] @ moved)
        length = float(np.linalg.norm(moved))
        if k == n_nodes - 1:
            break
        if length < EXHAUSTED:
            found = k + 1
            break
        off_diagonal[k], vector = length, moved / length
    nodes, weights = gauss_from_recurrence(diagonal[:found], off_diagonal[: found - 1])
    return Margin((center + scale * nodes)[:, None], weights)
