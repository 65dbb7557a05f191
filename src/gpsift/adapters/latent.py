"""A Gaussian process of another library whose kernel we have: the triple, and with it every closed form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from gpsift import families
from gpsift.adapters.foreign import Foreign
from gpsift.families import Family
from gpsift.kernels import (
    Constant,
    Kernel,
    Linear,
    Matern32,
    Matern52,
    RationalQuadratic,
    SquaredExponential,
    Sum,
)
from gpsift.posterior import LatentAt, Posterior
from gpsift.response import GPResponse, Predictive

KERNEL_NAMES = {
    SquaredExponential: "squared exponential",
    Matern32: "Matern 3/2",
    Matern52: "Matern 5/2",
    RationalQuadratic: "rational quadratic",
    Constant: "constant",
    Linear: "linear",
}

# What a `GPResponse` is made of.
ResponseParts = tuple[LatentAt, Predictive, np.ndarray, np.ndarray, float, float]


@dataclass(frozen=True, eq=False, repr=False)
class LatentGP(Foreign):
    """A latent posterior, and what is observed of it.

    Parameters
    ----------
    posterior : Posterior
        Of the latent function, in the user's units of the inputs.
    predictive : callable
        From latent mean and variance, in the user's units, to the distribution of a new observation.
    feature_names, has_given_names, X_train
        As in `Reference`.
    y_center, y_scale : float
        The latent function in the user's units is y_center + y_scale f.
    mean_of : str
        What the latent mean is the mean of.
    """

    posterior: Posterior
    predictive: Predictive
    feature_names: tuple[str, ...]
    has_given_names: bool
    X_train: np.ndarray | None
    y_center: float = 0.0
    y_scale: float = 1.0
    mean_of: str = "the target"
    notices: tuple[str, ...] = ()

    @property
    def how(self) -> str:
        return f"closed form: {described(self.posterior.kernel)}"

    def fresh(self) -> Self:
        return replace(self, posterior=replace(self.posterior))

    @property
    def lengthscale(self) -> np.ndarray | None:
        """Length-scales; None if the kernel has no single length-scale for each feature."""
        lengthscales = self.posterior.kernel.lengthscales
        return lengthscales[0] if len(lengthscales) == 1 and lengthscales[0].size == self.n_features else None

    def at(self, X: np.ndarray, rows: np.ndarray | None = None) -> LatentGPResponse:
        return LatentGPResponse(*self._response_at(X, rows))

    def latent_mean(self, X: np.ndarray) -> np.ndarray:
        return self.at(X).latent_mean

    def joint(self, X: np.ndarray, rows: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        response = self.at(X, rows)
        return response.latent_mean, response.latent_cov

    def _response_at(self, X: np.ndarray, rows: np.ndarray | None) -> ResponseParts:
        """The posterior at the points; it sees inputs in the user's units."""
        if X is self.posterior.Z or np.array_equal(X, self.posterior.Z):
            latent = self.posterior.at_support(rows)
        else:
            latent = self.posterior.at(X if rows is None else X[rows])
        n_inputs = self.posterior.Z.shape[1]
        return latent, self.predictive, np.zeros(n_inputs), np.ones(n_inputs), self.y_center, self.y_scale


class LatentGPResponse(GPResponse):
    """The closed forms, for models that may have no noise."""

    @property
    def latent_var(self) -> np.ndarray:
        # Without noise nothing is unknown at a training point; rounding error of the prior variance is what is left.
        prior_var = self.latent.posterior.kernel.diag(self.latent.X)
        return np.maximum(super().latent_var, self.y_scale**2 * np.finfo(float).eps * prior_var)


@dataclass(frozen=True)
class NormalNoise:
    """From a normal latent value to a new observation: the same with the variance of the noise added."""

    var: float

    def __call__(self, latent_mean: np.ndarray, latent_var: np.ndarray) -> Family:
        return families.Gaussian(latent_mean, latent_var + self.var)


def described(kernel: Kernel) -> str:
    """The terms of a kernel in words."""
    terms = kernel.terms if isinstance(kernel, Sum) else (kernel,)
    return " + ".join(KERNEL_NAMES.get(type(term), type(term).__name__) for term in terms)
