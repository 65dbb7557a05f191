"""A Gaussian process of another library whose kernel we have: the triple, and with it every closed form."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpsift.reference.base import Reference
from gpsift.reference.inputs import Inputs, Points, same_rows
from gpsift.reference.posterior import LatentAt, Posterior
from gpsift.reference.response import GPResponse, Predictive

# What a `GPResponse` is made of.
ResponseParts = tuple[LatentAt, Predictive, np.ndarray, np.ndarray, float, float]


@dataclass(frozen=True, eq=False, repr=False)
class LatentGP(Reference):
    """A latent posterior, and what is observed of it."""

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

    @cached_property
    def _is_supported_by_training_points(self) -> bool:
        return same_rows(self.inputs.X, self.posterior.Z)

    def _response_at(self, points: Points) -> ResponseParts:
        """The posterior at the points; it sees inputs in the user's units."""
        if points.is_training and self._is_supported_by_training_points:
            latent = self.posterior.at_support(points.rows)
        else:
            latent = self.posterior.at(points.X)
        n_inputs = self.posterior.Z.shape[1]
        return latent, self.predictive, np.zeros(n_inputs), np.ones(n_inputs), self.y_center, self.y_scale


class LatentGPResponse(GPResponse):
    """The closed forms, for models that may have no noise."""

    @property
    def latent_var(self) -> np.ndarray:
        # Without noise nothing is unknown at a training point; rounding error of the prior variance is what is left.
        prior_var = self.latent.posterior.kernel.diag(self.latent.X)
        return np.maximum(super().latent_var, self.y_scale**2 * np.finfo(float).eps * prior_var)
