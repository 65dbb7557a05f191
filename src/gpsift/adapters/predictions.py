"""A `LibraryModel` is a reference that uses the predictions of a library, and its gradients or finite differences.

It is for models whose posterior is not read in closed form. An adapter passes functions of points (n, p): one that
predicts, and one that differentiates the predictions if the library can. A prediction at a point depends on no other
point, so one backward pass through the sum over all points computes the gradients at all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from gpsift._utils.validation import column_sd
from gpsift.likelihoods import distributions as families
from gpsift.likelihoods.distributions import Distribution
from gpsift.reference.finite_differences import (
    STEP,
    Differentiable,
    GradientResponse,
    NumericResponse,
    central_difference,
)
from gpsift.reference.inputs import Inputs, Points

# Tolerated difference of gradients from differences of predictions, as a share of the largest; wrong ones differ more.
GRADIENT_TOLERANCE = 1e-4
# Number of points for this check, and their distance from rows of X in standard deviations: kernels such as the
# exponential are not differentiable at the training points.
N_CHECKED, DISTANCE = 3, 0.1

Arrays = tuple[np.ndarray, ...]


@dataclass(frozen=True, eq=False, repr=False)
class LibraryModel(Differentiable):
    """A fitted model that is known by its predictions.

    Parameters
    ----------
    predict : callable
        Maps points to the varying parameters of the predictive distribution, (n, ...) each: latent mean and variance,
        unless `predictive` and `latent` take others. VAR scores the first one.
    inputs : Inputs
    predictive : callable
        Maps these parameters to the distribution of a new observation.
    what : str
        Name of the function that is differentiated, in `how`.
    differentiate : callable, optional
        Maps points to the gradients of these parameters, (n, ..., p) each. Without it finite differences are used.
    predict_mean : callable, optional
        Maps points to the first parameter alone, where that is cheaper.
    covariance : callable, optional
        Maps points to the covariance of the noise-free function between them, (n, n).
    latent : callable
        Maps these parameters to the distribution of the noise-free function.
    source : str, optional
        Source of the gradients in `how`; by default automatic differentiation.
    mean_of : str
    notices : tuple of str
    batch_size : int
        The nodes of a section are predicted in one call up to this many points.
    """

    predict: Callable[[np.ndarray], Arrays]
    inputs: Inputs
    predictive: Callable[..., Distribution]
    what: str
    differentiate: Callable[[np.ndarray], Arrays] | None = None
    predict_mean: Callable[[np.ndarray], np.ndarray] | None = None
    covariance: Callable[[np.ndarray], np.ndarray] | None = None
    latent: Callable[..., Distribution] = families.Gaussian
    source: str | None = None
    mean_of: str = "the target"
    notices: tuple[str, ...] = ()
    batch_size: int = 1  # type: ignore[misc]

    @property
    def how(self) -> str:
        if self.differentiate is None:
            return f"finite differences of {self.what}"
        return f"automatic differentiation of {self.what}" if self.source is None else self.source

    def at(self, points: Points) -> NumericResponse:
        response = NumericResponse if self.differentiate is None else GradientResponse
        return response(self, points.X, points.inputs.sd)

    def joint(self, points: Points) -> tuple[np.ndarray, np.ndarray]:
        if self.covariance is None:
            return super().joint(points)
        return self.mean_only(points.X), self.covariance(points.X)

    def family(self, X: np.ndarray, parameters: Arrays, *, latent: bool) -> Distribution:
        return (self.latent if latent else self.predictive)(*parameters)

    def parameters(self, X: np.ndarray) -> Arrays:
        return self.predict(X)

    def mean_only(self, X: np.ndarray) -> np.ndarray:
        return self.parameters(X)[0] if self.predict_mean is None else self.predict_mean(X)

    def gradients(self, X: np.ndarray) -> Arrays:
        assert self.differentiate is not None
        return self.differentiate(X)

    def with_finite_differences(self) -> Self:
        """Return this model with finite differences of its predictions in place of gradients."""
        return replace(self, differentiate=None)


def gradient_error(model: LibraryModel, X: np.ndarray) -> str | None:
    """Compare gradients with differences of predictions; return a description of the error, None if they agree.

    Some models detach parts of their computation, or interpolate in a table, and some kernels of GPy have wrong
    gradients or none. The comparison is along one random direction, at a few points near rows of X.
    """
    rng, scale = np.random.default_rng(0), column_sd(X)
    X = X[:N_CHECKED] + DISTANCE * scale * rng.standard_normal(X[:N_CHECKED].shape)
    direction = scale * rng.standard_normal(X.shape)
    try:
        gradients = model.gradients(X)
    except (NotImplementedError, AttributeError, TypeError, ValueError) as missing:
        return f"{type(missing).__name__}: {missing}"
    up, down, far_up, far_down = (model.parameters(X + k * STEP * direction) for k in (1, -1, 2, -2))
    for gradient, *ends in zip(gradients, up, down, far_up, far_down, strict=True):
        along = np.einsum("i...j,ij->i...", gradient, direction)
        difference = central_difference(ends, STEP)
        largest, rounding = np.max(np.abs(difference)), 1e-9 / STEP * np.max(np.abs(ends))
        if not np.allclose(along, difference, rtol=GRADIENT_TOLERANCE, atol=GRADIENT_TOLERANCE * largest + rounding):
            error = np.max(np.abs(along - difference))
            return f"they differ from differences of predictions by {error:.2g}, where these are up to {largest:.2g}"
    return None
