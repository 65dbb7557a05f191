"""The closed-form response of a latent posterior, a `gpsift.reference.base.Response` in the user's units.

Our own fitted models and those of other libraries whose kernel we have answer with the same class. The posterior sees
x as (x - x_center) / x_scale, and the user sees its function f as y_center + y_scale f, in NumPy, wherever it lives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from gpsift._utils.arrays import Array, like, to_numpy
from gpsift.likelihoods.distributions import Bernoulli, Distribution, Gaussian
from gpsift.reference.base import PlacedPosterior, Response
from gpsift.reference.posterior import LatentAt, LatentAtSupport, Posterior

# From latent mean and variance, in the user's units, to the distribution of a new observation.
Predictive = Callable[[np.ndarray, np.ndarray], Distribution]


# Of the latent mean, in its standard deviations: the error of a slope goes with its square, rounding with its inverse.
MEAN_STEP = 1e-4


@dataclass(frozen=True, eq=False)
class GPResponse(Response):
    """Predictions of a latent posterior at n points and their derivatives.

    Parameters
    ----------
    latent : LatentAt
        The posterior at the points, in its own units.
    predictive : callable
        From latent mean and variance, in the user's units, to the distribution of a new observation.
    x_center, x_scale : arrays (p,)
    y_center, y_scale : float
    bring : callable
        From arrays of the posterior to those that are handed out: NumPy's by default.
    stays : bool
        Whether `predictive` computes where the posterior lives, as that of Gaussian noise does; others are NumPy's.
    """

    latent: LatentAt
    predictive: Predictive
    x_center: np.ndarray
    x_scale: np.ndarray
    y_center: float
    y_scale: float
    bring: Callable[[Array], Array] = field(default=to_numpy, kw_only=True)
    stays: bool = field(default=True, kw_only=True)

    @property
    def on_device(self) -> Self:
        return replace(self, bring=_as_it_is) if self.stays else self

    @property
    def latent_mean(self) -> np.ndarray:
        return self.y_center + self.y_scale * self.bring(self.latent.mean)

    @property
    def latent_var(self) -> np.ndarray:
        return self.y_scale**2 * self.bring(self.latent.var)

    @property
    def latent_cov(self) -> np.ndarray:
        """Between all points, (n, n)."""
        posterior = self.latent.posterior
        if not isinstance(self.latent, LatentAtSupport):
            return self.y_scale**2 * to_numpy(posterior.covariance(self.latent.X))
        # K - K M K = D - D M D, because M (K + D) = I; the right side does not subtract large numbers.
        D, M, rows = to_numpy(posterior.site_var), to_numpy(posterior.M), self.latent.rows
        covariance = np.diag(D) - D[:, None] * M * D
        return self.y_scale**2 * (covariance if rows is None else covariance[np.ix_(rows, rows)])

    def distribution(self, *, latent: bool) -> Distribution:
        mean, var = self.latent_mean, self.latent_var
        return Gaussian(mean, var) if latent else self.predictive(mean, var)

    def gradients(self) -> tuple[np.ndarray, np.ndarray]:
        mean_gradient, var_gradient = self.bring(self.latent.mean_gradient), self.bring(self.latent.var_gradient)
        unit = like(mean_gradient, self.y_scale / self.x_scale)
        return mean_gradient * unit, var_gradient * (self.y_scale * unit)

    def hessians(self) -> tuple[np.ndarray, np.ndarray]:
        """Second derivatives of mean and variance, (n, p, p) each."""
        x_scale = np.multiply.outer(self.x_scale, self.x_scale)
        return self.mean_hessian(), to_numpy(self.latent.var_hessian) * (self.y_scale**2 / x_scale)

    def mean_hessian(self) -> np.ndarray:
        x_scale = np.multiply.outer(self.x_scale, self.x_scale)
        return to_numpy(self.latent.mean_hessian) * (self.y_scale / x_scale)

    def mean_slope(self) -> np.ndarray:
        mean, var = self.latent_mean, self.latent_var
        step = MEAN_STEP * np.sqrt(self.y_scale**2 + var)
        up, down = (self.predictive(moved, var).mean for moved in (mean + step, mean - step))
        return (up - down) / (2.0 * step)

    def placed_posterior(self) -> PlacedPosterior:
        posterior = self.latent.posterior
        if not isinstance(posterior, Posterior):
            return super().placed_posterior()
        columns = np.arange(self.x_center.size)
        return PlacedPosterior(posterior, columns, self.x_center, self.x_scale, self.y_center, self.y_scale)

    def step(self, j: int, delta: float) -> tuple[np.ndarray, np.ndarray]:
        mean_change, var_change = self.latent.step(j, delta / self.x_scale[j])
        return self.y_scale * to_numpy(mean_change), self.y_scale**2 * to_numpy(var_change)

    def section(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        x_center, x_scale = self.x_center[j], self.x_scale[j]
        base, offset = (like(self.latent.X, values) for values in ((base - x_center) / x_scale, offset / x_scale))
        return self.y_scale * to_numpy(self.latent.section(j, base, offset))


class OneClassResponse(Response):
    """One of several classes: its own latent function, and its probability among all of them.

    Parameters
    ----------
    own : Response
        Of the latent function.
    whole : Response
        Of the model of all classes at the same points.
    number : int
        Of the class.
    """

    def __init__(self, own: Response, whole: Response, number: int):
        self._own, self._whole, self._number = own, whole, number

    def distribution(self, *, latent: bool) -> Distribution:
        if latent:
            return self._own.distribution(latent=True)
        return Bernoulli(self._whole.distribution(latent=False).mean[:, self._number])

    def gradients(self) -> tuple[np.ndarray, ...]:
        return self._own.gradients()

    def step(self, j: int, delta: float) -> tuple[np.ndarray, ...]:
        return self._own.step(j, delta)

    def section(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        return self._own.section(j, base, offset)

    @property
    def latent_mean(self) -> np.ndarray:
        return self._own.latent_mean

    def hessians(self) -> tuple[np.ndarray, ...]:
        return self._own.hessians()

    def mean_hessian(self) -> np.ndarray:
        return self._own.mean_hessian()

    def placed_posterior(self) -> PlacedPosterior:
        return self._own.placed_posterior()


def _as_it_is(array: Array) -> Array:
    return array
