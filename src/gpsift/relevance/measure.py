"""The contract of a measure, and the units that scores come in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

import numpy as np

from gpsift.reference.base import MissingCapability, Reference
from gpsift.reference.inputs import Points
from gpsift.relevance.categories import Levels

Units = Literal["sd", "raw"]
Groups = tuple[tuple[int, ...], ...]  # the columns of each group


@dataclass(frozen=True, eq=False)
class Relevance:
    """What a measure found.

    `values` is (n, p), a score for each point and feature, or (p,) for a measure of the whole model. `terms` are parts
    of the squared values; `details` is what the measure has to report of itself, `notices` what should be said aloud.
    """

    values: np.ndarray
    units: str
    terms: Mapping[str, np.ndarray] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    notices: tuple[str, ...] = ()

    def term(self, name: str) -> np.ndarray:
        """One of `terms`; the whole where there is only one."""
        return self.terms[name] if name in self.terms else self.values**2


class Measure(ABC):
    """A way to score the features of a model. Subclasses are frozen dataclasses whose fields are the choices.

    Attributes
    ----------
    is_joint : bool
        Whether it looks at all points together. By default the score at a point depends on that point alone.
    """

    is_joint: ClassVar[bool] = False

    @abstractmethod
    def relevance(self, reference: Reference, points: Points) -> Relevance:
        """Score the features of `reference` at the points."""

    def group_relevance(self, reference: Reference, points: Points, groups: Groups) -> Relevance:
        """The same for groups of features, given by their columns: one score a group, in the order of `groups`."""
        raise MissingCapability(
            f"{self.label} scores features one at a time and cannot score groups of them. Use KL(), Derivative() or "
            "RATE(), or leave `groups` out."
        )

    def category_relevance(self, reference: Reference, points: Points, levels: Levels) -> Relevance:
        """The same for a category, which changes its level instead of moving: values and terms (n,)."""
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
