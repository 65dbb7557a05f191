"""Models whose hyperparameters were drawn: many models that act as one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar, overload

import numpy as np

from gpsift.reference.base import Reference, Response
from gpsift.reference.inputs import Inputs, Points

T = TypeVar("T")


@dataclass(frozen=True, eq=False, repr=False)
class Drawn(Reference):
    """One model for each draw of the hyperparameters; a ranking is made for each and then summarised.

    Parameters
    ----------
    members : tuple of Reference
        Of the same features and training inputs.
    """

    members: tuple[Reference, ...]

    @property
    def inputs(self) -> Inputs:  # type: ignore[override]
        return self.members[0].inputs

    @property
    def how(self) -> str:
        return f"{self.members[0].how}, for each of {len(self.members)} draws"

    @property
    def mean_of(self) -> str:
        return self.members[0].mean_of

    @property
    def draws(self) -> Sequence[Reference]:
        # Copies, one at a time: the matrices that each keeps go with it, and a hundred of those would not fit.
        return MadeWhenAsked(lambda draw: without_caches(self.members[draw]), len(self.members))

    def at(self, points: Points) -> Response:
        raise TypeError("A model of many draws has one response for each: use its `members`, or `rank`.")


class MadeWhenAsked(Sequence[Reference]):
    """Models that are made each time they are asked for, and kept by nobody.

    Parameters
    ----------
    make : callable
        Takes a number from 0 on.
    n : int
        How many there are.
    """

    def __init__(self, make: Callable[[int], Reference], n: int):
        self._make, self._n = make, n

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, item: int) -> Reference: ...
    @overload
    def __getitem__(self, item: slice) -> Sequence[Reference]: ...
    def __getitem__(self, item: int | slice) -> Reference | Sequence[Reference]:
        chosen = range(self._n)[item]  # which knows negative numbers, and where the end is
        return self._make(chosen) if isinstance(chosen, int) else [self._make(each) for each in chosen]


@dataclass(frozen=True)
class AskedDraws(Generic[T]):
    """How many draws of the hyperparameters are asked for.

    Parameters
    ----------
    n : int
        Draws of which models are made.
    seed : int
    n_others : int
        More draws, of which no models are made.
    is_enough : callable
        Whether the places (s, k) and values of the first draws are enough; what is left is then among the others.
    """

    n: int
    seed: int
    n_others: int = 0
    is_enough: Callable[[np.ndarray, list[T]], bool] = lambda *_: False


class OverDraws(NamedTuple, Generic[T]):
    """What models with drawn hyperparameters have, and how far to trust their draws.

    Places are coordinates of the hyperparameters in which their posterior is nearly normal, (s, k): those of the
    models, and those of more draws, of which no model was made, (m, k). The models `are_enough` where what was
    asked has said so.
    """

    values: list[T]
    k_hat: float
    places: np.ndarray
    others: np.ndarray
    are_enough: bool


class Uncertain(ABC):
    """What a reference offers besides if it knows how far the data leave its hyperparameters open."""

    @property
    @abstractmethod
    def open_columns(self) -> tuple[int, ...]:
        """The columns that draws may depend on: those that it uses, and those that it could have used."""

    @abstractmethod
    def over_draws(self, of: Callable[[Reference], T], asked: AskedDraws[T]) -> OverDraws[T]:
        """`of` each of some models whose hyperparameters the data allow as well, and the k-hat of these draws.

        They are drawn from an approximation of the posterior, which is to be trusted up to a k-hat of 0.7. The models
        are of the open columns alone. Sparse models may make fewer than are asked for, and have no others.
        """


def without_caches(model: T) -> T:
    """The same model without the matrices that it, its posterior or a model inside it has computed and kept."""
    if not is_dataclass(model):
        return model
    parts: dict[str, Any] = {field.name: getattr(model, field.name) for field in fields(model)}
    kept = {name: part for name, part in parts.items() if is_dataclass(part) and not isinstance(part, type | Inputs)}
    return replace(model, **{name: without_caches(part) for name, part in kept.items()})  # type: ignore[type-var]
