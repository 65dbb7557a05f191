r"""Priors of hyperparameters, and the sparse axis-aligned subspace prior (SAAS) of all length-scales together.

The SAAS prior has few inverse squared length-scales away from zero (Eriksson and Jankowiak 2021),

.. math:: \rho_j = 1 / l_j^2 \sim \mathrm{HalfCauchy}(\tau), \qquad \tau \sim \mathrm{HalfCauchy}(s)

With :math:`t = \log \tau` and :math:`c = (\log s, \log \rho_1, \ldots, \log \rho_p)` every factor is a hyperbolic
secant in the logarithms, and the global scale is integrated out by a one-dimensional quadrature,

.. math:: p(\log \rho) = (2 / \pi)^{p + 1} \int \prod_{i = 0}^p \frac{dt}{2 \cosh(t - c_i)} .

The density of rho itself has a pole at zero, where all features vanish together, and no mode; that of log rho has one.
The logarithm of the integrand is concave, and the trapezoidal rule converges exponentially: the nearest pole of the
secant is pi / 2 away from the real line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from gpsift._utils.priors import GammaPrior, HalfT, InverseGamma, OnLogScale, PositiveParameters, Prior
from gpsift._utils.quadrature import log_concave_interval

__all__ = ["SAAS", "GammaPrior", "HalfT", "InverseGamma", "OnLogScale", "Prior"]

Density = Callable[[np.ndarray], tuple[float, np.ndarray]]  # a point -> log density and its gradient
# Declarations of parameters -> their log prior density as a function of their logarithms.
LogPrior = Callable[[np.ndarray], Density]

# The integral is truncated where the integrand is this many nats below its maximum.
DEPTH = 36.0
# Nodes of the quadrature, or more if its step would exceed the largest one, with which the integral of a single secant
# has an error of 1e-12.
NODES = 129
LARGEST_STEP = 0.35


class PriorTerm(NamedTuple):
    """A prior of some parameters to a power, and the slope of its log Jacobian by each logarithm."""

    positions: np.ndarray
    prior: Prior
    power: float
    jacobian: float = 0.0


def sum_of_log_priors(terms: Sequence[PriorTerm]) -> Density:
    """Return the log density of independent priors as a function of all log parameters."""

    def log_prior(log_params: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = 0.0, np.empty_like(log_params)
        for where, prior, power, jacobian in terms:
            logs = log_params[where]
            density, slope = prior.log_density(np.exp(power * logs))
            value += float(np.sum(density)) + jacobian * float(logs.sum())
            gradient[where] = power * slope + jacobian
        return value, gradient

    return log_prior


@dataclass(frozen=True)
class SAAS(PositiveParameters):
    """Half-Cauchy priors of the inverse squared length-scales, whose common scale has a half-Cauchy prior itself.

    A prior of all length-scales together: the common scale keeps the effects of most features near zero, and the heavy
    tails allow a few large ones. The common scale is integrated out. It is a density of the logarithms.

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
    """Return the log integral of prod_i 1 / (2 cosh(t - c_i)), and the mean of tanh(t - c_i) under the integrand."""
    low, high = _integration_interval(centres)
    nodes = np.linspace(low, high, max(NODES, 1 + math.ceil((high - low) / LARGEST_STEP)))
    log_integrand = _log_secants(nodes, centres)
    top = log_integrand.max()
    weights = np.exp(log_integrand - top)
    total = weights.sum()
    mean_tanh = weights @ np.tanh(nodes[:, None] - centres) / total
    return float(top + np.log(total * (nodes[1] - nodes[0]))), mean_tanh


def _integration_interval(centres: np.ndarray) -> tuple[float, float]:
    """Return an interval outside which the integrand is negligible.

    The maximum lies between the centres, and x beyond the last of m the integrand has fallen by m log cosh(x) nats at
    least.
    """
    margin = DEPTH / centres.size + math.log(2.0)
    low, high = centres.min() - margin, centres.max() + margin
    return log_concave_interval(lambda nodes: _log_secants(nodes, centres), low, high, DEPTH)


def _log_secants(nodes: np.ndarray, centres: np.ndarray) -> np.ndarray:
    distance = np.abs(nodes[:, None] - centres)
    return -(distance + np.log1p(np.exp(-2.0 * distance))).sum(axis=1)
