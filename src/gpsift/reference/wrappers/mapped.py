r"""Models that see their inputs transformed: rankings in the units of what the user has.

Where each column that the model sees is one of the user's, shifted and scaled, z_k = (x_c(k) - a_k) / b_k, the chain
rule is a division, and what is closed stays closed (`ColumnMapped`). Any other transformation is differenced through
(`Transformed`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from gpsift.likelihoods.distributions import Distribution
from gpsift.reference.base import PlacedPosterior, Reference, Response, Several
from gpsift.reference.ensemble import MadeWhenAsked
from gpsift.reference.finite_differences import Numeric
from gpsift.reference.inputs import Inputs, Points

Transform = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class ColumnMap:
    """z_k = (x_columns_k - center_k) / scale_k, from n_inputs columns to some of them, each at most once."""

    columns: np.ndarray
    center: np.ndarray
    scale: np.ndarray
    n_inputs: int

    @classmethod
    def scaling(cls, center: Any, scale: Any, n_inputs: int) -> Self:
        """All columns in their order, shifted and scaled."""
        center, scale = (np.broadcast_to(np.asarray(v, dtype=float), n_inputs) for v in (center, scale))
        return cls(np.arange(n_inputs), center, scale, n_inputs)

    @classmethod
    def selecting(cls, columns: Any, n_inputs: int) -> Self:
        """Some of the columns, as they are."""
        columns = np.asarray(columns, dtype=int)
        return cls(columns, np.zeros(columns.size), np.ones(columns.size), n_inputs)

    def then(self, after: ColumnMap) -> ColumnMap:
        """This map followed by another."""
        columns = after.columns
        center = self.center[columns] + self.scale[columns] * after.center
        return ColumnMap(self.columns[columns], center, self.scale[columns] * after.scale, self.n_inputs)

    def inverse(self, Z: np.ndarray) -> np.ndarray | None:
        """The inputs that are mapped to Z; None where some of their columns are not among Z's."""
        if self.columns.size < self.n_inputs:
            return None
        X = np.empty(Z.shape)
        X[:, self.columns] = self.center + self.scale * Z
        return X

    def position(self, j: int) -> int | None:
        """Which column of Z input j becomes."""
        found = np.flatnonzero(self.columns == j)
        return int(found[0]) if found.size else None


class Wrapped(Reference, Several):
    """A reference around another: everything is passed on, but for what a subclass changes."""

    inner: Reference

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
    def draws(self) -> Sequence[Reference]:
        inner = self.inner.draws
        return MadeWhenAsked(lambda draw: replace(self, inner=inner[draw]), len(inner))  # type: ignore[type-var]

    @property
    def functions(self) -> Mapping[str, Reference]:
        inner = self.inner.functions if isinstance(self.inner, Several) else {}
        return {name: replace(self, inner=function) for name, function in inner.items()}  # type: ignore[type-var]

    def at(self, points: Points) -> Response:
        return self.inner.at(points)

    def joint(self, points: Points) -> tuple[np.ndarray, np.ndarray]:
        return self.inner.joint(points)


@dataclass(frozen=True, eq=False, repr=False)
class OtherTarget(Wrapped):
    """A model of a target that was transformed; KL does not see that, VAR is in its units."""

    inner: Reference
    mean_of: str = "the transformed target"

    @property
    def inputs(self) -> Inputs:  # type: ignore[override]
        return self.inner.inputs


@dataclass(frozen=True, eq=False, repr=False)
class ColumnMapped(Wrapped):
    """A model of shifted, scaled and selected columns; made by `ColumnMapped.around`.

    Parameters
    ----------
    inner : Reference
        Of the columns that the model sees.
    transform : callable
        From the user's inputs to these columns, as the model's own library does it: to the last digit, so that
        training points are recognised.
    column_map : ColumnMap
        The same as numbers, for derivatives.
    """

    inner: Reference
    transform: Transform
    column_map: ColumnMap
    inputs: Inputs

    @classmethod
    def around(cls, inner: Reference, transform: Transform, column_map: ColumnMap, inputs: Inputs) -> Self:
        """With the columns that the model itself takes as categories, as they are called by the user."""
        categorical = tuple(int(column_map.columns[k]) for k in inner.inputs.categorical)
        return cls(inner, transform, column_map, replace(inputs, categorical=categorical))

    @property
    def how(self) -> str:
        return f"{super().how}, of scaled columns"

    @property
    def lengthscale(self) -> np.ndarray | None:
        """In the user's units; infinite for columns that the model does not see."""
        if self.inner.lengthscale is None:
            return None
        lengthscale = np.full(self.inputs.n_features, np.inf)
        lengthscale[self.column_map.columns] = self.inner.lengthscale * self.column_map.scale
        return lengthscale

    def at(self, points: Points) -> ColumnMappedResponse:
        return ColumnMappedResponse(self.inner.at(self._seen(points)), self.column_map)

    def joint(self, points: Points) -> tuple[np.ndarray, np.ndarray]:
        return self.inner.joint(self._seen(points))

    def _seen(self, points: Points) -> Points:
        return points.seen_through(self.transform, self.inner.inputs)


