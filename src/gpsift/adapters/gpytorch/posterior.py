"""Latent posteriors of GPyTorch models whose kernel we have, and the mean function around which they vary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gpytorch
import numpy as np
from gpytorch.variational import UnwhitenedVariationalStrategy, VariationalStrategy

from gpsift._utils.linalg import add_diagonal, jittered_cholesky, solve_lower
from gpsift.adapters.gpytorch.kernels import value_of
from gpsift.adapters.gpytorch.prior import Mean
from gpsift.kernels import Kernel
from gpsift.reference.base import MissingCapability, PlacedPosterior
from gpsift.reference.finite_differences import GradedResponse
from gpsift.reference.inputs import Points
from gpsift.reference.posterior import DenseFactor, Factor, Posterior, TriangularFactor, exact_posterior
from gpsift.reference.response import LatentGP, LatentGPResponse

# Strategies with a closed form, and whether their inducing values are whitened.
WHITENED = {VariationalStrategy: True, UnwhitenedVariationalStrategy: False}


def exact_parts(kernel: Kernel, Z: Any, y: Any, prior_mean: Any, noise_var: Any) -> Posterior:
    """The latent posterior of one exact model, in double precision on the CPU.

    Parameters
    ----------
    kernel : Kernel
        From `converted`.
    Z : tensor (n, p)
        Training inputs.
    y, prior_mean : tensors (n,)
        Training targets, and the mean function at Z.
    noise_var : tensor (n,) or of one element
    """
    y = value_of(y)
    noise = np.broadcast_to(value_of(noise_var).ravel(), y.shape).copy()
    return exact_posterior(kernel, value_of(Z), y - value_of(prior_mean), noise)[0]


def variational_parts(kernel: Kernel, strategy: Any, prior_mean: Any) -> tuple[Posterior, float]:
    r"""The latent posterior of inducing values, and the variance that the library adds to it.

    With :math:`K_{zz} = L L^T` and inducing values :math:`u = L v + \mathrm{mean}`, v ~ N(m, S), Hensman et al. (2015):

    .. math:: w = L^{-T} m, \qquad M = L^{-T} (I - S) L^{-1} .
    """
    Z, jitter = value_of(strategy.inducing_points), float(strategy.jitter_val)
    q = strategy._variational_distribution()
    L, _ = jittered_cholesky(add_diagonal(kernel.between(Z, Z).K, jitter))
    is_whitened = WHITENED[type(strategy)]
    m = value_of(q.mean) if is_whitened else solve_lower(L, value_of(q.mean) - value_of(prior_mean))
    factors: list[Factor] = [TriangularFactor(L)]
    if isinstance(q, gpytorch.distributions.MultivariateNormal):  # otherwise v is known: S = 0
        root = _symmetric_root(value_of(q.covariance_matrix))
        root = root if is_whitened else solve_lower(L, root)
        factors.append(DenseFactor(np.ascontiguousarray(solve_lower(L, root, transpose=True).T), sign=-1.0))
    posterior = Posterior(kernel, Z, solve_lower(L, m, transpose=True), tuple(factors))
    return posterior, jitter if is_whitened else 0.0


def _symmetric_root(S: np.ndarray) -> np.ndarray:
    """R with R R^T = S, which may be singular."""
    values, vectors = np.linalg.eigh(S)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def closed_form(posterior: Posterior, mean: Mean, *, extra_var: float = 0.0, **shared: Any) -> LatentGP:
    """A latent posterior around the mean function of its prior, as a reference."""
    if mean.level is None:
        return MeanGP(posterior=posterior, mean=mean, extra_var=extra_var, **shared)
    if extra_var:
        return MeanGP(posterior=posterior, y_center=mean.level, extra_var=extra_var, **shared)
    return LatentGP(posterior=posterior, y_center=mean.level, **shared)


@dataclass(frozen=True, eq=False, repr=False)
class MeanGP(LatentGP):
    """A latent posterior around a mean that varies with the inputs.

    Parameters
    ----------
    mean : Mean, optional
    extra_var : float
        A variance that the library adds to that of the latent function at every point.
    """

    mean: Mean | None = None
    extra_var: float = 0.0

    @property
    def how(self) -> str:
        return super().how if self.mean is None else f"{super().how}, around a mean by automatic differentiation"

    def at(self, points: Points) -> MeanGPResponse:
        parts = self._response_at(points)
        mean = None if self.mean is None else self.mean.at(parts[0].X, points.inputs.sd)
        return MeanGPResponse(*parts, mean, self.extra_var)


@dataclass(frozen=True, eq=False)
class MeanGPResponse(LatentGPResponse):
    """The closed forms, with the mean function and its derivatives added."""

    mean: GradedResponse | None
    extra_var: float

    @property
    def latent_mean(self) -> np.ndarray:
        return super().latent_mean + (0.0 if self.mean is None else self.mean.parameters[0])

    @property
    def latent_var(self) -> np.ndarray:
        return super().latent_var + self.extra_var

    @property
    def latent_cov(self) -> np.ndarray:
        return add_diagonal(super().latent_cov, self.extra_var)

    def gradients(self) -> tuple[np.ndarray, np.ndarray]:
        by_mean, by_var = super().gradients()
        return by_mean + (0.0 if self.mean is None else self.mean.gradients()[0]), by_var

    def hessians(self) -> tuple[np.ndarray, np.ndarray]:
        if self.mean is not None:
            raise MissingCapability("Second derivatives of a mean function are not offered.")
        return super().hessians()

    def mean_hessian(self) -> np.ndarray:
        return super().mean_hessian() if self.mean is None else self.hessians()[0]

    def placed_posterior(self) -> PlacedPosterior:
        if self.mean is not None:
            raise MissingCapability("A mean function that varies with the inputs is no part of a triple.")
        return super().placed_posterior()

    def step(self, j: int, delta: float) -> tuple[np.ndarray, np.ndarray]:
        by_mean, by_var = super().step(j, delta)
        return by_mean + (0.0 if self.mean is None else self.mean.step(j, delta)[0]), by_var

    def section(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        return super().section(j, base, offset) + (0.0 if self.mean is None else self.mean.section(j, base, offset))
