"""Positive observations with a log link (gamma), and heavy-tailed ones (Student-t)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import digamma, gammainc, gammainccinv, gammaincinv, gammaln, stdtr, stdtrit

from gpsift._utils.parameter import Parameter
from gpsift._utils.priors import GammaPrior, HalfT, InverseGamma, OnLogScale
from gpsift.likelihoods.base import Derivatives, Likelihood, ParamDerivatives, gauss_legendre
from gpsift.likelihoods.expectations import Expected
from gpsift.likelihoods.scalemixture import StudentTMixture

# Nodes of a Gauss-Legendre rule for gamma observations, and the latent standard deviations that it covers.
PANEL = 256
TAIL = 7.0
# Nodes of y for Student-t noise. Against nodes four times as dense, the information is right to 3e-9 for df from 0.5 to
# 1e3 and latent standard deviations from 1e-3 to 1e3 of the noise scale.
BEND = 3.0
SPACING = 0.1
# Degrees of freedom from which on a limit stands in for differences of large logarithms.
NEARLY_NORMAL = 1e7


# Weak priors, away from the limits where the likelihood says nothing.
GAMMA_SHAPE = Parameter("gamma_shape", limits=(1e-4, 1e6), prior=InverseGamma(0.4, 0.3), prior_argument="gamma_shape")
DF = Parameter("df", limits=(0.5, 1e30), prior=GammaPrior(2.0, 0.1), prior_argument="df", absent=math.inf)
NOISE_SCALE = Parameter(
    "noise_scale",
    unit="target",
    limits=(1e-4, 1e2),
    prior=OnLogScale(HalfT(4.0, 1.0)),
    prior_argument="noise",
    short_start=0.3,
)


@dataclass(frozen=True)
class Gamma(Likelihood):
    """Positive observations with mean exp(f) and variance mean^2 / gamma_shape.

    Parameters
    ----------
    gamma_shape : float
        1 is the exponential distribution; large values are nearly normal.
    """

    gamma_shape: float = 1.0

    PARAMS: ClassVar[tuple[Parameter, ...]] = (GAMMA_SHAPE,)
    kind: ClassVar[str] = "gamma"
    target_rule: ClassVar[str] = "positive observations"
    takes_negative: ClassVar[bool] = False

    def wrong_targets(self, y: np.ndarray, size: np.ndarray) -> np.ndarray:
        return y <= 0

    def level_start(self, y: np.ndarray, size: np.ndarray) -> float:
        return float(np.log(y.mean()))

    def log_density(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        k = self.gamma_shape
        return k * np.log(k) - gammaln(k) + (k - 1.0) * np.log(y) - k * f - k * y * np.exp(-f)

    def derivatives(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> Derivatives:
        pull = self.gamma_shape * y * np.exp(-f)
        return Derivatives(pull - self.gamma_shape, -pull, pull)

    def log_param_derivatives(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> list[ParamDerivatives]:
        k = self.gamma_shape
        first, second, _ = self.derivatives(y, f, size)
        log_density = k * (np.log(k) + 1.0 - digamma(k) + np.log(y) - f - y * np.exp(-f))
        return [ParamDerivatives(log_density, first, second)]

    def expected(self, y: np.ndarray, mean: np.ndarray, var: np.ndarray, size: np.ndarray) -> Expected:
        k, ratio = self.gamma_shape, self._expected_ratio(y, mean, var)
        log_density = k * np.log(k) - gammaln(k) + (k - 1.0) * np.log(y) - k * (mean + ratio)
        return Expected(log_density, k * (ratio - 1.0), k * ratio)

    def expected_param_slopes(
        self, y: np.ndarray, mean: np.ndarray, var: np.ndarray, size: np.ndarray
    ) -> list[np.ndarray]:
        k, ratio = self.gamma_shape, self._expected_ratio(y, mean, var)
        return [k * (np.log(k) + 1.0 - digamma(k) + np.log(y) - mean - ratio)]

    @staticmethod
    def _expected_ratio(y: np.ndarray, mean: np.ndarray, var: np.ndarray) -> np.ndarray:
        """E[y exp(-f)]."""
        with np.errstate(over="ignore"):
            return y * np.exp(0.5 * var - mean)

    def conditional_moments(self, f: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean = np.exp(f)
        return mean, mean**2 / self.gamma_shape

    def conditional_sample(self, f: np.ndarray, size: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.gamma(self.gamma_shape, np.exp(f) / self.gamma_shape)

    def conditional_cdf(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        return gammainc(self.gamma_shape, self.gamma_shape * np.maximum(y, 0.0) * np.exp(-f))

    def latent_step(self, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        return np.full_like(f, 0.5 / np.sqrt(1.0 + self.gamma_shape))

    def nodes(self, mean: np.ndarray, sd: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        k = self.gamma_shape
        start = mean - TAIL * sd + np.log(gammaincinv(k, 1e-15) / k)
        stop = mean + TAIL * sd + np.log(gammainccinv(k, 1e-15) / k)
        t, w = gauss_legendre(PANEL)
        half = 0.5 * (stop - start)[:, None]
        y = np.exp(start[:, None] + half * (t + 1.0))
        return y, half * w * y


def log_gamma_step(df: float) -> float:
    """log Gamma((df + 1) / 2) - log Gamma(df / 2) - log(df / 2) / 2, which goes to 0 as df grows."""
    if df > NEARLY_NORMAL:  # the difference of two huge logarithms has no digits left
        return -0.25 / df
    return float(gammaln((df + 1.0) / 2.0) - gammaln(df / 2.0) - 0.5 * np.log(df / 2.0))


def digamma_step(df: float) -> float:
    """digamma((df + 1) / 2) - digamma(df / 2), 1 / df for large df."""
    return 1.0 / df if df > NEARLY_NORMAL else float(digamma((df + 1.0) / 2.0) - digamma(df / 2.0))


@dataclass(frozen=True)
class StudentT(Likelihood):
    """y = f + noise_scale times a Student-t variable: regression that outliers cannot pull far.

    Parameters
    ----------
    df : float
        Degrees of freedom; small values have heavier tails.
    noise_scale : float
        In standard deviations of the target.
    """

    df: float = 4.0
    noise_scale: float = 0.3

    PARAMS: ClassVar[tuple[Parameter, ...]] = (DF, NOISE_SCALE)
    standardises_target: ClassVar[bool] = True
    is_log_concave: ClassVar[bool] = False

    def level_start(self, y: np.ndarray, size: np.ndarray) -> float:
        return float(np.median(y))

    def in_units(self, y_scale: float) -> StudentT:
        return StudentT(self.df, self.noise_scale * y_scale)

    @property
    def _squared_width(self) -> float:
        return self.df * self.noise_scale**2

    def log_density(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        constant = log_gamma_step(self.df) - 0.5 * np.log(2.0 * np.pi) - np.log(self.noise_scale)
        return constant - 0.5 * (self.df + 1.0) * np.log1p((y - f) ** 2 / self._squared_width)

    def derivatives(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> Derivatives:
        r, a = y - f, self._squared_width
        total = a + r**2
        power = self.df + 1.0
        return Derivatives(
            power * r / total, power * (r**2 - a) / total**2, -2.0 * power * r * (3.0 * a - r**2) / total**3
        )

    def safe_weights(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        # Those of the EM algorithm, which treats the noise as a scale mixture of normals and always climbs.
        return (self.df + 1.0) / (self._squared_width + (y - f) ** 2)

    def log_param_derivatives(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> list[ParamDerivatives]:
        r, a, df = y - f, self._squared_width, self.df
        total, power = a + r**2, df + 1.0
        # Derivatives with respect to a; a = df noise_scale^2 depends on both parameters.
        by_a = ParamDerivatives(
            0.5 * power * r**2 / (a * total), -power * r / total**2, power * (a - 3.0 * r**2) / total**3
        )
        by_df = ParamDerivatives(
            0.5 * (digamma_step(df) - 1.0 / df - np.log1p(r**2 / a)), r / total, (r**2 - a) / total**2
        )
        df_part = ParamDerivatives(*(df * own + a * through for own, through in zip(by_df, by_a, strict=True)))
        scale_part = ParamDerivatives(2.0 * a * by_a.log_density - 1.0, 2.0 * a * by_a.first, 2.0 * a * by_a.second)
        return [df_part, scale_part]

    def conditional_moments(self, f: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        factor = self.df / (self.df - 2.0) if self.df > 2.0 else np.inf
        return f, np.full_like(f, factor * self.noise_scale**2)

    def conditional_sample(self, f: np.ndarray, size: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return f + self.noise_scale * rng.standard_t(self.df, size=f.shape)

    def conditional_cdf(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        return stdtr(self.df, (y - f) / self.noise_scale)

    def latent_step(self, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        # The density has poles at a distance of sqrt(df) noise_scale from the real axis.
        return np.full_like(f, min(0.17 * np.sqrt(self._squared_width), 0.8 * self.noise_scale))

    def nodes(self, mean: np.ndarray, sd: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # y = mean + width BEND sinh(sinh(u / BEND)): even near the middle, doubly exponential in the tails, up to where
        # mass over squared distance, which is what scores weigh a tail by, is 1e-14.
        width = np.sqrt(sd**2 + self.noise_scale**2)[:, None]
        tail = max(9.0, -stdtrit(self.df, 1e-14 ** (self.df / (self.df + 2.0))))
        reach = BEND * np.arcsinh(np.arcsinh(tail / BEND))
        u, spacing = np.linspace(-reach, reach, 2 * int(np.ceil(reach / SPACING)) + 1, retstep=True)
        inner = np.sinh(u / BEND)
        return mean[:, None] + width * BEND * np.sinh(inner), width * np.cosh(inner) * np.cosh(u / BEND) * spacing

    def predictive(self, mean: np.ndarray, var: np.ndarray, size: np.ndarray) -> StudentTMixture:
        return StudentTMixture(self, mean, var, size)
