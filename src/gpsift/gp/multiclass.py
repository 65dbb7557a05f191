"""A fitted Gaussian process for several classes: one latent function for each, coupled by the softmax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import helmert

from gpsift.families import Family, MultivariateNormal
from gpsift.gp.fitted import FittedGP
from gpsift.gp.scaling import Scaling
from gpsift.inference import CoupledAt, CoupledPosterior
from gpsift.inputs import Points
from gpsift.likelihoods import Softmax, read_size
from gpsift.reference import Reference, Response
from gpsift.results import Prediction
from gpsift.threads import blas_threads_for


@dataclass(frozen=True, eq=False, repr=False)
class FittedMulticlass(FittedGP):
    """What `GP(likelihood="softmax").fit` returns: a `FittedGP` with a latent function for each class.

    Latent means are (n, C), covariances (n, C, C) and draws of the latent functions (n_draws, n, C). The `mean` of a
    prediction, and the moments of `quality`, are those of the indicators of the classes, (n, C).
    """

    posterior: CoupledPosterior  # type: ignore[assignment]  # coupled functions instead of one
    likelihood: Softmax

    @property
    def n_classes(self) -> int:
        return self.posterior.n_classes

    @property
    def mean_of(self) -> str:
        return "the latent functions"

    def predict(self, X_new: Any, *, exposure: Any = None, trials: Any = None) -> Prediction:
        """Probabilities of the classes at new points, averaged over the latent functions; classes have no sizes."""
        points = self._read(X_new)
        size = read_size(self.likelihood, len(points), exposure=exposure, trials=trials)
        with blas_threads_for(self.y_train.size):
            latent = self._latent_at(points)
            mean, cov = latent.mean, latent.cov
        normal = MultivariateNormal(mean, cov)
        return Prediction(self.likelihood.predictive(mean, cov, size), mean, normal.var, normal)

    def at(self, points: Points) -> MulticlassResponse:  # type: ignore[override]
        return MulticlassResponse(self._latent_at(points), self.scaling, self.likelihood)

    def joint(self, points: Points) -> tuple[np.ndarray, np.ndarray]:
        return Reference.joint(self, points)  # several functions have no joint posterior of one


class LatentClasses(MultivariateNormal):
    """Latent values of the classes, compared by their differences: what all classes share changes no prediction."""

    def metric_terms(self, *gradients: np.ndarray) -> dict[str, np.ndarray]:
        return self._differences.metric_terms(*self._of_differences(*gradients))

    def kl_terms(self, *changes: np.ndarray) -> dict[str, np.ndarray]:
        return self._differences.kl_terms(*self._of_differences(*changes))

    @property
    def _differences(self) -> MultivariateNormal:
        return MultivariateNormal(*self._of_differences(self.mean, self.cov))

    def _of_differences(self, mean: np.ndarray, cov: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        contrasts = helmert(self.mean.shape[1])
        first = np.einsum("kc,ic...->ik...", contrasts, mean)
        return first, np.einsum("kc,icd...,ld->ikl...", contrasts, cov, contrasts)


class MulticlassResponse(Response):
    """The response of coupled latent functions, in closed form."""

    def __init__(self, latent: CoupledAt, scaling: Scaling, likelihood: Softmax):
        self._latent, self._scaling, self._likelihood = latent, scaling, likelihood

    @property
    def latent_mean(self) -> np.ndarray:
        """Without what all classes share, (n, C)."""
        mean = self._latent.mean
        return mean - mean.mean(axis=1, keepdims=True)

    def distribution(self, *, latent: bool) -> Family:
        mean, cov = self._latent.mean, self._latent.cov
        return LatentClasses(mean, cov) if latent else self._likelihood.predictive(mean, cov, np.ones(len(mean)))

    def gradients(self) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of latent means (n, C, p) and covariances (n, C, C, p)."""
        x_scale = self._scaling.x_scale
        return self._latent.mean_gradient / x_scale, self._latent.cov_gradient / x_scale

    def step(self, j: int, delta: float) -> tuple[np.ndarray, np.ndarray]:
        """Changes of latent means (n, C) and covariances (n, C, C)."""
        return self._latent.step(j, delta / self._scaling.x_scale[j])

    def section(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """Latent means without what all classes share, (n, q, C)."""
        x_center, x_scale = self._scaling.x_center[j], self._scaling.x_scale[j]
        means = self._latent.section(j, (base - x_center) / x_scale, offset / x_scale)
        return means - means.mean(axis=2, keepdims=True)
