"""Prior densities of hyperparameters: of the parameters themselves, unless a prior says otherwise."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np


class Prior(ABC):
    """A density of a positive quantity.

    Attributes
    ----------
    power : float
        The density is that of the quantity to this power, 0 standing for its logarithm. The distribution is the same
        whatever the power, and so are draws from a posterior; where a density is largest, which `MAP` asks, is not.
    """

    power: ClassVar[float] = 1.0

    @abstractmethod
    def log_density(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log p of each value, or of all of them together, and the derivative with respect to log(value)."""


class PositiveParameters(Prior):
    """A prior whose own parameters are positive."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"`{name}` of {type(self).__name__} must be positive, got {value}.")


@dataclass(frozen=True)
class HalfT(PositiveParameters):
    """Student's t distribution folded at zero.

    Parameters
    ----------
    df : float
        Degrees of freedom; small values allow large outliers.
    scale : float
    """

    df: float = 4.0
    scale: float = 1.0

    def log_density(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ratio = (value / self.scale) ** 2 / self.df
        log_constant = (
            math.log(2.0)
            + math.lgamma((self.df + 1.0) / 2.0)
            - math.lgamma(self.df / 2.0)
            - 0.5 * math.log(self.df * math.pi)
            - math.log(self.scale)
        )
        return log_constant - 0.5 * (self.df + 1.0) * np.log1p(ratio), -(self.df + 1.0) * ratio / (1.0 + ratio)


@dataclass(frozen=True)
class InverseGamma(PositiveParameters):
    """Inverse gamma distribution: a sharp left tail, a long right one. Its mode is scale / (shape + 1).

    Parameters
    ----------
    shape, scale : float
    """

    shape: float
    scale: float

    def log_density(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        log_constant = self.shape * math.log(self.scale) - math.lgamma(self.shape)
        log_density = log_constant - (self.shape + 1.0) * np.log(value) - self.scale / value
        return log_density, self.scale / value - (self.shape + 1.0)


@dataclass(frozen=True)
class GammaPrior(PositiveParameters):
    """Gamma distribution with mean shape / rate.

    Parameters
    ----------
    shape, rate : float
    """

    shape: float
    rate: float

    def log_density(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        log_constant = self.shape * math.log(self.rate) - math.lgamma(self.shape)
        log_density = log_constant + (self.shape - 1.0) * np.log(value) - self.rate * value
        return log_density, self.shape - 1.0 - self.rate * value


@dataclass(frozen=True)
class OnLogScale(Prior):
    """A distribution by the density of the logarithm.

    The mode of a density depends on the scale that it is a density on. That of log(value), v p(v), has a right tail
    longer by one power: with many features, each of which may go far away, this is what `MAP` wants.

    Parameters
    ----------
    prior : Prior
        The distribution, such as InverseGamma(1, 10).
    """

    prior: Prior

    power: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.prior, Prior):
            raise TypeError(f"OnLogScale takes a prior such as InverseGamma(1, 10), got {self.prior!r}.")

    def log_density(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        log_density, slope = self.prior.log_density(value)
        power = self.prior.power
        log_jacobian = power * np.log(value)
        # One number where the prior is of all values together.
        shift = log_jacobian if np.ndim(log_density) else log_jacobian.sum()
        return log_density + shift, slope + power


# The integrand is left out where it is this many nats below its maximum.
DEPTH = 36.0
# Nodes of each look at where the integrand is, and of the quadrature: more where the step would exceed the largest one,
# at which the rule is right to 1e-12 for a single secant.
LOOKING_NODES = 65
LOOKS = 2
NODES = 129
LARGEST_STEP = 0.35


@dataclass(frozen=True)
class SAAS(PositiveParameters):
    """Half-Cauchy priors of the inverse squared length-scales, whose common scale has a half-Cauchy prior itself.

    A prior of all length-scales together: the common scale holds most features near zero effect, and the heavy tails
    let a few go. The common scale is integrated out. It is a density of the logarithms.

    Parameters
    ----------
    scale : float
        Of the prior of the common scale, in inverse squared standard deviations of the inputs. The authors use 0.1 for
        inputs between 0 and 1; a uniform input has a standard deviation of 0.29, so that this is 0.1 / 12 here.

    References
    ----------
    Eriksson and Jankowiak (2021), UAI, section 4.
    """

    scale: float = 0.1

    power: ClassVar[float] = 0.0

    def log_density(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        log_rho = -2.0 * np.log(value)
        log_integral, mean_tanh = _integral_of_secants(np.array([math.log(self.scale), *log_rho]))
        log_density = math.log(2.0 / math.pi) + log_rho.size * math.log(4.0 / math.pi) + log_integral
        return np.asarray(log_density), -2.0 * mean_tanh[1:]


def _integral_of_secants(centres: np.ndarray) -> tuple[float, np.ndarray]:
    """log of the integral of prod_i 1 / (2 cosh(t - c_i)), and the mean of tanh(t - c_i) under the integrand."""
    low, high = _where_it_matters(centres)
    nodes = np.linspace(low, high, max(NODES, 1 + math.ceil((high - low) / LARGEST_STEP)))
    log_integrand = _log_secants(nodes, centres)
    top = log_integrand.max()
    weights = np.exp(log_integrand - top)
    total = weights.sum()
    mean_tanh = weights @ np.tanh(nodes[:, None] - centres) / total
    return float(top + np.log(total * (nodes[1] - nodes[0]))), mean_tanh


def _where_it_matters(centres: np.ndarray) -> tuple[float, float]:
    """An interval outside which the integrand is negligible.

    The maximum lies between the centres, and x beyond the last of m the integrand has fallen by m log cosh(x) nats at
    least. By concavity it is above a height between the nodes next to those that are above it.
    """
    margin = DEPTH / centres.size + math.log(2.0)
    low, high = centres.min() - margin, centres.max() + margin
    for _ in range(LOOKS):
        nodes = np.linspace(low, high, LOOKING_NODES)
        log_integrand = _log_secants(nodes, centres)
        above = np.flatnonzero(log_integrand > log_integrand.max() - DEPTH)
        low, high = nodes[max(above[0] - 1, 0)], nodes[min(above[-1] + 1, LOOKING_NODES - 1)]
    return float(low), float(high)


def _log_secants(nodes: np.ndarray, centres: np.ndarray) -> np.ndarray:
    distance = np.abs(nodes[:, None] - centres)
    return -(distance + np.log1p(np.exp(-2.0 * distance))).sum(axis=1)