class ColumnMappedResponse(Response):
    """Derivatives along x_j are those along z_k, divided by its scale."""

    def __init__(self, inner: Response, column_map: ColumnMap):
        self._inner, self._map = inner, column_map

    def distribution(self, *, latent: bool) -> Distribution:
        return self._inner.distribution(latent=latent)

    def gradients(self) -> tuple[np.ndarray, ...]:
        return tuple(self._pulled_back(gradient) for gradient in self._inner.gradients())

    @property
    def latent_mean(self) -> np.ndarray:
        return self._inner.latent_mean

    def hessians(self) -> tuple[np.ndarray, ...]:
        return tuple(map(self._pulled_back_twice, self._inner.hessians()))

    def mean_hessian(self) -> np.ndarray:
        return self._pulled_back_twice(self._inner.mean_hessian())

    def mean_slope(self) -> np.ndarray:
        return self._inner.mean_slope()

    def placed_posterior(self) -> PlacedPosterior:
        inner, seen = self._inner.placed_posterior(), self._map
        inner_map = ColumnMap(inner.columns, inner.x_center, inner.x_scale, seen.columns.size)
        mapped = seen.then(inner_map)
        return replace(inner, columns=mapped.columns, x_center=mapped.center, x_scale=mapped.scale)

    def step(self, j: int, delta: float) -> tuple[np.ndarray, ...]:
        k = self._map.position(j)
        if k is None:
            return self._inner.step(0, 0.0)
        return self._inner.step(k, delta / self._map.scale[k])

    def section(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        k = self._map.position(j)
        if k is None:
            return np.zeros((base.size, offset.size))
        return self._inner.section(k, (base - self._map.center[k]) / self._map.scale[k], offset / self._map.scale[k])

    def _pulled_back_twice(self, hessian: np.ndarray) -> np.ndarray:
        rows = self._pulled_back(hessian)
        return np.swapaxes(self._pulled_back(np.swapaxes(rows, -1, -2)), -1, -2)

    def _pulled_back(self, gradient: np.ndarray) -> np.ndarray:
        pulled = np.zeros((*gradient.shape[:-1], self._map.n_inputs))
        pulled[..., self._map.columns] = gradient / self._map.scale
        return pulled


@dataclass(frozen=True, eq=False, repr=False)
class Transformed(Wrapped, Numeric):
    """A model of inputs that were transformed in any way; differences are taken through the transformation.

    Parameters
    ----------
    inner : Reference
        Of what the model sees.
    transform : callable
        From the user's inputs to that.
    through : str
        What the transformation is called.
    """

    inner: Reference
    transform: Transform
    through: str
    inputs: Inputs

    @property
    def how(self) -> str:
        return f"finite differences through {self.through}"

    @property
    def lengthscale(self) -> None:
        return None

    def parameters(self, X: np.ndarray) -> tuple[np.ndarray, ...]:
        return self._inner_at(X).distribution(latent=True).parameters

    def family(self, X: np.ndarray, parameters: tuple[np.ndarray, ...], *, latent: bool) -> Distribution:
        return self._inner_at(X).distribution(latent=latent)

    at = Numeric.at

    def joint(self, points: Points) -> tuple[np.ndarray, np.ndarray]:
        return self.inner.joint(points.seen_through(self.transform, self.inner.inputs))

    def _inner_at(self, X: np.ndarray) -> Response:
        return self.inner.at(self.inner.inputs.points(self.transform(X)))
