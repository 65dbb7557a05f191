"""What every question about the shape of an effect begins with: a model, rows, and units with their margins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from gpsift._utils.grouping import number_of
from gpsift._utils.progress import counted
from gpsift._utils.user_arrays import read_features
from gpsift._utils.words import listed
from gpsift.decomposition.monte_carlo import HOW
from gpsift.decomposition.products import ProductTriple
from gpsift.likelihoods.distributions import Gaussian
from gpsift.reference.base import MissingCapability, PlacedPosterior, Reference, Several
from gpsift.reference.ensemble import Drawn, Uncertain
from gpsift.reference.inputs import Inputs, Points
from gpsift.reference.lookup import as_reference
from gpsift.relevance.categories import Levels
from gpsift.relevance.scored import ScoredUnits
from gpsift.relevance.switched import units_on_columns, used_columns

# Of more features than this, those that are off are not told of.
MOST_UNITS = 300


@dataclass(frozen=True, eq=False)
class Asked:
    """A fitted model, the rows that it is asked about, and what is told apart: features, groups, categories."""

    model: Reference
    points: Points
    units: ScoredUnits
    of: str | None = None  # which of several functions it is

    @classmethod
    def read(
        cls,
        model: Any,
        X: Any,
        groups: Mapping[str, Sequence[str | int]] | None = None,
        categorical: Iterable[str | int] | None = None,
        of: str | int | None = None,
    ) -> Self:
        """From the arguments of a verb; by default the rows are those of the fit, or a sample of those elsewhere."""
        reference, name = function_of(as_reference(model), of)
        inputs = reference.inputs
        if X is None:
            table = inputs.training_points.table if inputs.at_hand is None else inputs.at_hand
        else:
            table, names = read_features(X)
            inputs.check(names, table.shape[1])
        points = inputs.points(table)
        units = ScoredUnits.read(groups, categorical, points.inputs)
        return cls(reference, points, _told(units, possible_columns(reference)), name)

    @property
    def X(self) -> np.ndarray:
        """The rows, in the user's units."""
        return self.points.X

    @property
    def members(self) -> Iterable[Reference]:
        """The draws of the model, or itself if it has none."""
        members = self.model.draws or (self.model,)
        return counted(members, len(members))

    @cached_property
    def is_closed(self) -> bool:
        """Whether there are closed forms."""
        return closed_posterior(next(iter(self.members)), self.X) is not None

    @property
    def how(self) -> str:
        """How averages over margins are made."""
        return "closed form" if self.is_closed else HOW

    @property
    def margined(self) -> set[int]:
        """Units that the model, or one with other hyperparameters, may depend on."""
        possible = set(possible_columns(self.model))
        return {unit for unit, columns in enumerate(self.units.columns) if possible.intersection(columns)}

    def on_columns(self, columns: Sequence[int]) -> tuple[list[int], ScoredUnits]:
        """Which units have some of the columns, and these units in a table of those alone."""
        return units_on_columns(self.units, tuple(columns))


def possible_columns(model: Reference) -> tuple[int, ...]:
    """The columns that a model, or one with other hyperparameters, may depend on."""
    return model.open_columns if isinstance(model, Uncertain) else used_columns(model)


def _told(units: ScoredUnits, possible: Sequence[int]) -> ScoredUnits:
    """All units, or of many those that the model may depend on: what is told of pairs grows with their square."""
    if len(units.names) <= MOST_UNITS:
        return units
    return units.only(*(unit for unit, columns in enumerate(units.columns) if set(possible).intersection(columns)))


def placed_posterior(model: Reference, X: np.ndarray) -> PlacedPosterior:
    """The latent posterior of a model as a triple; it is the same at all rows."""
    return model.at(model.inputs.points(X[:1])).placed_posterior()


def closed_posterior(model: Reference, X: np.ndarray) -> PlacedPosterior | None:
    """The same if its kernel is a sum of products; None where there are the model's own predictions only."""
    try:
        placed = placed_posterior(model, X)
        ProductTriple.of(placed.posterior)
    except MissingCapability:
        return None
    return placed


def function_of(model: Reference, of: str | int | None) -> tuple[Reference, str | None]:
    """The model of one of several functions, by its name or number, and its name; the model itself where it has one."""
    first = next(iter(model.draws), model)
    names = list(first.functions) if isinstance(first, Several) else []
    if not names:
        if of is not None:
            raise ValueError(f"{type(model).__name__} has one function only; `of` must be None, got {of!r}.")
        return model, None
    if of is None:
        raise MissingCapability(
            f"{type(model).__name__} has a function for each of {listed(names)}; say of which, such as of={names[0]!r}."
        )
    number = number_of(of, names)
    if number is None:
        raise ValueError(
            f"There is no function of {of!r}; there are those of {listed(names)}, to be named or numbered from 0."
        )
    chosen = [each.functions[names[number]] for each in model.draws or (model,)]  # type: ignore[attr-defined]
    return (Drawn(tuple(chosen)) if model.draws else chosen[0]), names[number]


def noise_var(model: Reference, X: np.ndarray) -> float | None:
    """The variance of normal noise around the function, in squared units of the target; None for other likelihoods."""
    response = model.at(model.inputs.points(X[:1]))
    observed, latent = response.distribution(latent=False), response.distribution(latent=True)
    return float(observed.var[0] - latent.var[0]) if isinstance(observed, Gaussian) else None


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


def axis_of(unit: int, units: ScoredUnits, X: np.ndarray, inputs: Inputs, n_values: int) -> Axis | None:
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
