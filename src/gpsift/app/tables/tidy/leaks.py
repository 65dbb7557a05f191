"""Columns that may be another form of the target: alone they nearly give it away."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from gpsift._utils.validation import column_sd
from gpsift.app.tables.tabular import Prepared

# Correlation of values or of ranks, in size.
NEARLY_ONE = 0.9995
# Of the rows, how many may be of another class than the others of their value or their side.
EXCEPTIONS = 0.002
# With fewer rows chance does as much.
FEWEST_ROWS = 20
# Values that each few rows have say the class of these by chance.
ROWS_OF_A_VALUE = 5


def leaking(table: Prepared) -> tuple[str, ...]:
    """The user's columns one of which is nearly enough to know the target."""
    if len(table.y) < FEWEST_ROWS:
        return ()
    if table.task != "classification":
        return _owners(table, list(map(str, table.X.columns)), _going_along(table.X.to_numpy(), table.y))
    columns = table.X.drop(columns=[name for members in table.groups.values() for name in members])
    codes = {name: pd.factorize(table.rows[name])[0].astype(float) for name in table.categories}
    columns = columns.assign(**codes)
    return _owners(
        table, list(map(str, columns.columns)), np.array([_tells_class(x, table.y) for x in columns.to_numpy().T])
    )


def _owners(table: Prepared, columns: Sequence[str], found: np.ndarray) -> tuple[str, ...]:
    owner = table.owner
    return tuple(dict.fromkeys(owner.get(columns[j], columns[j]) for j in np.flatnonzero(found).tolist()))


def _going_along(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Columns that rise or fall with the target, in a straight line or not, (p,) booleans."""
    ranks = pd.DataFrame(X).rank().to_numpy()
    both = np.abs([_correlations(X, y), _correlations(ranks, pd.Series(y).rank().to_numpy())])
    return both.max(axis=0) > NEARLY_ONE


def _correlations(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):
        r = (X - X.mean(axis=0)).T @ (y - y.mean()) / len(y) / (column_sd(X) * y.std())
    return np.nan_to_num(r)


def _tells_class(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether the classes lie one beside the other along a column, or each of its values has one class."""
    return _sides(x, y) or _values(x, y)


def _sides(x: np.ndarray, y: np.ndarray) -> bool:
    order = np.argsort(x, kind="stable")
    changes = np.flatnonzero(np.diff(y[order]))
    # A change among equal values is none: nothing would tell these rows apart.
    ties = np.diff(x[order])[changes] == 0
    return not ties.any() and len(changes) <= len(np.unique(y)) - 1 + EXCEPTIONS * len(y)


def _values(x: np.ndarray, y: np.ndarray) -> bool:
    values, codes = np.unique(x, return_inverse=True)
    n = len(x)
    if len(values) < len(np.unique(y)) or n < ROWS_OF_A_VALUE * len(values):
        return False
    return bool(n - pd.crosstab(codes, y).to_numpy().max(axis=1).sum() <= EXCEPTIONS * n)
