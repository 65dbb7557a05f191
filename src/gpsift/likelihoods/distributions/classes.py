r"""Distributions of two classes, by a probability or by a latent normal value (probit), and of several classes.

With two classes, p the probability of class 1 and d its change, the linear terms of KL cancel in the formula:
KL = p E(d / p) + (1 - p) E(-d / (1 - p)) with E(u) = u - log(1 + u).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtr

from gpsift._utils.arrays import Array
from gpsift.likelihoods.distributions.base import Distribution, log1p_excess
from gpsift.likelihoods.distributions.counts import share_excess, share_metric

ROOT_2PI = np.sqrt(2.0 * np.pi)
TINY = 1e-300


class TwoClasses(Distribution):
    """A distribution of two classes, by the probability of each: 1 minus the other would have no digits near 0."""

    probability: Array  # P(y = 1), (n,)
    complement: Array  # P(y = 0), (n,)

    @property
    def mean(self) -> np.ndarray:
        return self.probability

    @property
    def var(self) -> np.ndarray:
        return self.probability * self.complement

    def log_density(self, y: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(np.where(y > 0.5, self.probability, self.complement))

    def cdf(self, y: np.ndarray) -> np.ndarray:
        return np.where(y >= 1.0, 1.0, np.where(y >= 0.0, self.complement, 0.0))

    def quantile_at(self, probability: float) -> np.ndarray:
        return (self.complement < probability).astype(float)

    def sample(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        return (rng.uniform(size=(n_draws, self.probability.size)) < self.probability).astype(float)


@dataclass(frozen=True, eq=False)
class Bernoulli(TwoClasses):
    """P(y = 1) = p, (n,)."""

    VARYING: ClassVar = ("p",)

    p: np.ndarray

    @property
    def probability(self) -> np.ndarray:
        return self.p

    @property
    def complement(self) -> np.ndarray:
        return 1.0 - self.p

    def metric_terms(self, *gradients: np.ndarray) -> dict[str, np.ndarray]:
        (gradient,) = gradients
        return {"prediction": gradient**2 / self.var[:, None]}

    def kl_terms(self, *changes: np.ndarray) -> dict[str, np.ndarray]:
        (change,) = changes
        return {"prediction": bernoulli_kl_of_change(self.probability, self.complement, change)}


def bernoulli_kl_of_change(p: np.ndarray, q: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Return the KL to a Bernoulli distribution whose probability p = 1 - q has changed."""
    # Where a probability has underflowed to 0, its term is 0.
    return p * log1p_excess(change / np.maximum(p, TINY)) + q * log1p_excess(-change / np.maximum(q, TINY))


@dataclass(frozen=True, eq=False)
class ProbitBernoulli(TwoClasses):
    """P(y = 1) = Phi(latent_mean / sqrt(1 + latent_var)): Phi(f) averaged over a normal f."""

    VARYING: ClassVar = ("latent_mean", "latent_var")

    latent_mean: np.ndarray
    latent_var: np.ndarray

    @cached_property
    def z(self) -> np.ndarray:
        """The argument of Phi."""
        return self.latent_mean / np.sqrt(1.0 + self.latent_var)

    @property
    def probability(self) -> np.ndarray:
        return ndtr(self.z)

    @property
    def complement(self) -> np.ndarray:
        return ndtr(-self.z)

    def log_density(self, y: np.ndarray) -> np.ndarray:
        return log_ndtr(np.where(y > 0.5, self.z, -self.z))

    def metric_terms(self, *gradients: np.ndarray) -> dict[str, np.ndarray]:
        mean_gradient, var_gradient = gradients
        spread = 1.0 + self.latent_var[:, None]
        z_gradient = (mean_gradient - 0.5 * self.latent_mean[:, None] * var_gradient / spread) / np.sqrt(spread)
        # phi^2 / (Phi (1 - Phi)) on the log scale: finite where the probabilities are saturated.
        log_information = -(self.z**2) - 2.0 * np.log(ROOT_2PI) - log_ndtr(self.z) - log_ndtr(-self.z)
        return {"prediction": np.exp(log_information)[:, None] * z_gradient**2}

    def kl_terms(self, *changes: np.ndarray) -> dict[str, np.ndarray]:
        mean_change, var_change = changes
        spread, moved = 1.0 + self.latent_var, 1.0 + self.latent_var + var_change
        # z' - z without a subtraction: sqrt(spread) - sqrt(moved) = -var_change / (their sum).
        root, moved_root = np.sqrt(spread), np.sqrt(moved)
        z_change = mean_change / moved_root - self.z * var_change / (moved_root * (root + moved_root))
        # In the left tail both probabilities are small, and their difference keeps its digits.
        flip = np.where(self.z > 0, -1.0, 1.0)
        change = flip * normal_cdf_change(flip * self.z, flip * z_change)
        p, q = self.probability, self.complement
        is_small = np.abs(change) < 0.1 * np.minimum(p, q)
        safe = bernoulli_kl_of_change(p, q, np.where(is_small, change, 0.0))
        # Large changes are computed from log probabilities, which are finite where probabilities underflow.
        moved_z = self.z + z_change
        plain = p * (log_ndtr(self.z) - log_ndtr(moved_z)) + q * (log_ndtr(-self.z) - log_ndtr(-moved_z))
        return {"prediction": np.where(is_small, safe, np.maximum(plain, 0.0))}


