"""Read the arguments that all functions of this package share: a model, rows, and units.

Units are features, groups and categories. `EffectContext` has the arguments after reading. `value_grid` returns the
values along which a unit is varied: a grid of numbers, or the levels of a category.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np

from gpsift._utils.progress import track
from gpsift._utils.text import join_names
from gpsift._utils.threads import blas_threads_for
from gpsift._utils.validation import feature_index, read_features
from gpsift.decomposition.margins import Margin, Margins, read_margins
from gpsift.decomposition.monte_carlo import SAMPLED
from gpsift.decomposition.products import ProductTriple
from gpsift.likelihoods.distributions import Gaussian
from gpsift.reference.base import MissingCapability, PlacedPosterior, Reference
from gpsift.reference.ensemble import Ensemble, members_of
from gpsift.reference.inputs import Inputs, Points
from gpsift.reference.lookup import as_reference
from gpsift.relevance.feature_groups import FeatureGroups, Levels
from gpsift.relevance.intervals import warn_if_unreliable
from gpsift.relevance.rank import versions

# With more units than this, inactive ones are left out.
MOST_UNITS = 300
# A grid of a numeric feature: its size, and the quantiles of the data between which it lies. Few rows lie beyond them.
N_VALUES = 41
RANGE = (0.01, 0.99)
# The grid of a feature with no more distinct values than this consists of these values.
FEW_VALUES = 12

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class EffectContext:
    """A fitted model, the rows at which its effects are described, and the units that effects are attributed to."""

    model: Reference | Ensemble
    points: Points
    units: FeatureGroups
    of: str | None = None  # the name of the function, where the model has several

    @classmethod
    def read(
        cls,
        model: Any,
        X: Any,
        groups: Mapping[str, Sequence[str | int]] | None = None,
        categorical: Iterable[str | int] | None = None,
        of: str | int | None = None,
    ) -> Self:
        """Read a user's arguments; rows default to the training rows, or to the sample of them that the model keeps."""
        reference, name = select_function(as_reference(model), of)
        inputs = reference.inputs
        if X is None:
            table = inputs.training_points.table if inputs.training_sample is None else inputs.training_sample
        else:
            table, names = read_features(X)
            inputs.check(names, table.shape[1])
        points = inputs.points(table)
        units = FeatureGroups.read(groups, categorical, points.inputs)
        if len(units.names) > MOST_UNITS:  # matrices of pairs grow with the square of the number of units
            units = units.select(*_units_with(units, reference.open_columns))
        return cls(reference, points, units, name)

    @property
    def X(self) -> np.ndarray:
        return self.points.X

    @property
    def members(self) -> Iterable[Reference]:
        """The draws of the model, or the model itself if it has none."""
        members = members_of(self.model)
        return track(members, len(members))

    @property
    def first_member(self) -> Reference:
        """The first draw of the model, or the model itself if it has none."""
        return members_of(self.model)[0]

    @property
    def is_ensemble(self) -> bool:
        return isinstance(self.model, Ensemble)

    @cached_property
    def is_closed(self) -> bool:
        """Whether the averages of the model have closed forms."""
        return closed_posterior(self.first_member, self.X) is not None

    def shared_fields(self, **details: Any) -> dict[str, Any]:
        """Return the fields that all results have."""
        details = {"n_rows": len(self.X), **details, "versions": versions()}
        how = "closed form" if self.is_closed else SAMPLED
        return {"mean_of": self.model.mean_of, "of": self.of, "how": how, "details": details}

    def margins(self, margins: Margins, X: np.ndarray | None = None) -> tuple[Margin, ...]:
        """Read the margin of each unit from rows, by default those of the context."""
        needed = _units_with(self.units, self.model.open_columns)
        return read_margins(margins, self.X if X is None else X, self.units, needed)

    def open_units(self, margins: Sequence[Margin]) -> tuple[list[int], FeatureGroups, list[Margin]]:
        """Return the numbers of the units that models of `map_draws` depend on, and these units with their margins."""
        columns = self.model.open_columns
        kept, units = self.units.on_columns(columns)
        coding = [[place for place, c in enumerate(self.units.columns[j]) if c in columns] for j in kept]
        return kept, units, [margins[j].on(places) for j, places in zip(kept, coding, strict=True)]

    def blas_threads(self) -> AbstractContextManager[Any]:
        """Return a context manager in which BLAS has as many threads as a model of this size gains from."""
        return blas_threads_for(self.model.inputs.n_rows or len(self.X))

    def map_draws(self, function: Callable[[Reference], T], n_draws: int, seed: int) -> tuple[list[T], float]:
        """Apply a function to models with drawn hyperparameters; returns also the k-hat of these draws.

        The draws come from an approximation of the posterior of the hyperparameters. A large k-hat gives a warning.
        """
        assert isinstance(self.model, Reference)  # an ensemble has draws of its own
        drawn = self.model.map_draws(function, n_draws, seed)
        warn_if_unreliable(drawn.k_hat)
        return drawn.values, drawn.k_hat


