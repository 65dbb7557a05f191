"""This module has the closed-form `Response` of a latent posterior, in the user's units.

Fitted models of gpsift return a `GPResponse`; so do models of other libraries whose kernel gpsift has (`LatentGP`). An
affine map (`gpsift.reference.affine`) converts the user's units to the posterior's. Arrays are NumPy arrays, whatever
the device of the posterior.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from gpsift._utils.arrays import Array, like, to_numpy
from gpsift.likelihoods.distributions import Bernoulli, Distribution, Gaussian
from gpsift.reference.affine import Affine
from gpsift.reference.base import MissingCapability, PlacedPosterior, Reference, Response, WrappedResponse
from gpsift.reference.function_draws import draw_functions
from gpsift.reference.inputs import Inputs, Points, same_rows
from gpsift.reference.posterior import LatentAt, LatentAtSupport, Posterior

# Maps latent mean and variance, in the user's units, to the distribution of a new observation.
Predictive = Callable[[np.ndarray, np.ndarray], Distribution]

# Step of the latent mean in its standard deviations: truncation error grows with its square, rounding with its inverse.
MEAN_STEP = 1e-4


@dataclass(frozen=True, eq=False)
class GPResponse(Response):
    """Predictions of a latent posterior at n points and their derivatives."""

    latent: LatentAt  # the posterior at the points, in its own units
    predictive: Predictive
    affine: Affine  # from the user's units to the posterior's
    # Converts arrays of the posterior to those that the response returns.
    to_output: Callable[[Array], Array] = field(default=to_numpy, kw_only=True)
    # Whether `predictive` computes on the device of the posterior, as that of Gaussian noise does; others need NumPy.
    on_model_device: bool = field(default=True, kw_only=True)

    @property
    def on_device(self) -> Self:
        return replace(self, to_output=lambda array: array) if self.on_model_device else self

    @property
    def latent_mean(self) -> np.ndarray:
        return self.affine.y_center + self.affine.y_scale * self.to_output(self.latent.mean)

    @property
    def latent_var(self) -> np.ndarray:
        return self.affine.y_scale**2 * self.to_output(self.latent.var)

    @property
    def latent_cov(self) -> np.ndarray:
        """Latent covariance between all points, (n, n)."""
        posterior = self.latent.posterior
        if not isinstance(self.latent, LatentAtSupport):
            return self.affine.y_scale**2 * to_numpy(posterior.covariance(self.latent.X))
        # K - K M K = D - D M D, because M (K + D) = I; the right side does not subtract large numbers.
        D, M, rows = to_numpy(posterior.site_var), to_numpy(posterior.M), self.latent.rows
        covariance = np.diag(D) - D[:, None] * M * D
        return self.affine.y_scale**2 * (covariance if rows is None else covariance[np.ix_(rows, rows)])

    def distribution(self, *, latent: bool) -> Distribution:
        mean, var = self.latent_mean, self.latent_var
        return Gaussian(mean, var) if latent else self.predictive(mean, var)

    def gradients(self) -> tuple[np.ndarray, np.ndarray]:
        mean_gradient = self.to_output(self.latent.mean_gradient)
        var_gradient = self.to_output(self.latent.var_gradient)
        unit = like(mean_gradient, self.affine.y_scale / self.affine.x_scale)
        return mean_gradient * unit, var_gradient * (self.affine.y_scale * unit)

    def hessians(self) -> tuple[np.ndarray, np.ndarray]:
        x_scale = np.multiply.outer(self.affine.x_scale, self.affine.x_scale)
        return self.mean_hessian(), to_numpy(self.latent.var_hessian) * (self.affine.y_scale**2 / x_scale)

    def mean_hessian(self) -> np.ndarray:
        x_scale = np.multiply.outer(self.affine.x_scale, self.affine.x_scale)
        return to_numpy(self.latent.mean_hessian) * (self.affine.y_scale / x_scale)

    def mean_slope(self) -> np.ndarray:
        mean, var = self.latent_mean, self.latent_var
        step = MEAN_STEP * np.sqrt(self.affine.y_scale**2 + var)
        up, down = (self.predictive(moved, var).mean for moved in (mean + step, mean - step))
        return (up - down) / (2.0 * step)

    def placed_posterior(self) -> PlacedPosterior:
        posterior = self.latent.posterior
        if not isinstance(posterior, Posterior):
            return super().placed_posterior()
        return PlacedPosterior(posterior, self.affine)

    def step(self, j: int, delta: float) -> tuple[np.ndarray, np.ndarray]:
        mean_change, var_change = self.latent.step(j, delta / self.affine.x_scale[j])
        return self.affine.y_scale * to_numpy(mean_change), self.affine.y_scale**2 * to_numpy(var_change)

    def section(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        x_center, x_scale = self.affine.x_center[j], self.affine.x_scale[j]
        base, offset = (like(self.latent.X, values) for values in ((base - x_center) / x_scale, offset / x_scale))
        return self.affine.y_scale * to_numpy(self.latent.section(j, base, offset))


class OneClass(Bernoulli):
    """The probability of one of several classes, which depends on the latent functions of all."""

    def metric_terms(self, *gradients: np.ndarray) -> dict[str, np.ndarray]:
        raise MissingCapability(OF_ALL_CLASSES)

    def kl_terms(self, *changes: np.ndarray) -> dict[str, np.ndarray]:
        if len(changes) > 1:  # of the latent mean and variance, not of the probability
            raise MissingCapability(OF_ALL_CLASSES)
        return super().kl_terms(*changes)


OF_ALL_CLASSES = (
    "KL() compares probabilities, and that of one class depends on the latent functions of all. Rank the model of all "
    "classes by it, or this function by KL(latent=True), VAR() or Derivative()."
)


class OneClassResponse(WrappedResponse):
    """The response of one of several classes: its own latent function, and its probability.

    `own` is the response of the latent function, `whole` that of the model of all classes at the same points.
    """

    def __init__(self, own: Response, whole: Response, number: int):
        super().__init__(own)
        self._whole, self._number = whole, number

    def distribution(self, *, latent: bool) -> Distribution:
        if latent:
            return super().distribution(latent=True)
        return OneClass(self._whole.distribution(latent=False).mean[:, self._number])

    def mean_slope(self) -> np.ndarray:
        return Response.mean_slope(self)  # the probability depends on the other functions, too


@dataclass(frozen=True, eq=False, repr=False)
class LatentGP(Reference):
    """A Gaussian process with a known `Posterior`, fitted by gpsift or by another library."""

    posterior: Posterior  # sees inputs in the user's units
    predictive: Predictive
    inputs: Inputs
    y_center: float = 0.0  # the latent function in the user's units is y_center + y_scale f
    y_scale: float = 1.0
    mean_of: str = "the target"
    notices: tuple[str, ...] = ()

    @property
    def how(self) -> str:
        return f"closed form: {self.posterior.kernel.title}"

    @property
    def lengthscale(self) -> np.ndarray | None:
        """Length-scales; None if the kernel has no single length-scale for each feature."""
        lengthscales = self.posterior.kernel.lengthscales
        return lengthscales[0] if len(lengthscales) == 1 and lengthscales[0].size == self.inputs.n_features else None

    def at(self, points: Points) -> LatentGPResponse:
        return LatentGPResponse(*self._response_at(points))

    def joint(self, points: Points) -> tuple[np.ndarray, np.ndarray]:
        response = self.at(points)
        return response.latent_mean, response.latent_cov

    def draw_functions(self, n: int, rng: np.random.Generator) -> list[Self]:
        return [replace(self, posterior=each) for each in draw_functions(self.posterior, n, rng)]  # type: ignore[arg-type]

    @cached_property
    def _is_supported_by_training_points(self) -> bool:
        return same_rows(self.inputs.X, self.posterior.Z)

    def _response_at(self, points: Points) -> tuple[LatentAt, Predictive, Affine]:
        """Return the arguments of the response at the points."""
        if points.is_training and self._is_supported_by_training_points:
            latent = self.posterior.at_support(points.rows)
        else:
            latent = self.posterior.at(points.X)
        return latent, self.predictive, Affine.of_target(self.y_center, self.y_scale, self.posterior.Z.shape[1])


class LatentGPResponse(GPResponse):
    """The closed-form response of models that may have no noise."""

    @property
    def latent_var(self) -> np.ndarray:
        # Without noise the variance at a training point is 0, up to rounding errors of the prior variance.
        prior_var = self.latent.posterior.kernel.diag(self.latent.X)
        return np.maximum(super().latent_var, self.affine.y_scale**2 * np.finfo(float).eps * prior_var)
