"""The table that a search works on: rows to fit to, rows to score on, and the columns of a submodel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypedDict

import numpy as np

from gpsift._utils.parallel import fingerprint
from gpsift._utils.validation import CheckedTable, default_names, read_features, read_target


class Observed(TypedDict, total=False):
    """What an observation may bring along besides y: arrays (n,) or numbers, under the names that `GP.fit` has."""

    noise_var: Any
    exposure: Any
    trials: Any


@dataclass(frozen=True, eq=False)
class Data:
    """Inputs (n, p), target (n,), the names of the columns, and what each observation brings along."""

    X: np.ndarray
    y: np.ndarray
    names: tuple[str, ...]
    extras: Mapping[str, np.ndarray]

    @classmethod
    def read(cls, X: Any, y: Any, observed: Mapping[str, Any], *, where: str = "") -> Self:
        """Data as users give them; `where` goes into messages, such as "_test"."""
        known = tuple(Observed.__annotations__)
        unknown = [name for name in observed if name not in known]
        if unknown:
            raise TypeError(f"There is no option `{unknown[0]}`; observations may bring along {', '.join(known)}.")
        values, names = read_features(X, name=f"X{where}")
        n = values.shape[0]
        extras = {
            name: read_target(np.full(n, value) if np.ndim(value) == 0 else value, n, name=f"{name}{where}")
            for name in known
            if (value := observed.get(name)) is not None
        }
        labels = default_names(values.shape[1]) if names is None else names
        return cls(values, read_target(y, n, name=f"y{where}"), labels, extras)

    def take(self, rows: np.ndarray) -> Data:
        """Some of the rows."""
        return Data(
            self.X[rows], self.y[rows], self.names, {name: values[rows] for name, values in self.extras.items()}
        )

    def table(self, columns: Sequence[int]) -> CheckedTable:
        """Some of the columns, with their names."""
        chosen = list(columns)
        return CheckedTable(np.ascontiguousarray(self.X[:, chosen]), tuple(self.names[j] for j in chosen))

    @property
    def sizes(self) -> Mapping[str, np.ndarray]:
        """The options that a prediction takes: the extras but for the noise, which is not known of new observations."""
        return {name: values for name, values in self.extras.items() if name != "noise_var"}

    @property
    def fingerprint(self) -> str:
        """A digest of all of it, for a checkpoint."""
        return fingerprint(self.X, self.y, self.names, *sorted(self.extras), *self.extras.values())
