"""What every question about the shape of an effect begins with: a model, rows, and units with their margins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gpsift.adapters import as_reference
from gpsift.decomposition.margins import Margin
from gpsift.decomposition.products import Products
from gpsift.drawn import Uncertain
from gpsift.families import Gaussian
from gpsift.inputs import Points
from gpsift.progress import counted
from gpsift.reference import PlacedPosterior, Reference
from gpsift.relevance.scored import ScoredUnits
from gpsift.relevance.switched import units_on_columns, used_columns
from gpsift.user_arrays import read_features

# Of more features than this, those that are off are not told of.
MOST_UNITS = 300


@dataclass(frozen=True, eq=False)
class Asked:
    """A fitted model, the rows that it is asked about, and what is told apart: features, groups, categories."""

    model: Reference
    points: Points
    units: ScoredUnits

    @classmethod
    def read(
        cls,
        model: Any,
        X: Any,
        groups: Mapping[str, Sequence[str | int]] | None = None,
        categorical: Iterable[str | int] | None = None,
    ) -> Self:
        """From the arguments of a verb; by default the rows are those of the fit, or a sample of those elsewhere."""
        reference = as_reference(model)
        inputs = reference.inputs
        if X is None:
            table = inputs.training_points.table if inputs.at_hand is None else inputs.at_hand
        else:
            table, names = read_features(X)
            inputs.check(names, table.shape[1])
        points = inputs.points(table)
        units = ScoredUnits.read(groups, categorical, points.inputs)
        return cls(reference, points, _told(units, possible_columns(reference)))

    @property
    def X(self) -> np.ndarray:
        """The rows, in the user's units."""
        return self.points.X

    @property
    def members(self) -> Iterable[Reference]:
        """The draws of the model, or itself if it has none."""
        members = self.model.draws or (self.model,)
        return counted(members, len(members))

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
    kept = [unit for unit, columns in enumerate(units.columns) if set(possible).intersection(columns)]
    levels = {place: units.levels[unit] for place, unit in enumerate(kept) if unit in units.levels}
    return ScoredUnits(tuple(units.names[u] for u in kept), tuple(units.columns[u] for u in kept), levels)


def placed_posterior(model: Reference, X: np.ndarray) -> PlacedPosterior:
    """The latent posterior of a model as a triple; it is the same at all rows."""
    return model.at(model.inputs.points(X[:1])).placed_posterior()


def products_of(model: Reference, X: np.ndarray, units: ScoredUnits, margins: Sequence[Margin]) -> Products:
    """The latent posterior of a model over units with these margins."""
    return Products.of(placed_posterior(model, X), units.columns, margins)


def noise_var(model: Reference, X: np.ndarray) -> float | None:
    """The variance of normal noise around the function, in squared units of the target; None for other likelihoods."""
    response = model.at(model.inputs.points(X[:1]))
    observed, latent = response.distribution(latent=False), response.distribution(latent=True)
    return float(observed.var[0] - latent.var[0]) if isinstance(observed, Gaussian) else None