def normal_cdf_change(z: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Return Phi(z + step) - Phi(z), to full relative precision for z <= 0."""
    # For small steps, Taylor's series of the density around the middle, whose odd terms cancel.
    middle = z + 0.5 * step
    half = 0.5 * step
    density = np.exp(-0.5 * middle**2) / ROOT_2PI
    series = step * (1.0 + (middle**2 - 1.0) * half**2 / 6.0 + (middle**4 - 6.0 * middle**2 + 3.0) * half**4 / 120.0)
    small = np.abs(step) * (1.0 + np.abs(z)) < 1e-2
    return np.where(small, density * series, ndtr(z + step) - ndtr(z))


class SeveralClasses(Distribution):
    """A distribution of the classes 0, ..., C - 1 by their probabilities, (n, C), which add up to 1 in each row.

    `mean` and `var` are those of the indicator of each class, (n, C).
    """

    probabilities: Array

    @property
    def log_probabilities(self) -> np.ndarray:
        """Logarithms of the probabilities, (n, C)."""
        with np.errstate(divide="ignore"):
            return np.log(self.probabilities)

    @property
    def mean(self) -> np.ndarray:
        return self.probabilities

    @property
    def var(self) -> np.ndarray:
        return self.probabilities * (1.0 - self.probabilities)

    def log_density(self, y: np.ndarray) -> np.ndarray:
        n, n_classes = self.probabilities.shape
        label = np.asarray(y).astype(int)
        possible = (label == y) & (label >= 0) & (label < n_classes)
        log_density = self.log_probabilities[np.arange(n), np.where(possible, label, 0)]
        return np.where(possible, log_density, -np.inf)

    def cdf(self, y: np.ndarray) -> np.ndarray:
        n, n_classes = self.probabilities.shape
        label = np.clip(np.floor(y), -1, n_classes - 1).astype(int)
        return np.where(label < 0, 0.0, self._cumulative[np.arange(n), label])

    def quantile_at(self, probability: float) -> np.ndarray:
        return np.argmax(self._cumulative >= probability, axis=1).astype(float)

    def sample(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        uniform = rng.uniform(size=(n_draws, len(self.probabilities), 1))
        return np.argmax(self._cumulative > uniform, axis=2).astype(float)

    @property
    def _cumulative(self) -> np.ndarray:
        cumulative = np.cumsum(self.probabilities, axis=1)
        # The last sum is exactly 1 in spite of rounding. Classes after the last possible one keep probability 0.
        return np.where(cumulative >= cumulative[:, -1:], 1.0, cumulative)


@dataclass(frozen=True, eq=False)
class Categorical(SeveralClasses):
    """One of the classes 0, ..., C - 1, by their probabilities (n, C), which add up to 1 in each row.

    Gradients are (n, C, p) and changes (n, C); they add up to zero over the classes, which is not checked.
    """

    VARYING: ClassVar = ("probabilities",)

    probabilities: np.ndarray

    def metric_terms(self, *gradients: np.ndarray) -> dict[str, np.ndarray]:
        (gradient,) = gradients
        return {"prediction": np.sum(share_metric(self.probabilities[:, :, None], gradient), axis=1)}

    def kl_terms(self, *changes: np.ndarray) -> dict[str, np.ndarray]:
        (change,) = changes
        # KL = sum pi E(d / pi), because the changes d add up to zero.
        return {"prediction": np.sum(share_excess(self.probabilities, change), axis=1)}
