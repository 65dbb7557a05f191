"""The values along which a unit is moved: a grid of numbers, or the levels of a category."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpsift.reference.inputs import Inputs
from gpsift.relevance.feature_groups import FeatureGroups
from gpsift.relevance.measure import Levels

# Values along a number, and between which quantiles of it: beyond them lie too few rows to say much.
N_VALUES = 41
RANGE = (0.01, 0.99)
# A number with no more than this many different values is moved along these.
FEW_VALUES = 12


@dataclass(frozen=True, eq=False)
class Axis:
    """Values of the columns of a unit, (g, k), in the user's units; with labels, (g,), where they are levels."""

    values: np.ndarray
    labels: tuple[str, ...] | None = None

    @property
    def coordinates(self) -> np.ndarray:
        """Where the values are on a picture, (g,): numbers where they are, levels in their order."""
        return self.values[:, 0] if self.labels is None else np.arange(float(len(self.values)))


def axis_of(unit: int, units: FeatureGroups, X: np.ndarray, inputs: Inputs, n_values: int) -> Axis | None:
    """Of a unit; None for a group of columns that is no category, along which there is no one way."""
    if unit in units.levels:
        return Axis(units.levels[unit].values, level_labels(units.levels[unit], units.names[unit], inputs))
    if len(units.columns[unit]) > 1:
        return None
    x = X[:, units.columns[unit][0]]
    distinct = np.unique(x)
    if len(distinct) <= FEW_VALUES:
        return Axis(distinct[:, None])
    low, high = np.quantile(x, RANGE)
    return Axis(np.linspace(low, high, n_values)[:, None])


def level_labels(levels: Levels, name: str, inputs: Inputs) -> tuple[str, ...]:
    """What the levels of a category are called: their codes, or what its indicator columns are called.

    Of two levels one has no column; what it is called, the recipe of the inputs knows, if there is one.
    """
    names = inputs.names
    columns = [names[column].removeprefix(name).lstrip("=_ ") or names[column] for column in levels.columns]
    are_indicators = np.isin(levels.values, (0.0, 1.0)).all() and (levels.values.sum(axis=1) <= 1.0).all()
    is_named = names[levels.columns[0]] != name
    if not (are_indicators and is_named):
        return tuple(", ".join(f"{value:g}" for value in row) for row in levels.values)
    base = () if inputs.recipe is None else inputs.recipe.base_levels.get(name, ())
    none = base[0] if base else f"not {columns[0]}" if len(columns) == 1 else "none of these"
    return tuple(columns[int(row.argmax())] if row.any() else none for row in levels.values)
