"""This module defines the interface of a measure, which scores each feature of a model at each point.

A measure implements `relevance`. It may also score groups of features, which move together, and categories, which
change from one level to another. `score_groups` applies a measure to all groups and categories of a ranking.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np

from gpsift.reference.base import MissingCapability, Reference
from gpsift.reference.inputs import Points
from gpsift.relevance.feature_groups import FeatureGroups, Groups, Levels, Units, group_directions


class Measure(ABC):
    """A measure scores the features of a model. Subclasses are frozen dataclasses whose fields are the options.

    Attributes
    ----------
    is_joint : bool
        Whether a score depends on all points together. By default the score at a point depends on this point only.
    is_relative_to_noise : bool
        Whether a model that knows the function has a score only if observations have noise.
    """

    is_joint: ClassVar[bool] = False
    is_relative_to_noise: ClassVar[bool] = False

    @property
    def is_of_function(self) -> bool:
        """Whether a model that knows the function has a score, too: the true strength, which intervals are of.

        Otherwise the measure is one of the hyperparameters, or of the posterior.
        """
        return True

    @abstractmethod
    def relevance(self, reference: Reference, points: Points) -> Relevance:
        """Score the features of `reference` at the points."""

    def group_relevance(self, reference: Reference, points: Points, groups: Groups) -> Relevance:
        """Score groups of features, given by their columns, one score for each group."""
        raise MissingCapability(
            f"{self.label} scores features one at a time and cannot score groups of them. Use KL(), Derivative() or "
            "RATE(), or leave `groups` out."
        )

    def category_relevance(self, reference: Reference, points: Points, levels: Levels) -> Relevance:
        """Score a category by changes of its level; values and terms have shape (n,)."""
        raise MissingCapability(
            f"{self.label} has no score for categories. Use KL() or VAR(), or leave `categorical` out."
        )

    @property
    def label(self) -> str:
        """The measure as Python code, without options that have their defaults."""
        chosen = [
            f"{choice.name}={getattr(self, choice.name)!r}"
            for choice in fields(self)  # type: ignore[arg-type]
            if getattr(self, choice.name) != choice.default
        ]
        return f"{type(self).__name__}({', '.join(chosen)})"


class RateMeasure(Measure):
    """A measure of change per standard deviation of the feature ("sd") or per unit of it ("raw")."""

    units: Units

    def __post_init__(self) -> None:
        if self.units not in ("sd", "raw"):
            raise ValueError(
                f'`units` must be "sd" (per standard deviation of the feature) or "raw", got {self.units!r}.'
            )

    @property
    def per_unit(self) -> str:
        """The units of the scores in words."""
        return "per standard deviation of the feature" if self.units == "sd" else "per unit of the feature"

    def directions(self, points: Points, groups: Groups) -> np.ndarray:
        """Return `group_directions`; only "sd" is a common unit of the columns of a group."""
        if self.units == "raw":
            raise ValueError(
                f'{self.label} has no score of a group, whose columns share no raw unit. Use `units="sd"`, the default.'
            )
        return group_directions(points, groups)


@dataclass(frozen=True, eq=False)
class Relevance:
    """The scores that a measure returns.

    Attributes
    ----------
    values : array (n, p) or (p,)
        A score for each point and feature, or for each feature if the measure has no pointwise scores.
    units : str
    terms : mapping of str to array
        Parts of the squared values, such as what moves the mean and what moves the variance.
    details : mapping
        Further results of the measure.
    notices : tuple of str
        Warnings for the user.
    """

    values: np.ndarray
    units: str
    terms: Mapping[str, np.ndarray] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    notices: tuple[str, ...] = ()

    def term(self, name: str) -> np.ndarray:
        """Return one of `terms`, or the squared values where there is only one term."""
        return self.terms[name] if name in self.terms else self.values**2

    def map(self, function: Callable[[np.ndarray], np.ndarray]) -> Relevance:
        """Return the scores with a function applied to the values and to each term."""
        terms = {name: function(term) for name, term in self.terms.items()}
        return replace(self, values=function(self.values), terms=terms)


def score_groups(measure: Measure, model: Reference, points: Points, groups: FeatureGroups) -> Relevance:
    """Score all groups by the smaller model of the used columns; groups without any of them score exactly 0.

    The conditionals of VAR then depend on the used columns only, too.
    """
    used = model.used
    columns = used or (0,)  # a model needs some column
    uses_all = len(used) == points.inputs.n_features or points.inputs.X is None
    smaller = None if uses_all else model.on_columns(columns)
    if smaller is None:
        return apply_measure(measure, model, points, groups)
    kept, fewer = groups.on_columns(columns)
    found = apply_measure(measure, smaller, points.on_columns(columns), fewer)
    kept = kept if used else []
    return found.map(lambda values: scatter_scores(values[..., : len(kept)], kept, len(groups.columns)))


def scatter_scores(values: np.ndarray, kept: Sequence[int], n_groups: int) -> np.ndarray:
    """Return scores of all groups, 0 except for the groups `kept`, which have `values` (..., k)."""
    wide = np.zeros((*values.shape[:-1], n_groups))
    wide[..., list(kept)] = values
    return wide


def apply_measure(measure: Measure, model: Reference, points: Points, groups: FeatureGroups) -> Relevance:
    """Score the groups by a measure of the unchanged model: categories by their levels, all others by moving them."""
    moving = [k for k in range(len(groups.columns)) if k not in groups.levels]
    members = tuple(groups.columns[k] for k in moving)
    found = None
    if any(len(columns) > 1 for columns in members):
        found = measure.group_relevance(model, points, members)
    elif members:  # groups of one column each, whatever their names, are the features themselves
        found = measure.relevance(model, points)
        if len(members) < points.inputs.n_features:
            single = [columns[0] for columns in members]
            found = found.map(lambda values: values[..., single])
    if not groups.levels:
        assert found is not None
        return found
    categories = {k: measure.category_relevance(model, points, levels) for k, levels in groups.levels.items()}

    def merge(part: Callable[[Relevance], np.ndarray]) -> np.ndarray:
        """Combine a part of the scores of categories and other groups, in the order of all groups."""
        columns = {k: part(each) for k, each in categories.items()}
        if found is not None:
            columns |= dict(zip(moving, part(found).T, strict=True))
        return np.column_stack([columns[k] for k in sorted(columns)])

    first = next(iter(categories.values())) if found is None else found
    units = first.units
    for each in categories.values():
        units = units if each.units in units else f"{units}, of categories {each.units}"
    terms = {name: merge(operator.methodcaller("term", name)) for name in first.terms}
    return replace(first, values=merge(operator.attrgetter("values")), units=units, terms=terms)
