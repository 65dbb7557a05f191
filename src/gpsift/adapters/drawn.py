"""A model of another library whose hyperparameters were drawn: many models that act as one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpsift.adapters.foreign import Foreign
from gpsift.reference import Reference


@dataclass(frozen=True, eq=False, repr=False)
class Drawn(Foreign):
    """One model for each draw of the hyperparameters; a ranking is made for each and then summarised.

    Parameters
    ----------
    members : tuple of Reference
        Of the same features and training inputs.
    """

    members: tuple[Reference, ...]

    def __post_init__(self) -> None:
        for name in ("feature_names", "has_given_names", "X_train"):
            object.__setattr__(self, name, getattr(self.members[0], name))

    @property
    def how(self) -> str:  # type: ignore[override]
        return f"{getattr(self.members[0], 'how', 'closed form')}, for each of {len(self.members)} draws"

    @property
    def categorical_columns(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.members[0].categorical_columns

    @property
    def mean_of(self) -> str:
        return self.members[0].mean_of

    @property
    def draws(self) -> Iterator[Reference]:
        # Copies, one at a time: the matrices that each keeps go with it, and a hundred of those would not fit.
        return (member.fresh() if isinstance(member, Foreign) else member for member in self.members)

    def moments(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Means are averaged; the latent variance is the mean of the variances plus the variance of the means."""
        parts = np.array([member.moments(X) for member in self.members])
        return parts[:, 0].mean(axis=0), parts[:, 1].mean(axis=0) + parts[:, 0].var(axis=0), parts[:, 2].mean(axis=0)

    def at(self, X: np.ndarray, rows: np.ndarray | None = None) -> Any:
        raise TypeError("A model of many draws has one response for each: use its `members`, or `rank`.")
