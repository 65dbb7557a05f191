"""An affine map converts the user's units to those of a model: z_k = (x_c(k) - a_k) / b_k and y = a + b f.

It is used by models of standardised data, by adapters of libraries that scale inputs, and by submodels of some columns.
The chain rule is then a division, and derivatives keep their closed form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gpsift._utils.validation import constant_columns


@dataclass(frozen=True, eq=False)
class Affine:
    """The map z_k = (x_columns_k - x_center_k) / x_scale_k of inputs, and y = y_center + y_scale f of the target."""

    x_center: np.ndarray  # (k,)
    x_scale: np.ndarray  # (k,); an infinite scale maps a column to 0, and derivatives along it are 0
    y_center: float = 0.0
    y_scale: float = 1.0
    columns: np.ndarray | None = None  # for each column of the model, the user's; by default all, in order

    @classmethod
    def scaling(cls, center: Any, scale: Any, n_inputs: int) -> Self:
        """Shift and scale all columns."""
        center, scale = (np.broadcast_to(np.asarray(v, dtype=float), n_inputs) for v in (center, scale))
        return cls(center, scale)

    @classmethod
    def of_target(cls, center: float, scale: float, n_inputs: int) -> Self:
        """Shift and scale the target and leave the inputs."""
        return cls(np.zeros(n_inputs), np.ones(n_inputs), center, scale)

    @classmethod
    def selecting(cls, columns: Any) -> Self:
        """Select some of the columns and leave their values."""
        columns = np.asarray(columns, dtype=int)
        return cls(np.zeros(columns.size), np.ones(columns.size), columns=columns)

    @classmethod
    def standardising(cls, X: np.ndarray, y: np.ndarray | None) -> Self:
        """Give inputs and target mean 0 and standard deviation 1; a target of None is unchanged.

        A constant column has an infinite scale.
        """
        x_scale = np.where(constant_columns(X), np.inf, X.std(axis=0))
        y_center, y_scale = (0.0, 1.0) if y is None else (float(y.mean()), float(y.std()))
        return cls(X.mean(axis=0), x_scale, y_center, y_scale)

    @classmethod
    def identity(cls, X: np.ndarray) -> Self:
        """Leave inputs and target unchanged; a constant column has an infinite scale."""
        return cls(np.zeros(X.shape[1]), np.where(constant_columns(X), np.inf, 1.0))

    @property
    def selected(self) -> np.ndarray:
        """The user's column for each column of the model, (k,)."""
        return np.arange(self.x_center.size) if self.columns is None else self.columns

    def inputs(self, X: np.ndarray) -> np.ndarray:
        """Map inputs from the user's units to the model's."""
        return ((X if self.columns is None else X[:, self.columns]) - self.x_center) / self.x_scale

    def target(self, y: np.ndarray) -> np.ndarray:
        """Map targets from the user's units to the model's."""
        return (y - self.y_center) / self.y_scale

    def inverse(self, Z: np.ndarray, n_inputs: int) -> np.ndarray | None:
        """Return the inputs that are mapped to Z; None where some of their columns are not among Z's."""
        if self.x_center.size < n_inputs:
            return None
        X = np.empty(Z.shape)
        X[:, self.selected] = self.x_center + self.x_scale * Z
        return X

    def then(self, after: Affine) -> Affine:
        """Return the composition of this map of inputs with `after`; the map of the target is that of `after`."""
        chosen = after.selected
        center = self.x_center[chosen] + self.x_scale[chosen] * after.x_center
        scale = self.x_scale[chosen] * after.x_scale
        return Affine(center, scale, after.y_center, after.y_scale, self.selected[chosen])

    def on_columns(self, columns: Sequence[int]) -> Affine:
        """Return the map for a model of some columns only, where the user's table has no others."""
        chosen = list(columns)
        return Affine(self.x_center[chosen], self.x_scale[chosen], self.y_center, self.y_scale)

    def position(self, j: int) -> int | None:
        """Return the model's column that is made from the user's column j; None if there is none."""
        found = np.flatnonzero(self.selected == j)
        return int(found[0]) if found.size else None
