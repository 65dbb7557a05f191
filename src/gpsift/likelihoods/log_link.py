"""Likelihoods with a log link: of counts (Poisson and negative binomial) and of positive numbers (gamma)."""

from __future__ import annotations

import math
from abc import ABC
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import digamma, expit, gammainccinv, gammaincinv, gammaln

from gpsift._utils.parameter import Parameter
from gpsift._utils.priors import InverseGamma
from gpsift._utils.quadrature import gauss_legendre_log
from gpsift.likelihoods import distributions
from gpsift.likelihoods.base import Derivatives, Expected, Likelihood, ParamDerivatives
from gpsift.likelihoods.distributions.counts import is_count

# Counts below this one are summed one by one, larger ones by a Gauss-Legendre rule with this many nodes.
SINGLE = 256
PANEL = 160
# Latent values this many standard deviations away and more are left out of sums over counts.
TAIL = 7.0
# A concentration from which on a limit replaces differences of large logarithms.
NEARLY_POISSON = 1e7
# Nodes of a Gauss-Legendre rule for gamma observations.
GAMMA_PANEL = 256


def log_rising(y: np.ndarray, r: float) -> np.ndarray:
    """Return log of r (r + 1) ... (r + y - 1) / r^y, which goes to 0 as r grows."""
    if r > NEARLY_POISSON:  # the difference of two huge logarithms has no digits left
        return y * (y - 1.0) / (2.0 * r)
    return gammaln(y + r) - gammaln(r) - y * np.log(r)


