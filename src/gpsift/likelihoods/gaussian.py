"""Normal noise, here as one likelihood among others; `inference.exact` treats it in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from gpsift import families
from gpsift.likelihoods.base import Derivatives, Likelihood, Moments, ParamDerivatives
from gpsift.likelihoods.expectations import Expected


@dataclass(frozen=True)
class Gaussian(Likelihood):
    """y = f + normal noise.

    Parameters
    ----------
    noise_var : float
        Variance of the noise.
    """

    noise_var: float = 0.1

    PARAMS: ClassVar[tuple[str, ...]] = ("noise_var",)
    standardises_target: ClassVar[bool] = True

    def log_density(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        return -0.5 * ((y - f) ** 2 / self.noise_var + math.log(2.0 * math.pi * self.noise_var))

    def derivatives(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> Derivatives:
        first = (y - f) / self.noise_var
        return Derivatives(first, np.full_like(first, -1.0 / self.noise_var), np.zeros_like(first))

    def log_param_derivatives(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> list[ParamDerivatives]:
        first, second, _ = self.derivatives(y, f, size)
        return [ParamDerivatives(0.5 * (first * (y - f) - 1.0), -first, -second)]

    def expected(self, y: np.ndarray, mean: np.ndarray, var: np.ndarray, size: np.ndarray) -> Expected:
        first, second, _ = self.derivatives(y, mean, size)
        return Expected(self.log_density(y, mean, size) - 0.5 * var / self.noise_var, first, -second)

    def expected_param_slopes(
        self, y: np.ndarray, mean: np.ndarray, var: np.ndarray, size: np.ndarray
    ) -> list[np.ndarray]:
        return [0.5 * (((y - mean) ** 2 + var) / self.noise_var - 1.0)]

    def conditional_moments(self, f: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return f, np.full_like(f, self.noise_var)

    def conditional_sample(self, f: np.ndarray, size: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return f + math.sqrt(self.noise_var) * rng.standard_normal(f.shape)

    def predictive(self, mean: np.ndarray, var: np.ndarray, size: np.ndarray) -> families.Gaussian:
        return families.Gaussian(mean, var + self.noise_var)

    def empty_fit(self, y: np.ndarray, size: np.ndarray) -> tuple[Likelihood, float]:
        return Gaussian(float(y.var())), float(y.mean())

    def in_units(self, y_scale: float) -> Gaussian:
        return Gaussian(self.noise_var * y_scale**2)

    def conditional_cdf(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        return ndtr((y - f) / math.sqrt(self.noise_var))

    def latent_step(self, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        return np.full_like(f, 0.8 * math.sqrt(self.noise_var))

    def nodes(self, mean: np.ndarray, sd: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        spread = np.sqrt(sd**2 + self.noise_var)[:, None]
        t = np.linspace(-9.0, 9.0, 73)
        return mean[:, None] + spread * t, np.broadcast_to(spread * (t[1] - t[0]), (mean.size, t.size))

    def tilted_moments(self, y: np.ndarray, mean: np.ndarray, var: np.ndarray, size: np.ndarray) -> Moments:
        total = var + self.noise_var
        log_normaliser = -0.5 * ((y - mean) ** 2 / total + np.log(2.0 * math.pi * total))
        return Moments(log_normaliser, mean + var / total * (y - mean), var * self.noise_var / total)


@dataclass(frozen=True, eq=False)
class KnownNoise(Likelihood):
    """y = f + normal noise of a known variance for each observation. New observations have the mean variance.

    Parameters
    ----------
    variances : array (n,)
    """

    variances: np.ndarray

    standardises_target: ClassVar[bool] = True

    @property
    def noise_var(self) -> float:
        """The mean variance."""
        return float(self.variances.mean())

    @property
    def _average(self) -> Gaussian:
        return Gaussian(self.noise_var)

    def log_density(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        return self._average.log_density(y, f, size)

    def derivatives(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> Derivatives:
        return self._average.derivatives(y, f, size)

    def conditional_moments(self, f: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._average.conditional_moments(f, size)

    def conditional_sample(self, f: np.ndarray, size: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self._average.conditional_sample(f, size, rng)

    def predictive(self, mean: np.ndarray, var: np.ndarray, size: np.ndarray) -> families.Gaussian:
        return self._average.predictive(mean, var, size)

    def training_predictive(self, mean: np.ndarray, var: np.ndarray, size: np.ndarray) -> families.Gaussian:
        return families.Gaussian(mean, var + self.variances)

    def empty_fit(self, y: np.ndarray, size: np.ndarray) -> tuple[Likelihood, float]:
        return self._average.empty_fit(y, size)

    def in_units(self, y_scale: float) -> KnownNoise:
        return KnownNoise(self.variances * y_scale**2)

    def conditional_cdf(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        return self._average.conditional_cdf(y, f, size)

    def latent_step(self, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        return self._average.latent_step(f, size)

    def nodes(self, mean: np.ndarray, sd: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._average.nodes(mean, sd, size)
