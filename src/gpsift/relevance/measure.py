"""The contract of a measure: a reference model and points in, a score for each point and feature out.

A measure implements `relevance`. It may also score groups of features, which move together, and categories, which do
not move by a small step but change from one level to another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, Self

import numpy as np

from gpsift.reference.base import MissingCapability, Reference
from gpsift.reference.inputs import Points

Units = Literal["sd", "raw"]
Groups = tuple[tuple[int, ...], ...]  # the columns of each group

# A category with more levels is refused.
MOST_LEVELS = 200


class Measure(ABC):
    """A way to score the features of a model. Subclasses are frozen dataclasses whose fields are the choices.

    Attributes
    ----------
    is_joint : bool
        Whether a score depends on all points together. By default the score at a point depends on that point alone.
    """

    is_joint: ClassVar[bool] = False

    @abstractmethod
    def relevance(self, reference: Reference, points: Points) -> Relevance:
        """Score the features of `reference` at the points."""

    def group_relevance(self, reference: Reference, points: Points, groups: Groups) -> Relevance:
        """Score groups of features, given by their columns: one score a group, in the order of `groups`."""
        raise MissingCapability(
            f"{self.label} scores features one at a time and cannot score groups of them. Use KL(), Derivative() or "
            "RATE(), or leave `groups` out."
        )

    def category_relevance(self, reference: Reference, points: Points, levels: Levels) -> Relevance:
        """Score a category by changes of its level; values and terms are (n,)."""
        raise MissingCapability(
            f"{self.label} has no score for categories. Use KL() or VAR(), or leave `categorical` out."
        )

    @property
    def label(self) -> str:
        """The measure as one would type it: only the choices that differ from the defaults."""
        chosen = [
            f"{choice.name}={getattr(self, choice.name)!r}"
            for choice in fields(self)  # type: ignore[arg-type]
            if getattr(self, choice.name) != choice.default
        ]
        return f"{type(self).__name__}({', '.join(chosen)})"


@dataclass(frozen=True, eq=False)
class Relevance:
    """The scores that a measure returns.

    Attributes
    ----------
    values : array (n, p) or (p,)
        A score for each point and feature, or for each feature where the measure is one of the whole model.
    units : str
    terms : mapping of str to array
        Parts of the squared values, such as what moves the mean and what moves the variance.
    details : mapping
        Numbers that the measure reports of itself.
    notices : tuple of str
        Warnings for the user.
    """

    values: np.ndarray
    units: str
    terms: Mapping[str, np.ndarray] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    notices: tuple[str, ...] = ()

    def term(self, name: str) -> np.ndarray:
        """One of `terms`, or the squared values where there is only one term."""
        return self.terms[name] if name in self.terms else self.values**2


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of a category.

    Parameters
    ----------
    columns : tuple of int
        The columns that code it.
    values : array (L, k)
        The values of these columns at each level.
    shares : array (L,)
        How often each level occurs in the training data, as parts of 1.
    """

    columns: tuple[int, ...]
    values: np.ndarray
    shares: np.ndarray

    @classmethod
    def from_rows(cls, X: np.ndarray, columns: tuple[int, ...], name: str) -> Self:
        """Find the levels that occur in the rows of X."""
        return cls.from_counts(*np.unique(X[:, list(columns)], axis=0, return_counts=True), columns, name)

    @classmethod
    def from_counts(cls, values: np.ndarray, counts: np.ndarray, columns: tuple[int, ...], name: str) -> Self:
        """Make levels of these values, each of which occurs `counts` times."""
        if len(values) > MOST_LEVELS:
            raise ValueError(
                f"`categorical` names {name!r}, which has {len(values)} different values in {counts.sum()} rows; more "
                f"than {MOST_LEVELS} levels are no category. Leave it out to score it as a number."
            )
        return cls(columns, values, counts / counts.sum())

    def replacements(self, points: np.ndarray) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
        """Yield for each level its share, the points with that level, and which of them had another one before."""
        columns = list(self.columns)
        for value, share in zip(self.values, self.shares, strict=True):
            moved = points.copy()
            moved[:, columns] = value
            yield float(share), moved, np.any(points[:, columns] != value, axis=1)


def feature_scale(points: Points, units: Units) -> np.ndarray:
    """The length of one unit along each feature: its standard deviation in the training data, or 1.

    It is 0 for a feature that never varies, about which the data say nothing.
    """
    sd = points.inputs.sd
    return sd if units == "sd" else np.where(sd > 0, 1.0, 0.0)


def check_units(units: str) -> None:
    """Refuse anything but the two kinds of units."""
    if units not in ("sd", "raw"):
        raise ValueError(f'`units` must be "sd" (per standard deviation of the feature) or "raw", got {units!r}.')


def per_unit(units: Units) -> str:
    """How the units of a score that is a rate are written."""
    return "per standard deviation of the feature" if units == "sd" else "per unit of the feature"
