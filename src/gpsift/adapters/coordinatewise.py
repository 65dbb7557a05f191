r"""Models that see a function of each column: warped, or on another scale.

With z_k = g_j(x_j) the chain rule is a product,

.. math:: \partial m / \partial x_j = g_j'(x_j) \, \partial m / \partial z_k ,

so what is closed stays closed. Columns that hold categories may become several columns, or codes; there is no slope
along them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from gpsift.adapters.mapped import Wrapped
from gpsift.families import Family
from gpsift.reference import Reference, Response


class CoordinateMap(ABC):
    """From the user's columns to those that a model sees."""

    categorical_columns: tuple[int, ...] = ()

    @property
    @abstractmethod
    def names(self) -> str:
        """What the map consists of, in words."""

    @abstractmethod
    def __call__(self, X: np.ndarray) -> np.ndarray:
        """What the model sees of X."""

    @abstractmethod
    def slopes(self, X: np.ndarray) -> np.ndarray:
        """dz_k / dx_j for the column k that x_j becomes, (n, p); 0 for categories."""

    @abstractmethod
    def position(self, j: int) -> int | None:
        """The column k that x_j becomes; None where it becomes several."""


@dataclass(frozen=True, eq=False, repr=False)
class Coordinatewise(Wrapped):
    """A model that sees a function of each column.

    Parameters
    ----------
    inner : Reference
        Of the columns that the model sees.
    transform : CoordinateMap
        From the user's inputs to these columns.
    """

    inner: Reference
    transform: CoordinateMap
    feature_names: tuple[str, ...]
    has_given_names: bool
    X_train: np.ndarray | None

    @property
    def how(self) -> str:
        return f"{super().how}, through {self.transform.names}"

    @property
    def lengthscale(self) -> None:
        """The length-scale of a warped column is not one of the column itself."""
        return None

    @property
    def categorical_columns(self) -> tuple[int, ...]:  # type: ignore[override]
        """Those of the map, and those that the model itself takes as categories."""
        seen, known = self.inner.categorical_columns, self.transform.categorical_columns
        return tuple(j for j in range(self.n_features) if j in known or self.transform.position(j) in seen)

    def seen(self, X: np.ndarray) -> np.ndarray:
        """What the model sees of X; of the training inputs to the last digit, so that it recognises them."""
        is_training = self.X_train is not None and np.array_equal(X, self.X_train)
        return self.inner.X_train if is_training and self.inner.X_train is not None else self.transform(X)

    def at(self, X: np.ndarray, rows: np.ndarray | None = None) -> CoordinatewiseResponse:
        return CoordinatewiseResponse(self, X if rows is None else X[rows], self.inner.at(self.seen(X), rows))

    def joint(self, X: np.ndarray, rows: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        return self.inner.joint(self.seen(X), rows)


class CoordinatewiseResponse:
    """Derivatives along x_j are those along z_k, times dz_k / dx_j."""

    def __init__(self, model: Coordinatewise, X: np.ndarray, inner: Response):
        self._model, self._X, self._inner = model, X, inner

    def distribution(self, *, latent: bool) -> Family:
        return self._inner.distribution(latent=latent)

    def gradients(self) -> tuple[np.ndarray, ...]:
        slopes = self._model.transform.slopes(self._X)
        positions = [self._model.transform.position(j) for j in range(self._X.shape[1])]
        columns = [0 if k is None else k for k in positions]  # the slope of those is 0
        return tuple(gradient[..., columns] * slopes for gradient in self._inner.gradients())

    def step(self, j: int, delta: float) -> tuple[np.ndarray, np.ndarray]:
        # The same step along x_j is another along z_k for each row, so two predictions are subtracted.
        here, there = (self._latent(X) for X in (self._X, self._moved(j, self._X[:, j] + delta)))
        return there.mean - here.mean, there.var - here.var

    def section(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        k, moved = self._model.transform.position(j), [self._moved(j, base + move) for move in offset]
        if k is None:
            return np.stack([self._latent(X).mean for X in moved], axis=1)
        here = np.zeros(1)
        return np.concatenate([self._inner.section(k, self._column(X, j, k), here) for X in moved], axis=1)

    def _column(self, X: np.ndarray, j: int, k: int) -> np.ndarray:
        """Column k of what the model sees; where x_j has no image, as a negative number no logarithm, of the end."""
        with np.errstate(invalid="ignore", divide="ignore"):
            column = self._model.transform(X)[:, k]
        lost = ~np.isfinite(column)
        if lost.any():
            known = self._X[:, j] if self._model.X_train is None else self._model.X_train[:, j]
            X = X[lost]
            X[:, j] = np.clip(X[:, j], known.min(), known.max())
            column[lost] = self._model.transform(X)[:, k]
        return column

    def _latent(self, X: np.ndarray) -> Family:
        return self._model.inner.at(self._model.transform(X)).distribution(latent=True)

    def _moved(self, j: int, column: np.ndarray) -> np.ndarray:
        X = self._X.copy()
        X[:, j] = column
        return X
