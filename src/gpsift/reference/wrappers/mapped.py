r"""This module wraps models of transformed inputs or targets, so that their responses are in the user's units.

- `ColumnMapped`: each column z_k of the model is one of the user's, shifted and scaled, z_k = (x_c(k) - a_k) / b_k. The
  chain rule is a division.
- `Coordinatewise`: each column is a function of one of the user's, z_k = g_j(x_j), such as a warp. The chain rule is a
  product, :math:`\partial m / \partial x_j = g_j'(x_j) \, \partial m / \partial z_k`. Columns that hold categories may
  become several columns, or codes; derivatives along them are 0.
- `Transformed`: any other transformation; derivatives are finite differences.

The first two keep closed-form derivatives. `OtherTarget` is for a transformed target.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from gpsift.likelihoods.distributions import Distribution
from gpsift.reference.affine import Affine
from gpsift.reference.base import PlacedPosterior, Reference, Response, WrappedResponse
from gpsift.reference.finite_differences import Numeric
from gpsift.reference.inputs import Inputs, Points

Transform = Callable[[np.ndarray], np.ndarray]


class Wrapped(Reference):
    """A reference that delegates to another; subclasses override some members."""

    inner: Reference

    def transform_points(self, points: Points) -> Points:
        """Return the points in the inputs of the inner model."""
        return points

    def at(self, points: Points) -> Response:
        return self.inner.at(self.transform_points(points))

    def joint(self, points: Points) -> tuple[np.ndarray, np.ndarray]:
        return self.inner.joint(self.transform_points(points))

    def draw_functions(self, n: int, rng: np.random.Generator) -> list[Self]:
        return [replace(self, inner=each) for each in self.inner.draw_functions(n, rng)]  # type: ignore[type-var]

    @property
    def how(self) -> str:
        return self.inner.how

    @property
    def notices(self) -> tuple[str, ...]:
        return self.inner.notices

    @property
    def lengthscale(self) -> np.ndarray | None:
        return self.inner.lengthscale

    @property
    def explains(self) -> bool | None:
        return self.inner.explains

    @property
    def mean_of(self) -> str:
        return self.inner.mean_of

    @property
    def functions(self) -> Mapping[str, Reference]:
        functions = self.inner.functions.items()
        return {name: replace(self, inner=function) for name, function in functions}  # type: ignore[type-var]


@dataclass(frozen=True, eq=False, repr=False)
class OtherTarget(Wrapped):
    """A model of a transformed target; KL does not depend on its units, VAR is in units of it."""

    inner: Reference
    mean_of: str = "the transformed target"

    @property
    def inputs(self) -> Inputs:  # type: ignore[override]
        return self.inner.inputs


class OtherInputs(Wrapped):
    """A model of inputs that are transformed from the user's `inputs` to those of `inner`."""

    transform: Transform

    def transform_points(self, points: Points) -> Points:
        return points.transformed(self.transform, self.inner.inputs)


@dataclass(frozen=True, eq=False, repr=False)
class ColumnMapped(OtherInputs):
    """A model of shifted, scaled and selected columns; made by `ColumnMapped.wrap`.

    The `transform` is that of the model's library, without rounding differences, so that training points are
    recognised; the `column_map` has its numbers, for derivatives.
    """

    inner: Reference
    transform: Transform
    column_map: Affine
    inputs: Inputs

    @classmethod
    def wrap(cls, inner: Reference, transform: Transform, column_map: Affine, inputs: Inputs) -> Self:
        """Wrap a model; categories are those of the model."""
        categorical = tuple(int(column_map.selected[k]) for k in inner.inputs.categorical)
        return cls(inner, transform, column_map, replace(inputs, categorical=categorical))

    @property
    def how(self) -> str:
        return f"{super().how}, of scaled columns"

    @property
    def lengthscale(self) -> np.ndarray | None:
        """Length-scales in the user's units; infinite for columns that the model does not have."""
        if self.inner.lengthscale is None:
            return None
        lengthscale = np.full(self.inputs.n_features, np.inf)
        lengthscale[self.column_map.selected] = self.inner.lengthscale * self.column_map.x_scale
        return lengthscale

    def at(self, points: Points) -> ColumnMappedResponse:
        return ColumnMappedResponse(super().at(points), self.column_map, self.inputs.n_features)


