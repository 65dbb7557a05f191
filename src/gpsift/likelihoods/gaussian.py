"""Normal noise, of one variance or of a known variance for each row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from gpsift._utils.parameter import Parameter
from gpsift._utils.priors import HalfT, OnLogScale
from gpsift.likelihoods import distributions
from gpsift.likelihoods.base import Derivatives, Expected, Likelihood, Moments, ParamDerivatives

# The prior is a density of the logarithm, which goes to 0 with the noise: no noise needs strong evidence.
NOISE_VAR = Parameter(
    "noise_var",
    unit="target**2",
    limits=(1e-8, 1e4),
    prior=OnLogScale(HalfT(4.0, 1.0)),
    prior_argument="noise",
    short_start=0.1,
    posterior_sd=0.15,
    projection_step=0.25,
)


@dataclass(frozen=True, eq=False)
class Gaussian(Likelihood):
    """y = f + normal noise.

    Parameters
    ----------
    noise_var : float or array (n,)
        Variance of the noise: one for all observations, or a known variance for each training row. New observations
        then have the mean variance.
    """

    noise_var: float | np.ndarray = 0.1

    PARAMS: ClassVar[tuple[Parameter, ...]] = (NOISE_VAR,)
    standardises_target: ClassVar[bool] = True
    has_closed_form: ClassVar[bool] = True
    default_inference: ClassVar[Literal["exact", "ep", "laplace"]] = "exact"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and np.array_equal(self.noise_var, other.noise_var)

    def __hash__(self) -> int:
        return hash(np.asarray(self.noise_var).tobytes())

    @property
    def knows_noise(self) -> bool:
        return np.ndim(self.noise_var) > 0

    @property
    def values(self) -> dict[str, Any]:
        return {} if self.knows_noise else super().values

    def with_noise_var(self, noise_var: float | np.ndarray) -> Gaussian:
        return Gaussian(noise_var)

    @property
    def _mean_noise_var(self) -> float:
        """The variance that new observations have."""
        return float(np.mean(self.noise_var)) if self.knows_noise else self.noise_var  # type: ignore[return-value]

    @property
    def for_new_rows(self) -> Gaussian:
        return Gaussian(self._mean_noise_var)

    def log_density(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        return -0.5 * ((y - f) ** 2 / self._mean_noise_var + math.log(2.0 * math.pi * self._mean_noise_var))

    def derivatives(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> Derivatives:
        first = (y - f) / self._mean_noise_var
        return Derivatives(first, np.full_like(first, -1.0 / self._mean_noise_var), np.zeros_like(first))

    def log_param_derivatives(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> list[ParamDerivatives]:
        if self.knows_noise:
            return []
        first, second, _ = self.derivatives(y, f, size)
        return [ParamDerivatives(0.5 * (first * (y - f) - 1.0), -first, -second)]

    def expected(self, y: np.ndarray, mean: np.ndarray, var: np.ndarray, size: np.ndarray) -> Expected:
        first, second, _ = self.derivatives(y, mean, size)
        return Expected(self.log_density(y, mean, size) - 0.5 * var / self._mean_noise_var, first, -second)

    def expected_param_slopes(
        self, y: np.ndarray, mean: np.ndarray, var: np.ndarray, size: np.ndarray
    ) -> list[np.ndarray]:
        return [] if self.knows_noise else [0.5 * (((y - mean) ** 2 + var) / self._mean_noise_var - 1.0)]

    def conditional(self, f: np.ndarray, size: np.ndarray) -> distributions.Gaussian:
        return distributions.Gaussian(f, np.full_like(f, self._mean_noise_var))

    def predictive(self, mean: np.ndarray, var: np.ndarray, size: np.ndarray) -> distributions.Gaussian:
        return distributions.Gaussian(mean, var + self._mean_noise_var)

    def training_predictive(self, mean: np.ndarray, var: np.ndarray, size: np.ndarray) -> distributions.Gaussian:
        return distributions.Gaussian(mean, var + self.noise_var)

    def fit_without_inputs(self, y: np.ndarray, size: np.ndarray) -> tuple[Likelihood, float]:
        return Gaussian(float(y.var())), float(y.mean())

    def in_units(self, y_scale: float) -> Gaussian:
        return Gaussian(self.noise_var * y_scale**2)

    def latent_step(self, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        return np.full_like(f, 0.8 * math.sqrt(self._mean_noise_var))

    def nodes(self, mean: np.ndarray, sd: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        spread = np.sqrt(sd**2 + self._mean_noise_var)[:, None]
        t = np.linspace(-9.0, 9.0, 73)
        return mean[:, None] + spread * t, np.broadcast_to(spread * (t[1] - t[0]), (mean.size, t.size))

    def tilted_moments(self, y: np.ndarray, mean: np.ndarray, var: np.ndarray, size: np.ndarray) -> Moments:
        total = var + self._mean_noise_var
        log_normaliser = -0.5 * ((y - mean) ** 2 / total + np.log(2.0 * math.pi * total))
        return Moments(log_normaliser, mean + var / total * (y - mean), var * self._mean_noise_var / total)
