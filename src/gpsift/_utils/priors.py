"""Prior distributions of hyperparameters, and the scale on which `MAP` takes their density."""

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
        The density is that of the quantity to this power, or for 0 that of its logarithm. The mode of the density,
        which `MAP` finds, depends on the power; the distribution, and so draws from a posterior, do not.
    """

    power: ClassVar[float] = 1.0

    @abstractmethod
    def log_density(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return log p of each value, or of all together, and the derivative with respect to log(value)."""


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
    """A distribution, with the density of the logarithm.

    The mode of a density depends on its scale. The density of log(v), v p(v), has a longer right tail than p(v), by one
    power of v. With many features of very long length-scales, `MAP` needs this tail.

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
        # A prior of all values jointly has one log density.
        shift = log_jacobian if np.ndim(log_density) else log_jacobian.sum()
        return log_density + shift, slope + power
