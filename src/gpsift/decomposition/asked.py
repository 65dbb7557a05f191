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
from gpsift.decomposition.sampled import HOW
from gpsift.decomposition.triple import ProductTriple
from gpsift.likelihoods.distributions import Gaussian
from gpsift.reference.base import MissingCapability, PlacedPosterior, Reference
from gpsift.reference.ensemble import Ensemble, members_of
from gpsift.reference.inputs import Points
from gpsift.reference.lookup import as_reference
from gpsift.relevance.feature_groups import FeatureGroups

# Of more features than this, those that are off are not told of.
MOST_UNITS = 300


@dataclass(frozen=True, eq=False)
class Asked:
    """A fitted model, the rows that it is asked about, and what is told apart: features, groups, categories."""

    model: Reference | Ensemble
    points: Points
    units: FeatureGroups
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
            table = inputs.training_points.table if inputs.training_sample is None else inputs.training_sample
        else:
            table, names = read_features(X)
            inputs.check(names, table.shape[1])
        points = inputs.points(table)
        units = FeatureGroups.read(groups, categorical, points.inputs)
        return cls(reference, points, _told(units, reference.open_columns), name)

    @property
    def X(self) -> np.ndarray:
        """The rows, in the user's units."""
        return self.points.X

    @property
    def members(self) -> Iterable[Reference]:
        """The draws of the model, or itself if it has none."""
        members = members_of(self.model)
        return counted(members, len(members))

    @property
    def is_ensemble(self) -> bool:
        """Whether the model has draws of its own, which intervals come from."""
        return isinstance(self.model, Ensemble)

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
        possible = set(self.model.open_columns)
        return {unit for unit, columns in enumerate(self.units.columns) if possible.intersection(columns)}

    def on_columns(self, columns: Sequence[int]) -> tuple[list[int], FeatureGroups]:
        """Which units have some of the columns, and these units in a table of those alone."""
        return self.units.on_columns(columns)


def _told(units: FeatureGroups, possible: Sequence[int]) -> FeatureGroups:
    """All units, or of many those that the model may depend on: what is told of pairs grows with their square."""
    if len(units.names) <= MOST_UNITS:
        return units
    return units.select(*(unit for unit, columns in enumerate(units.columns) if set(possible).intersection(columns)))


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


def function_of(model: Reference | Ensemble, of: str | int | None) -> tuple[Reference | Ensemble, str | None]:
    """The model of one of several functions, by its name or number, and its name; the model itself where it has one."""
    names = list(model.functions)
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
    return model.functions[names[number]], names[number]


def noise_var(model: Reference, X: np.ndarray) -> float | None:
    """The variance of normal noise around the function, in squared units of the target; None for other likelihoods."""
    response = model.at(model.inputs.points(X[:1]))
    observed, latent = response.distribution(latent=False), response.distribution(latent=True)
    return float(observed.var[0] - latent.var[0]) if isinstance(observed, Gaussian) else None