def count_nodes(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return counts and weights (n, k) for sums from about low to about high.

    Counts below `SINGLE` are nodes themselves. From there on a distribution of counts is smooth, and an integral over
    log y, from half a count below to half a count above, replaces the sum.
    """
    n = low.size
    single = np.broadcast_to(np.arange(float(SINGLE)), (n, SINGLE))
    start = np.log(np.maximum(np.floor(low), SINGLE) - 0.5)
    stop = np.log(np.maximum(np.ceil(high), SINGLE) + 0.5)
    y, weights = gauss_legendre_log(PANEL, start, stop)
    beyond = np.where(high[:, None] >= SINGLE, weights, 0.0)
    return np.concatenate([single, y], axis=1), np.concatenate([np.ones((n, SINGLE)), beyond], axis=1)


class Counts(Likelihood, ABC):
    """Counts with mean `exposure` times exp(f)."""

    target_rule: ClassVar[str] = "whole counts of at least 0"
    size_name: ClassVar[str | None] = "exposure"
    takes_negative: ClassVar[bool] = False
    is_discrete: ClassVar[bool] = True

    def wrong_targets(self, y: np.ndarray, size: np.ndarray) -> np.ndarray:
        return ~is_count(y)

    def wrong_sizes(self, size: np.ndarray) -> np.ndarray:
        return size <= 0

    def first_latent_value(self, y: np.ndarray, size: np.ndarray) -> float:
        # Half a count is added, because all counts may be zero.
        return float(np.log((y.sum() + 0.5) / size.sum()))


@dataclass(frozen=True)
class Poisson(Counts):
    """Counts with mean `exposure` times exp(f)."""

    kind: ClassVar[str] = "Poisson"

    def log_density(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        return y * (f + np.log(size)) - size * np.exp(f) - gammaln(y + 1.0)

    def derivatives(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> Derivatives:
        mean = size * np.exp(f)
        return Derivatives(y - mean, -mean, -mean)

    def expected(self, y: np.ndarray, mean: np.ndarray, var: np.ndarray, size: np.ndarray) -> Expected:
        with np.errstate(over="ignore"):  # the average rate overflows where the latent value is very uncertain
            rate = size * np.exp(mean + 0.5 * var)  # the mean of a lognormal variable
        return Expected(y * (mean + np.log(size)) - rate - gammaln(y + 1.0), y - rate, rate)

    def conditional(self, f: np.ndarray, size: np.ndarray) -> distributions.Poisson:
        return distributions.Poisson(size * np.exp(f))

    def latent_step(self, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        return 0.8 / np.sqrt(1.0 + size * np.exp(f))

    def nodes(self, mean: np.ndarray, sd: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low, high = size * np.exp(mean - TAIL * sd), size * np.exp(mean + TAIL * sd)
        return count_nodes(low - 9.0 * np.sqrt(low), high + 9.0 * np.sqrt(high) + 30.0)


# The priors are weak. They keep the values away from the limits, where the likelihood is flat.
CONCENTRATION = Parameter(
    "concentration",
    limits=(1e-4, 1e30),
    prior=InverseGamma(0.4, 0.3),
    prior_argument="concentration",
    absent=math.inf,
)
GAMMA_SHAPE = Parameter("gamma_shape", limits=(1e-4, 1e6), prior=InverseGamma(0.4, 0.3), prior_argument="gamma_shape")


@dataclass(frozen=True)
class NegativeBinomial(Counts):
    """Counts with mean m = `exposure` times exp(f) and variance m + m^2 / concentration.

    Parameters
    ----------
    concentration : float
        The smaller, the larger the variance. The limit of large values is the Poisson distribution.
    """

    concentration: float = 1.0

    PARAMS: ClassVar[tuple[Parameter, ...]] = (CONCENTRATION,)
    kind: ClassVar[str] = "negative binomial"

    def log_density(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        r, log_mean = self.concentration, f + np.log(size)
        log_ratio = np.logaddexp(0.0, log_mean - np.log(r))  # log(1 + mean / r)
        return log_rising(y, r) - gammaln(y + 1.0) + y * log_mean - (y + r) * log_ratio

    def derivatives(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> Derivatives:
        r = self.concentration
        share, rest = self._shares(f, size)
        curvature = (y + r) * share * rest
        return Derivatives(y - (y + r) * share, -curvature, -curvature * (rest - share))

    def log_param_derivatives(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> list[ParamDerivatives]:
        r = self.concentration
        share, rest = self._shares(f, size)
        log_rest = -np.logaddexp(0.0, f + np.log(size) - np.log(r))
        log_density = r * (digamma(y + r) - digamma(r) + log_rest + 1.0) - (y + r) * rest
        first = share * (y * rest - r * share)
        second = -share * rest * (r + (y + r) * (share - rest))
        return [ParamDerivatives(log_density, first, second)]

    def _shares(self, f: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean / (r + mean) and r / (r + mean), without overflow at any latent value."""
        log_ratio = f + np.log(size) - np.log(self.concentration)
        return expit(log_ratio), expit(-log_ratio)

    def conditional(self, f: np.ndarray, size: np.ndarray) -> distributions.NegativeBinomial:
        return distributions.NegativeBinomial(size * np.exp(f), np.asarray(self.concentration))

    def conditional_sample(self, f: np.ndarray, size: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        mean = size * np.exp(f)
        return rng.negative_binomial(self.concentration, self.concentration / (self.concentration + mean)).astype(float)

    def latent_step(self, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        mean = size * np.exp(f)
        return np.minimum(0.5, 0.8 / np.sqrt(1.0 + mean * self.concentration / (mean + self.concentration)))

    def nodes(self, mean: np.ndarray, sd: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # The count is Poisson with a gamma rate, so quantiles of the gamma distribution widen the range of the rate.
        r = self.concentration
        low = size * np.exp(mean - TAIL * sd) * gammaincinv(r, 1e-14) / r
        high = size * np.exp(mean + TAIL * sd) * gammainccinv(r, 1e-14) / r
        return count_nodes(low - 9.0 * np.sqrt(low), high + 9.0 * np.sqrt(high) + 30.0)


@dataclass(frozen=True)
class Gamma(Likelihood):
    """Positive observations with mean exp(f) and variance mean^2 / gamma_shape.

    Parameters
    ----------
    gamma_shape : float
        1 gives the exponential distribution, a large value a nearly normal one.
    """

    gamma_shape: float = 1.0

    PARAMS: ClassVar[tuple[Parameter, ...]] = (GAMMA_SHAPE,)
    kind: ClassVar[str] = "gamma"
    target_rule: ClassVar[str] = "positive observations"
    takes_negative: ClassVar[bool] = False

    def wrong_targets(self, y: np.ndarray, size: np.ndarray) -> np.ndarray:
        return y <= 0

    def first_latent_value(self, y: np.ndarray, size: np.ndarray) -> float:
        return float(np.log(y.mean()))

    def log_density(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        k = self.gamma_shape
        return k * np.log(k) - gammaln(k) + (k - 1.0) * np.log(y) - k * f - k * y * np.exp(-f)

    def derivatives(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> Derivatives:
        curvature = self.gamma_shape * y * np.exp(-f)
        return Derivatives(curvature - self.gamma_shape, -curvature, curvature)

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
        """Return E[y exp(-f)]."""
        with np.errstate(over="ignore"):
            return y * np.exp(0.5 * var - mean)

    def conditional(self, f: np.ndarray, size: np.ndarray) -> distributions.Gamma:
        return distributions.Gamma(np.exp(f), np.asarray(self.gamma_shape))

    def latent_step(self, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        return np.full_like(f, 0.5 / np.sqrt(1.0 + self.gamma_shape))

    def nodes(self, mean: np.ndarray, sd: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        k = self.gamma_shape
        start = mean - TAIL * sd + np.log(gammaincinv(k, 1e-15) / k)
        stop = mean + TAIL * sd + np.log(gammainccinv(k, 1e-15) / k)
        return gauss_legendre_log(GAMMA_PANEL, start, stop)
