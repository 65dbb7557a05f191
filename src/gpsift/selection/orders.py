"""Order the units for submodels: by a measure on the full model, by backward elimination, or by projection."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from gpsift.gp import DrawnGP, FittedGP
from gpsift.reference.base import MissingCapability, Reference
from gpsift.reference.ensemble import Ensemble
from gpsift.relevance import KL, Measure, get_measure, rank
from gpsift.relevance.ranking import Ranking
from gpsift.selection.data import Units

PROJECTION = "projection"
# The two starts are the hyperparameters of the full model and short length-scales. On four data sets, with ML-II and
# MAP, they miss the best of eight optima as rarely as three starts without those of the full model do.
SUBMODEL_STARTS = 2


@dataclass(frozen=True, eq=False)
class FeatureOrder:
    """An order of the units, with the score of each, or the divergence of a projection by size.

    `notices` has the warnings of the ranking that the order comes from, if it was made earlier.
    """

    order: list[int]
    scores: list[float] | None = None
    kl: np.ndarray | None = None
    notices: tuple[str, ...] = ()

    @classmethod
    def by(cls, ranking: Ranking, units: Units, notices: Sequence[str] = ()) -> Self:
        """Make the order of a ranking of the units, with the forced ones first."""
        return cls(units.put_forced_first(ranking.order), ranking.scores.tolist(), notices=tuple(notices))


class Order(ABC):
    """A choice of how features are ordered and submodels fitted along the order. Subclasses are frozen dataclasses.

    `starts` is the number of starts of the search for each submodel's hyperparameters. `eliminates` says whether
    submodels are made by removing one unit after another, each by the scores of the last submodel.
    """

    starts: int
    eliminates: ClassVar[bool] = False

    @property
    def scoring(self) -> Measure | None:
        """The measure that scores the units; None for an order without scores."""
        return None

    @property
    @abstractmethod
    def label(self) -> str:
        """The order as text."""

    @abstractmethod
    def sort(self, fitted: FittedGP | DrawnGP, units: Units, largest: int) -> FeatureOrder:
        """Sort the units by a fitted model, for submodels of at most `largest` units."""


@dataclass(frozen=True)
class Ranked(Order):
    """Order features by a measure on the full model, once, as in the paper.

    Parameters
    ----------
    measure : Measure or {"kl", "var", "ard", "rate", "derivative"}
    starts : int
        Starts of the search for each submodel's hyperparameters: from those of the full model, then as in `ML2`.
    """

    measure: Measure | str = KL()  # frozen
    starts: int = SUBMODEL_STARTS

    def __post_init__(self) -> None:
        get_measure(self.measure)

    @property
    def scoring(self) -> Measure:
        return get_measure(self.measure)

    @property
    def label(self) -> str:
        return self.scoring.label

    def sort(self, fitted: FittedGP | DrawnGP, units: Units, largest: int) -> FeatureOrder:
        """Sort all units by falling score, the forced ones first."""
        return FeatureOrder.by(rank_units(fitted, units, self.scoring), units)


@dataclass(frozen=True)
class Backward(Ranked):
    """Order features by backward elimination: fit, remove the unit of the lowest score, and rank again.

    Parameters
    ----------
    measure : Measure or {"kl", "var", "ard", "rate", "derivative"}
    starts : int
        As in `Ranked`, but from the hyperparameters of the model with one unit more.
    """

    eliminates: ClassVar[bool] = True

    @property
    def label(self) -> str:
        return f"{super().label}, re-ranked after every removal"


@dataclass(frozen=True)
class ForwardProjection(Order):
    """Order features by projection: add the one whose projected submodel is nearest to the full model, step by step.

    It is slower, and better where features can replace one another.

    Parameters
    ----------
    starts : int
        As in `Ranked`.
    """

    starts: int = SUBMODEL_STARTS

    @property
    def label(self) -> str:
        return PROJECTION

    def sort(self, fitted: FittedGP | DrawnGP, units: Units, largest: int) -> FeatureOrder:
        """Sort the units as forward projection adds them, followed by those that are in no submodel."""
        if isinstance(fitted, DrawnGP):
            raise ValueError(
                '"projection" needs one fit: use GP(hyper=MAP()) as `model`, and the draws as `reference`.'
            )
        from gpsift.selection.projection import forward_projection  # imported when used

        chosen: list[int] = []
        kl: np.ndarray | None = None
        kept = units.active(fitted.used)
        if kept:
            # Inactive features do not change the divergence, so the model without them is projected.
            within = units.subset(kept)
            model = fitted if len(kept) == len(units) else fitted.on_columns(units.columns_of(kept))
            path = forward_projection(
                model or fitted, max_size=min(largest, len(kept)), force=units.forced_names, groups=within.groups
            )
            chosen, kl = [units.names.index(name) for name in path.order], path.kl
        # The other units follow: the larger their slopes, the nearer they are to being active.
        known = fitted.slopes
        slopes = [known[list(columns)].max() for columns in units.columns]
        others = sorted(set(range(len(units))).difference(chosen), key=lambda unit: (-slopes[unit], unit))
        return FeatureOrder([*chosen, *others], kl=kl)


def read_order(measure: Any) -> Order:
    """Read a user's order: an `Order`, "projection", or a measure by object or by name."""
    if isinstance(measure, Order):
        return measure
    if isinstance(measure, type) and issubclass(measure, Order):
        raise TypeError(f"`measure` must be an instance: write {measure.__name__}() with parentheses.")
    return ForwardProjection() if measure == PROJECTION else Ranked(get_measure(measure, PROJECTION))


def rank_units(fitted: Reference | Ensemble, units: Units, measure: Measure, X: Any = None, **options: Any) -> Ranking:
    """Rank units as groups, and categories by their levels; a measure that can do neither ranks their best columns.

    Options are those of `rank`.
    """
    categorical = [units.names[unit] for unit in units.categorical]
    for levels in (categorical, []) if categorical else ([],):
        with suppress(MissingCapability):
            return rank(fitted, X, measure, groups=units.groups, categorical=levels, **options)
    single = rank(fitted, X, measure, **options)
    best = [max(columns, key=lambda column: single.scores[column]) for columns in units.columns]
    return single.of_columns(best, units.names)