class ColumnMappedResponse(WrappedResponse):
    """The response of a `ColumnMapped`: derivatives along x_j are those along z_k, divided by its scale."""

    def __init__(self, inner: Response, column_map: Affine, n_inputs: int):
        super().__init__(inner)
        self._map, self._n_inputs = column_map, n_inputs

    def gradients(self) -> tuple[np.ndarray, ...]:
        return tuple(map(self._pull_back, self._inner.gradients()))

    def hessians(self) -> tuple[np.ndarray, ...]:
        return tuple(map(self._pull_back_twice, self._inner.hessians()))

    def mean_hessian(self) -> np.ndarray:
        return self._pull_back_twice(self._inner.mean_hessian())

    def placed_posterior(self) -> PlacedPosterior:
        inner = self._inner.placed_posterior()
        return replace(inner, affine=self._map.then(inner.affine))

    def step(self, j: int, delta: float) -> tuple[np.ndarray, ...]:
        k = self._map.position(j)
        return self._inner.step(0, 0.0) if k is None else self._inner.step(k, delta / self._map.x_scale[k])

    def section(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        k = self._map.position(j)
        if k is None:
            return np.zeros((base.size, offset.size))
        center, scale = self._map.x_center[k], self._map.x_scale[k]
        return self._inner.section(k, (base - center) / scale, offset / scale)

    def _pull_back(self, gradient: np.ndarray) -> np.ndarray:
        pulled = np.zeros((*gradient.shape[:-1], self._n_inputs))
        pulled[..., self._map.selected] = gradient / self._map.x_scale
        return pulled

    def _pull_back_twice(self, hessian: np.ndarray) -> np.ndarray:
        rows = self._pull_back(hessian)
        return np.swapaxes(self._pull_back(np.swapaxes(rows, -1, -2)), -1, -2)


@dataclass(frozen=True, eq=False, repr=False)
class Transformed(OtherInputs, Numeric):
    """A model of inputs after any transformation; derivatives are finite differences along the user's columns."""

    inner: Reference
    transform: Transform
    through: str  # the name of the transformation
    inputs: Inputs

    at = Numeric.at
    lengthscale = None

    @property
    def how(self) -> str:
        return f"finite differences through {self.through}"

    def parameters(self, X: np.ndarray) -> tuple[np.ndarray, ...]:
        return self._inner_at(X).distribution(latent=True).parameters

    def family(self, X: np.ndarray, parameters: tuple[np.ndarray, ...], *, latent: bool) -> Distribution:
        return self._inner_at(X).distribution(latent=latent)

    def _inner_at(self, X: np.ndarray) -> Response:
        return self.inner.at(self.inner.inputs.points(self.transform(X)))


class CoordinateMap(ABC):
    """A map from the user's columns to those of a model."""

    categorical: tuple[int, ...] = ()

    @property
    @abstractmethod
    def names(self) -> str:
        """The names of the transformations."""

    @abstractmethod
    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Transform rows X of the user's table to the model's columns."""

    @abstractmethod
    def slopes(self, X: np.ndarray) -> np.ndarray:
        """Return dz_k / dx_j for the column k that x_j becomes, (n, p); 0 for categories."""

    @abstractmethod
    def position(self, j: int) -> int | None:
        """Return the column k that x_j becomes; None where it becomes several."""


@dataclass(frozen=True, eq=False, repr=False)
class Coordinatewise(OtherInputs):
    """A model of a function of each column; made by `Coordinatewise.wrap`."""

    inner: Reference
    transform: CoordinateMap
    inputs: Inputs

    lengthscale = None  # the length-scale along a warped column differs between points

    @classmethod
    def wrap(cls, inner: Reference, transform: CoordinateMap, inputs: Inputs) -> Self:
        """Wrap a model; categories are those of the map and of the model."""
        seen, known = inner.inputs.categorical, transform.categorical
        columns = range(inputs.n_features)
        categorical = tuple(j for j in columns if j in known or transform.position(j) in seen)
        return cls(inner, transform, replace(inputs, categorical=categorical))

    @property
    def how(self) -> str:
        return f"{super().how}, through {self.transform.names}"

    def at(self, points: Points) -> CoordinatewiseResponse:
        return CoordinatewiseResponse(self, points, super().at(points))


class CoordinatewiseResponse(Response):
    """The response of a `Coordinatewise`: derivatives along x_j are those along z_k, times dz_k / dx_j."""

    def __init__(self, model: Coordinatewise, points: Points, inner: Response):
        self._model, self._points, self._X, self._inner = model, points, points.X, inner

    def distribution(self, *, latent: bool) -> Distribution:
        return self._inner.distribution(latent=latent)

    def gradients(self) -> tuple[np.ndarray, ...]:
        slopes = self._model.transform.slopes(self._X)
        positions = [self._model.transform.position(j) for j in range(self._X.shape[1])]
        columns = [0 if k is None else k for k in positions]  # where k is None the slope is 0
        return tuple(gradient[..., columns] * slopes for gradient in self._inner.gradients())

    def step(self, j: int, delta: float) -> tuple[np.ndarray, np.ndarray]:
        # The same step along x_j is a different one along z_k for each row, so two predictions are subtracted.
        before, after = (self._predict_latent(X) for X in (self._X, self._move(j, self._X[:, j] + delta)))
        return after.mean - before.mean, after.var - before.var

    def section(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        k, moved = self._model.transform.position(j), [self._move(j, base + move) for move in offset]
        if k is None:
            return np.stack([self._predict_latent(X).mean for X in moved], axis=1)
        zero = np.zeros(1)
        return np.concatenate([self._inner.section(k, self._model_column(X, j, k), zero) for X in moved], axis=1)

    def _model_column(self, X: np.ndarray, j: int, k: int) -> np.ndarray:
        """Return column k of the model. An undefined value (log 0) is replaced by that at the nearest known x_j."""
        with np.errstate(invalid="ignore", divide="ignore"):
            column = self._model.transform(X)[:, k]
        undefined = ~np.isfinite(column)
        if undefined.any():
            known = (self._X if self._model.inputs.X is None else self._model.inputs.X)[:, j]
            X = X[undefined]
            X[:, j] = np.clip(X[:, j], known.min(), known.max())
            column[undefined] = self._model.transform(X)[:, k]
        return column

    def _predict_latent(self, X: np.ndarray) -> Distribution:
        return self._model.at(self._points.with_values(X)).distribution(latent=True)

    def _move(self, j: int, column: np.ndarray) -> np.ndarray:
        X = self._X.copy()
        X[:, j] = column
        return X