def _units_with(units: FeatureGroups, columns: Sequence[int]) -> list[int]:
    """Return indices of the units that have one of the columns."""
    return [unit for unit, own in enumerate(units.columns) if set(columns).intersection(own)]


def closed_posterior(model: Reference, X: np.ndarray) -> PlacedPosterior | None:
    """Return the latent posterior of a model whose kernel is a sum of products, or None for all other models."""
    try:
        placed = model.at(model.inputs.points(X[:1])).placed_posterior()  # it does not depend on the rows
        ProductTriple.of(placed.posterior)
    except MissingCapability:
        return None
    return placed


def select_function(model: Reference | Ensemble, of: str | int | None) -> tuple[Reference | Ensemble, str | None]:
    """Select one function of a model with several, by name or number; returns its model and its name.

    A model with one function is returned as it is, with no name.
    """
    names = list(model.functions)
    if not names:
        if of is not None:
            raise ValueError(f"{type(model).__name__} has one function only; `of` must be None, got {of!r}.")
        return model, None
    if of is None:
        raise MissingCapability(
            f"{type(model).__name__} has a function for each of {join_names(names)}; say of which, such as "
            f"of={names[0]!r}."
        )
    number = feature_index(of, names)
    if number is None:
        raise ValueError(
            f"There is no function of {of!r}; there are those of {join_names(names)}, to be named or numbered from 0."
        )
    return model.functions[names[number]], names[number]


def noise_var(model: Reference, X: np.ndarray) -> float | None:
    """Return the variance of Gaussian noise, in squared units of the target, or None for other likelihoods."""
    response = model.at(model.inputs.points(X[:1]))
    observed, latent = response.distribution(latent=False), response.distribution(latent=True)
    return float(observed.var[0] - latent.var[0]) if isinstance(observed, Gaussian) else None


@dataclass(frozen=True, eq=False)
class ValueGrid:
    """Values of the columns of a unit, (g, k), in the user's units, with labels, (g,), for the levels of a category."""

    values: np.ndarray
    labels: tuple[str, ...] | None = None

    @property
    def coordinates(self) -> np.ndarray:
        """Positions of the values in a plot, (g,): the numbers themselves, or 0, 1, ... for levels."""
        return self.values[:, 0] if self.labels is None else np.arange(float(len(self.values)))


def value_grid(context: EffectContext, unit: int, n_values: int = N_VALUES) -> ValueGrid | None:
    """Return the grid of a unit; None for a group that is no category, which has no single direction to vary along."""
    units = context.units
    if unit in units.levels:
        labels = level_labels(units.levels[unit], units.names[unit], context.points.inputs)
        return ValueGrid(units.levels[unit].values, labels)
    if len(units.columns[unit]) > 1:
        return None
    x = context.X[:, units.columns[unit][0]]
    distinct = np.unique(x)
    if len(distinct) <= FEW_VALUES:
        return ValueGrid(distinct[:, None])
    low, high = np.quantile(x, RANGE)
    return ValueGrid(np.linspace(low, high, n_values)[:, None])


def level_labels(levels: Levels, name: str, inputs: Inputs) -> tuple[str, ...]:
    """Return labels of the levels of a category: their codes, or the names of its indicator columns.

    A category may have no column for one of its levels. The recipe of the inputs, if there is one, has its name.
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
