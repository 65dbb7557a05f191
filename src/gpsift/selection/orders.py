"""In which order units enter: by a measure on the full model, by re-ranking after every removal, or by projection."""

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
# Submodels start from the full model's hyperparameters and from short length-scales. On four data sets, maximum
# likelihood and MAP, these two fall short of the best of eight starts as seldom as three starts without the full model.
SUBMODEL_STARTS = 2


@dataclass(frozen=True, eq=False)
class Ordered:
    """Units in their order, the score of each where there is one, and the divergence by size of a projection.

    `notices` is what a ranking that was made elsewhere warned of.
    """

    order: list[int]
    scores: list[float] | None = None
    kl: np.ndarray | None = None
    notices: tuple[str, ...] = ()

    @classmethod
    def by(cls, ranking: Ranking, units: Units, notices: Sequence[str] = ()) -> Self:
        """As a ranking of the units has them, the forced ones first."""
        return cls(units.forced_first(ranking.order), ranking.scores.tolist(), notices=tuple(notices))


class Order(ABC):
    """A way to put features in order and to fit submodels along it. Subclasses are frozen dataclasses.

    Attributes
    ----------
    starts : int
        Starts of the search for each submodel's hyperparameters: from those of the full model, then as in `ML2`.
    eliminates : bool
        Whether submodels are made by removing one unit after the other, the next by the scores of the last submodel.
    """

    starts: int
    eliminates: ClassVar[bool] = False

    @property
    def scoring(self) -> Measure | None:
        """The measure that scores the units; None where they are only put in order."""
        return None

    @property
    @abstractmethod
    def label(self) -> str:
        """In words."""

    @abstractmethod
    def of(self, fitted: FittedGP | DrawnGP, units: Units, largest: int) -> Ordered:
        """The units by what a fitted model says of them, for submodels of at most `largest` units."""


@dataclass(frozen=True)
class Ranked(Order):
    """By a measure on the full model, once: the paper's way.

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

    def of(self, fitted: FittedGP | DrawnGP, units: Units, largest: int) -> Ordered:
        """All units by falling score, the forced ones first."""
        return Ordered.by(unit_ranking(fitted, units, self.scoring), units)


@dataclass(frozen=True)
class Backward(Ranked):
    """Backward elimination: fit, remove the unit of the lowest score, and rank anew, until none is left.

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
    """By projection: add the feature whose projected submodel is nearest to the full model, step by step.

    It is slower, and better where features can stand in for one another.

    Parameters
    ----------
    starts : int
        As in `Ranked`.
    """

    starts: int = SUBMODEL_STARTS

    @property
    def label(self) -> str:
        return PROJECTION

    def of(self, fitted: FittedGP | DrawnGP, units: Units, largest: int) -> Ordered:
        """The units as they enter, then those that are in no submodel."""
        if isinstance(fitted, DrawnGP):
            raise ValueError(
                '"projection" needs one fit: use GP(hyper=MAP()) as `model`, and the draws as `reference`.'
            )
        kept = units.with_some_of(fitted.used)
        if not kept:
            return Ordered(_then_close(fitted, units, []))
        # What is switched off can bring no submodel nearer: the model of the others is projected.
        within = units.within(kept)
        model = fitted if len(kept) == len(units) else fitted.on_columns(units.columns_of(kept))
        from gpsift.selection.projection import forward_projection  # for this order alone

        path = forward_projection(
            model or fitted, max_size=min(largest, len(kept)), force=units.forced_names, groups=within.groups
        )
        return Ordered(_then_close(fitted, units, [units.names.index(name) for name in path.order]), kl=path.kl)


def _then_close(fitted: FittedGP, units: Units, chosen: Sequence[int]) -> list[int]:
    """Some units and then all others, those that came close to being switched on before the rest."""
    known = fitted.slopes
    slopes = {unit: known[list(units.columns[unit])].max() for unit in range(len(units))}
    others = sorted(set(range(len(units))).difference(chosen), key=lambda unit: (-slopes[unit], unit))
    return [*chosen, *others]


def read_order(measure: Any) -> Order:
    """The order that users ask for: an `Order`, "projection", or a measure by object or by name."""
    if isinstance(measure, Order):
        return measure
    if isinstance(measure, type) and issubclass(measure, Order):
        raise TypeError(f"`measure` must be an instance: write {measure.__name__}() with parentheses.")
    return ForwardProjection() if measure == PROJECTION else Ranked(get_measure(measure, PROJECTION))


def unit_ranking(
    fitted: Reference | Ensemble, units: Units, measure: Measure, X: Any = None, **options: Any
) -> Ranking:
    """Each unit as a whole, a category by its levels or as a group; as its best column by a measure without either.

    Options are those of `rank`.
    """
    categorical = [units.names[unit] for unit in units.categorical]
    for levels in (categorical, []) if categorical else ([],):
        with suppress(MissingCapability):
            return rank(fitted, X, measure, groups=units.groups, categorical=levels, **options)
    single = rank(fitted, X, measure, **options)
    best = [max(columns, key=lambda column: single.scores[column]) for columns in units.columns]
    return single.of_columns(best, units.names)


def unit_scores(fitted: FittedGP | DrawnGP, units: Units, measure: Measure) -> list[float]:
    """The score of each unit."""
    return [float(value) for value in unit_ranking(fitted, units, measure).scores]
