"""The table that a search works on: rows to fit to, rows to score on, and the columns of a submodel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gpsift.tables import default_names, read_features, read_target

# What an observation may bring along besides y; the names of the options of `GP.fit`.
EXTRAS = ("noise_var", "exposure", "trials")


@dataclass(frozen=True, eq=False)
class Data:
    """Inputs (n, p), target (n,), the names of the columns, and what each observation brings along."""

    X: np.ndarray
    y: np.ndarray
    names: tuple[str, ...]
    extras: Mapping[str, np.ndarray]

    @classmethod
    def read(cls, X: Any, y: Any, extras: Mapping[str, Any], *, where: str = "") -> Self:
        """Data as users give them; `where` goes into messages, such as "_test"."""
        values, names = read_features(X, name=f"X{where}")
        n = values.shape[0]
        known = {
            name: read_target(np.full(n, value) if np.ndim(value) == 0 else value, n, name=f"{name}{where}")
            for name, value in extras.items()
            if value is not None
        }
        labels = default_names(values.shape[1]) if names is None else names
        return cls(values, read_target(y, n, name=f"y{where}"), labels, known)

    def take(self, rows: np.ndarray) -> Data:
        """Some of the rows."""
        return Data(
            self.X[rows], self.y[rows], self.names, {name: values[rows] for name, values in self.extras.items()}
        )

    def frame(self, columns: Sequence[int]) -> Any:
        """Some of the columns, with their names."""
        import pandas as pd

        return pd.DataFrame(self.X[:, list(columns)], columns=[self.names[j] for j in columns])

    @property
    def sizes(self) -> Mapping[str, np.ndarray]:
        """The options that a prediction takes: the extras but for the noise, which is not known of new observations."""
        return {name: values for name, values in self.extras.items() if name != "noise_var"}
