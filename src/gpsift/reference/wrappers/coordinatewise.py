r"""Models that see a function of each column: warped, or on another scale.

With z_k = g_j(x_j) the chain rule is a product,

.. math:: \partial m / \partial x_j = g_j'(x_j) \, \partial m / \partial z_k ,

so what is closed stays closed. Columns that hold categories may become several columns, or codes; there is no slope
along them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from gpsift.likelihoods.distributions import Distribution
from gpsift.reference.base import Reference, Response
from gpsift.reference.inputs import Inputs, Points
from gpsift.reference.wrappers.mapped import Wrapped


class CoordinateMap(ABC):
    """From the user's columns to those that a model sees."""

    categorical: tuple[int, ...] = ()

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
    """A model that sees a function of each column; made by `Coordinatewise.around`.

    Parameters
    ----------
    inner : Reference
        Of the columns that the model sees.
    transform : CoordinateMap
        From the user's inputs to these columns.
    """

    inner: Reference
    transform: CoordinateMap
    inputs: Inputs

    @classmethod
    def around(cls, inner: Reference, transform: CoordinateMap, inputs: Inputs) -> Self:
        """With the categories of the map, and those that the model itself has."""
        seen, known = inner.inputs.categorical, transform.categorical
        columns = range(inputs.n_features)
        categorical = tuple(j for j in columns if j in known or transform.position(j) in seen)
        return cls(inner, transform, replace(inputs, categorical=categorical))

    @property
    def how(self) -> str:
        return f"{super().how}, through {self.transform.names}"

    @property
    def lengthscale(self) -> None:
        """The length-scale of a warped column is not one of the column itself."""
        return None

    def at(self, points: Points) -> CoordinatewiseResponse:
        return CoordinatewiseResponse(self, points, self.inner.at(self._seen(points)))

    def joint(self, points: Points) -> tuple[np.ndarray, np.ndarray]:
        return self.inner.joint(self._seen(points))

    def _seen(self, points: Points) -> Points:
        return points.seen_through(self.transform, self.inner.inputs)


class CoordinatewiseResponse(Response):
    """Derivatives along x_j are those along z_k, times dz_k / dx_j."""

    def __init__(self, model: Coordinatewise, points: Points, inner: Response):
        self._model, self._points, self._X, self._inner = model, points, points.X, inner

    def distribution(self, *, latent: bool) -> Distribution:
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
            known = (self._X if self._model.inputs.X is None else self._model.inputs.X)[:, j]
            X = X[lost]
            X[:, j] = np.clip(X[:, j], known.min(), known.max())
            column[lost] = self._model.transform(X)[:, k]
        return column

    def _latent(self, X: np.ndarray) -> Distribution:
        moved = self._points.moved(X).seen_through(self._model.transform, self._model.inner.inputs)
        return self._model.inner.at(moved).distribution(latent=True)

    def _moved(self, j: int, column: np.ndarray) -> np.ndarray:
        X = self._X.copy()
        X[:, j] = column
        return X
