"""An ensemble holds several models of the same data, such as one for each draw of the hyperparameters.

An `Ensemble` is no `gpsift.reference.base.Reference`, because it has no response. Scores and curves are computed for
each of `members_of(model)` and then summarised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np

from gpsift.reference.base import Reference
from gpsift.reference.inputs import Inputs

M = TypeVar("M")


@dataclass(frozen=True, eq=False, repr=False)
class Ensemble:
    """Models of the same features and training inputs; a ranking is made for each and then summarised.

    Parameters
    ----------
    members : tuple of Reference
    """

    members: tuple[Reference, ...]

    @property
    def draws(self) -> Sequence[Reference]:
        """Copies of the members, each made when accessed, so that cached matrices are freed with the copy.

        A hundred members with all their matrices would not fit into memory.
        """
        return Copies(self.members)

    @property
    def inputs(self) -> Inputs:
        """The inputs of all members."""
        return self.members[0].inputs

    @property
    def functions(self) -> Mapping[str, Reference | Ensemble]:
        """The ensemble of each of several functions by its name; empty where members have one function."""
        return {name: self.map(lambda member, name=name: member.functions[name]) for name in self.members[0].functions}  # type: ignore[misc]

    @property
    def used(self) -> tuple[int, ...]:
        """The columns that any member uses, ascending."""
        return tuple(sorted({column for member in self.members for column in member.used}))

    @property
    def slopes(self) -> np.ndarray:
        """`Reference.slopes`, which all members share."""
        return self.members[0].slopes

    @property
    def open_columns(self) -> tuple[int, ...]:
        """The columns that any member uses."""
        return self.used

    @property
    def explains(self) -> bool | None:
        """Whether the ensemble predicts better than a model without inputs; None where that is not known."""
        return None

    @property
    def how(self) -> str:
        """The method of computing derivatives, in a few words."""
        return f"{self.members[0].how}, for each of {len(self.members)} draws"

    @property
    def notices(self) -> tuple[str, ...]:
        """Warnings to show with rankings of the ensemble."""
        return self.members[0].notices

    @property
    def mean_of(self) -> str:
        """The name of the quantity whose mean the members predict."""
        return self.members[0].mean_of

    def map(self, function: Callable[[Reference], Reference]) -> Ensemble:
        """Apply `function`, such as a wrapper, to each member, and return the ensemble of the results."""
        return MappedEnsemble(tuple(map(function, self.members)), self)

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {self.inputs.n_features} features ({self.how})"


@dataclass(frozen=True, eq=False, repr=False)
class MappedEnsemble(Ensemble):
    """An ensemble made from the members of another, `origin`, from which `explains` is taken."""

    origin: Ensemble

    @property
    def explains(self) -> bool | None:
        return self.origin.explains


def members_of(model: Reference | Ensemble) -> Sequence[Reference]:
    """Return the draws of an ensemble, or the one model itself."""
    return model.draws if isinstance(model, Ensemble) else (model,)


def map_members(model: Reference | Ensemble, function: Callable[[Reference], Reference]) -> Reference | Ensemble:
    """Apply `function` to a model, or to each member of an ensemble."""
    return model.map(function) if isinstance(model, Ensemble) else function(model)


class Copies(Sequence[M]):
    """A sequence of copies of models without their caches, each made when accessed and not kept."""

    def __init__(self, models: Sequence[M]):
        self._models = models

    def __len__(self) -> int:
        return len(self._models)

    def __getitem__(self, item: Any) -> Any:
        chosen = self._models[item]
        return [drop_caches(model) for model in chosen] if isinstance(item, slice) else drop_caches(chosen)


def drop_caches(model: M) -> M:
    """Copy a model without the matrices that it, its posterior or a model inside it has cached."""
    if isinstance(model, Mapping):
        return {name: drop_caches(part) for name, part in model.items()}  # type: ignore[return-value]
    if not is_dataclass(model) or isinstance(model, type | Inputs):
        return model
    parts = {field.name: getattr(model, field.name) for field in fields(model)}
    return replace(model, **{name: drop_caches(part) for name, part in parts.items()})
