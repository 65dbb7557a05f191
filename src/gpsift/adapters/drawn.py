"""A model of another library whose hyperparameters were drawn: many models that act as one."""

from __future__ import annotations

from dataclasses import dataclass

from gpsift.adapters.foreign import Foreign
from gpsift.reference import OfDraws, Reference


@dataclass(frozen=True, eq=False, repr=False)
class Drawn(OfDraws, Foreign):
    """One model for each draw of the hyperparameters; a ranking is made for each and then summarised.

    Parameters
    ----------
    members : tuple of Reference
        Of the same features and training inputs.
    """

    members: tuple[Reference, ...]

    def __post_init__(self) -> None:
        self._take_identity(self.members[0])

    @property
    def categorical_columns(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.members[0].categorical_columns

    @property
    def mean_of(self) -> str:
        return self.members[0].mean_of
