"""A fitted Gaussian process for several classes: one latent function for each, coupled by the softmax."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.linalg import helmert

from gpsift.gp.fitted import FittedGP, Prediction
from gpsift.likelihoods import Softmax
from gpsift.likelihoods.distributions import Distribution, Gaussian, MultivariateNormal
from gpsift.likelihoods.softmax import SoftmaxMixture
from gpsift.reference.affine import Affine
from gpsift.reference.base import DrawResult, PlacedPosterior, Reference, Response, T
from gpsift.reference.inputs import Inputs, Points
from gpsift.reference.posterior import Posterior
from gpsift.reference.response import GPResponse, OneClassResponse

if TYPE_CHECKING:
    from gpsift.gp.inference.softmax_posterior import SoftmaxPosterior, SoftmaxPosteriorAt


@dataclass(frozen=True, eq=False, repr=False)
class FittedMulticlass(FittedGP):
    """A `FittedGP` with a latent function for each class, as ``GP(likelihood="softmax").fit`` returns it.

    Latent means are (n, C), covariances (n, C, C) and draws of the latent functions (n_draws, n, C). The `mean` of a
    prediction, and the moments of `quality`, are those of the indicators of the classes, (n, C).
    """

    likelihood: Softmax

    @property
    def n_classes(self) -> int:
        return self.posterior.n_classes

    @property
    def mean_of(self) -> str:
        return "the latent functions"

    @property
    def functions(self) -> Mapping[str, ClassFunction]:
        """The latent function of each class, less the average of all: "class 0", "class 1" and so on."""
        return {f"class {c}": ClassFunction(self, c) for c in range(self.n_classes)}

    def _predict(self, points: Points, size: np.ndarray) -> Prediction:
        latent = self._latent_at(points)
        mean, cov = latent.mean, latent.cov
        normal = MultivariateNormal(mean, cov)
        return Prediction(self.likelihood.predictive(mean, cov, size), mean, normal.var, normal)

    def at(self, points: Points) -> MulticlassResponse:  # type: ignore[override]
        return MulticlassResponse(self._latent_at(points), self.scaling, self.likelihood)

    def joint(self, points: Points) -> tuple[np.ndarray, np.ndarray]:
        return Reference.joint(self, points)  # `FittedGP.joint` is for one latent function


@dataclass(frozen=True, eq=False, repr=False)
class ClassFunction(Reference):
    """The latent function of one class less the average of all classes: probabilities depend on this difference.

    Its observations are the indicators of the class.
    """

    model: FittedMulticlass
    number: int

    @property
    def inputs(self) -> Inputs:  # type: ignore[override]
        return self.model.inputs

    @property
    def mean_of(self) -> str:
        return f"the latent function of class {self.number}"

    @property
    def explains(self) -> bool:
        return self.model.explains

    @property
    def used(self) -> tuple[int, ...]:
        return self.model.used

    @property
    def slopes(self) -> np.ndarray:
        return self.model.slopes

    def on_columns(self, columns: Sequence[int]) -> ClassFunction | None:
        smaller = self.model.on_columns(columns)
        return None if smaller is None else replace(self, model=smaller)  # type: ignore[arg-type]  # of the same class

    @property
    def open_columns(self) -> tuple[int, ...]:
        return self.model.open_columns

    def map_draws(self, function: Callable[[Reference], T], n: int, seed: int) -> DrawResult[T]:
        return self.model.map_draws(lambda drawn: function(replace(self, model=drawn)), n, seed)  # type: ignore[arg-type]

    def draw_functions(self, n: int, rng: np.random.Generator) -> list[Self]:
        return [replace(self, model=each) for each in self.model.draw_functions(n, rng)]

    def at(self, points: Points) -> ClassResponse:
        scaling = self.model.scaling
        latent = self.posterior.at(scaling.inputs(points.X))
        own = GPResponse(latent, Gaussian, replace(scaling, y_center=0.0, y_scale=self.length))
        return ClassResponse(own, self.model.at(points), self.number)

    @property
    def length(self) -> float:
        """The norm of the coefficients that the functions of all classes have in this one."""
        return float(np.linalg.norm(self._coefficients))

    @cached_property
    def posterior(self) -> Posterior:
        """The posterior of the function divided by `length`, so that its prior is that of each class."""
        return self.model.posterior.combination(self._coefficients / self.length)

    @property
    def _coefficients(self) -> np.ndarray:
        n_classes = self.model.n_classes
        return np.eye(n_classes)[self.number] - 1.0 / n_classes


class ClassResponse(OneClassResponse):
    """The response of the function of one class, in closed form."""

    _whole: MulticlassResponse

    def mean_slope(self) -> np.ndarray:
        return self._whole.probability_slopes(self._number)

    def placed_posterior(self) -> PlacedPosterior:
        return replace(super().placed_posterior(), coupled=self._whole.posterior)


class LatentClasses(MultivariateNormal):
    """Latent values of the classes, compared by contrasts: a constant added to all classes changes no prediction."""

    def metric_terms(self, *gradients: np.ndarray) -> dict[str, np.ndarray]:
        return self._differences.metric_terms(*self._contrasts(*gradients))

    def kl_terms(self, *changes: np.ndarray) -> dict[str, np.ndarray]:
        return self._differences.kl_terms(*self._contrasts(*changes))

    @property
    def _differences(self) -> MultivariateNormal:
        return MultivariateNormal(*self._contrasts(self.mean, self.cov))

    def _contrasts(self, mean: np.ndarray, cov: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        contrasts = helmert(self.mean.shape[1])
        first = np.einsum("kc,ic...->ik...", contrasts, mean)
        return first, np.einsum("kc,icd...,ld->ikl...", contrasts, cov, contrasts)


class MulticlassResponse(Response):
    """The response of coupled latent functions, in closed form."""

    def __init__(self, latent: SoftmaxPosteriorAt, scaling: Affine, likelihood: Softmax):
        self._latent, self._scaling, self._likelihood = latent, scaling, likelihood

    @property
    def latent_mean(self) -> np.ndarray:
        """Latent means less the mean of all classes, (n, C)."""
        mean = self._latent.mean
        return mean - mean.mean(axis=1, keepdims=True)

    @property
    def posterior(self) -> SoftmaxPosterior:
        """The posterior of all latent functions."""
        return self._latent.posterior

    def distribution(self, *, latent: bool) -> Distribution:
        return LatentClasses(self._latent.mean, self._latent.cov) if latent else self._probabilities

    def probability_slopes(self, number: int) -> np.ndarray:
        """Return the derivatives of the probability of a class by each latent mean, (n, C)."""
        return self._probabilities.mean_slopes(number)

    @cached_property
    def _probabilities(self) -> SoftmaxMixture:
        mean, cov = self._latent.mean, self._latent.cov
        return self._likelihood.predictive(mean, cov, np.ones(len(mean)))

    def gradients(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives of latent means (n, C, p) and covariances (n, C, C, p)."""
        x_scale = self._scaling.x_scale
        return self._latent.mean_gradient / x_scale, self._latent.cov_gradient / x_scale

    def step(self, j: int, delta: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the changes of latent means (n, C) and covariances (n, C, C)."""
        return self._latent.step(j, delta / self._scaling.x_scale[j])

    def section(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """Return latent means less the mean of all classes, (n, q, C)."""
        x_center, x_scale = self._scaling.x_center[j], self._scaling.x_scale[j]
        means = self._latent.section(j, (base - x_center) / x_scale, offset / x_scale)
        return means - means.mean(axis=2, keepdims=True)
