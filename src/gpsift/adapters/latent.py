"""A Gaussian process of another library whose kernel we have: the triple, and with it every closed form."""

from __future__ import annotations

from collections.abc import Callable
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

KERNEL_NAMES = {
    SquaredExponential: "squared exponential",
    Matern32: "Matern 3/2",
    Matern52: "Matern 5/2",
    RationalQuadratic: "rational quadratic",
    Constant: "constant",
    Linear: "linear",
}


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
    predictive: Callable[[np.ndarray, np.ndarray], Family]
    feature_names: tuple[str, ...]
    has_given_names: bool
    X_train: np.ndarray | None
    y_center: float = 0.0
    y_scale: float = 1.0
    mean_of: str = "the target"
    notices: tuple[str, ...] = ()

    @property
    def how(self) -> str:  # type: ignore[override]
        return f"closed form: {described(self.posterior.kernel)}"

    def fresh(self) -> Self:
        return replace(self, posterior=replace(self.posterior))

    @property
    def lengthscale(self) -> np.ndarray | None:
        """Length-scales; None if the kernel has no single length-scale for each feature."""
        lengthscales = self.posterior.kernel.lengthscales
        return lengthscales[0] if len(lengthscales) == 1 and lengthscales[0].size == self.n_features else None

    def at(self, X: np.ndarray, rows: np.ndarray | None = None) -> LatentGPResponse:
        if self._is_support(X):
            latent = self.posterior.at_support(rows)
        else:
            latent = self.posterior.at(X if rows is None else X[rows])
        return LatentGPResponse(latent, self)

    def latent_mean(self, X: np.ndarray) -> np.ndarray:
        return self.at(X).latent_mean

    def joint(self, X: np.ndarray, rows: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        D = self.posterior.site_var
        if D is not None and self._is_support(X):
            # K - K M K = D - D M D, because M (K + D) = I; the right side does not subtract large numbers.
            covariance = np.diag(D) - D[:, None] * self.posterior.M * D
            covariance = covariance if rows is None else covariance[np.ix_(rows, rows)]
        else:
            covariance = self.posterior.covariance(X if rows is None else X[rows])
        return self.at(X, rows).latent_mean, self.y_scale**2 * covariance

    def _is_support(self, X: np.ndarray) -> bool:
        return X is self.posterior.Z or np.array_equal(X, self.posterior.Z)


class LatentGPResponse:
    """Predictions and their derivatives in closed form, in the user's units."""

    def __init__(self, latent: LatentAt, model: LatentGP):
        self._latent, self._model = latent, model

    @property
    def latent_mean(self) -> np.ndarray:
        return self._model.y_center + self._model.y_scale * self._latent.mean

    @property
    def latent_var(self) -> np.ndarray:
        # Without noise nothing is unknown at a training point; rounding error of the prior variance is what is left.
        prior_var = self._model.posterior.kernel.diag(self._latent.X)
        return self._model.y_scale**2 * np.maximum(self._latent.var, np.finfo(float).eps * prior_var)

    def distribution(self, *, latent: bool) -> Family:
        mean, var = self.latent_mean, self.latent_var
        return families.Gaussian(mean, var) if latent else self._model.predictive(mean, var)

    def gradients(self) -> tuple[np.ndarray, np.ndarray]:
        y_scale = self._model.y_scale
        return y_scale * self._latent.mean_gradient, y_scale**2 * self._latent.var_gradient

    def hessians(self) -> tuple[np.ndarray, np.ndarray]:
        """Second derivatives of mean and variance, (n, p, p) each."""
        y_scale = self._model.y_scale
        return y_scale * self._latent.mean_hessian, y_scale**2 * self._latent.var_hessian

    def step(self, j: int, delta: float) -> tuple[np.ndarray, np.ndarray]:
        mean_change, var_change = self._latent.step(j, delta)
        return self._model.y_scale * mean_change, self._model.y_scale**2 * var_change

    def section(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        return self._model.y_scale * self._latent.section(j, base, offset)


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
