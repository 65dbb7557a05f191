"""Likelihoods of two classes, coded 0 and 1, with a probit or logit link, and of the successes among some trials."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.special import expit, gammaln, log_ndtr, ndtr

from gpsift.likelihoods import distributions
from gpsift.likelihoods.base import Derivatives, Likelihood, Moments
from gpsift.likelihoods.distributions.counts import is_count

LOG_ROOT_2PI = 0.5 * np.log(2.0 * np.pi)
# The logistic function has poles at a distance of pi: the trapezoidal rule with this step errs by exp(-2 pi^2 / 0.5).
LOGIT_STEP = 0.5


def inverse_mills(z: np.ndarray) -> np.ndarray:
    """Return phi(z) / Phi(z), without overflow or 0 / 0 in the left tail."""
    return np.exp(-0.5 * z * z - LOG_ROOT_2PI - log_ndtr(z))


class TwoClasses(Likelihood, ABC):
    """P(y = 1) = link(f), with link(-f) = 1 - link(f)."""

    kind: ClassVar[str] = "Bernoulli"
    target_rule: ClassVar[str] = "labels 0 and 1 (GPClassifier takes labels of any kind)"
    is_discrete: ClassVar[bool] = True
    predicts_classes: ClassVar[bool] = True

    @abstractmethod
    def link(self, f: np.ndarray) -> np.ndarray:
        """Return the probability of class 1 at a latent value."""

    def wrong_targets(self, y: np.ndarray, size: np.ndarray) -> np.ndarray:
        return (y != 0.0) & (y != 1.0)

    def check_target(self, y: np.ndarray, size: np.ndarray) -> None:
        super().check_target(y, size)
        if np.all(y == y[0]):
            raise ValueError(f"`y` holds only the class {y[0]:g}; two classes are needed.")

    def conditional_moments(self, f: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.link(f), self.link(f) * self.link(-f)

    def conditional_sample(self, f: np.ndarray, size: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return (rng.uniform(size=f.shape) < self.link(f)).astype(float)

    def conditional_cdf(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        return np.where(y >= 1.0, 1.0, np.where(y >= 0.0, self.link(-f), 0.0))

    def nodes(self, mean: np.ndarray, sd: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.broadcast_to([0.0, 1.0], (mean.size, 2)), np.ones((mean.size, 2))


@dataclass(frozen=True)
class Probit(TwoClasses):
    """P(y = 1) = Phi(f), the standard normal distribution function."""

    default_inference: ClassVar[Literal["exact", "ep", "laplace"]] = "ep"

    def log_density(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        return log_ndtr(np.where(y > 0.5, f, -f))

    def derivatives(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> Derivatives:
        sign = np.where(y > 0.5, 1.0, -1.0)
        z = sign * f
        r = inverse_mills(z)
        total = z + r
        return Derivatives(sign * r, -r * total, sign * r * (total * (total + r) - 1.0))

    def link(self, f: np.ndarray) -> np.ndarray:
        return ndtr(f)

    def latent_step(self, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        return np.full_like(f, 0.8)

    def predictive(self, mean: np.ndarray, var: np.ndarray, size: np.ndarray) -> distributions.ProbitBernoulli:
        return distributions.ProbitBernoulli(mean, var)

    def tilted_moments(self, y: np.ndarray, mean: np.ndarray, var: np.ndarray, size: np.ndarray) -> Moments:
        # Rasmussen & Williams (2006), equations 3.55 to 3.58.
        sign = np.where(y > 0.5, 1.0, -1.0)
        root = np.sqrt(1.0 + var)
        z = sign * mean / root
        r = inverse_mills(z)
        tilted_mean = mean + sign * var * r / root
        return Moments(log_ndtr(z), tilted_mean, var - var**2 * r * (z + r) / (1.0 + var))


@dataclass(frozen=True)
class Logit(TwoClasses):
    """P(y = 1) = 1 / (1 + exp(-f))."""

    def log_density(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        return -np.logaddexp(0.0, np.where(y > 0.5, -f, f))

    def derivatives(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> Derivatives:
        return logit_derivatives(y, f, np.ones_like(y))

    def link(self, f: np.ndarray) -> np.ndarray:
        return expit(f)

    def latent_step(self, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        return np.full_like(f, LOGIT_STEP)


@dataclass(frozen=True)
class Binomial(Likelihood):
    """y successes among `trials` independent ones with probability 1 / (1 + exp(-f))."""

    kind: ClassVar[str] = "binomial"
    target_rule: ClassVar[str] = "whole counts of at least 0 and at most the number of trials"
    size_rule: ClassVar[str] = "whole and at least 1"
    size_name: ClassVar[str | None] = "trials"
    is_discrete: ClassVar[bool] = True

    def wrong_targets(self, y: np.ndarray, size: np.ndarray) -> np.ndarray:
        return ~is_count(y) | (y > size)

    def wrong_sizes(self, size: np.ndarray) -> np.ndarray:
        return ~is_count(size) | (size < 1)

    def log_density(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        choices = gammaln(size + 1.0) - gammaln(y + 1.0) - gammaln(size - y + 1.0)
        return choices + y * f - size * np.logaddexp(0.0, f)

    def derivatives(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> Derivatives:
        return logit_derivatives(y, f, size)

    def conditional(self, f: np.ndarray, size: np.ndarray) -> distributions.Binomial:
        return distributions.Binomial(size, expit(f), expit(-f))

    def latent_step(self, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        return np.minimum(LOGIT_STEP, 1.6 / np.sqrt(size))

    def nodes(self, mean: np.ndarray, sd: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        counts = np.arange(size.max() + 1.0)
        allowed = counts <= size[:, None]
        return np.where(allowed, counts, 0.0), allowed.astype(float)


def logit_derivatives(y: np.ndarray, f: np.ndarray, size: np.ndarray) -> Derivatives:
    """Return the derivatives of y f - size log(1 + exp(f))."""
    probability = expit(f)
    spread = size * probability * expit(-f)
    return Derivatives(y - size * probability, -spread, -spread * (1.0 - 2.0 * probability))
