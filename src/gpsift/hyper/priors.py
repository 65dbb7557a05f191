"""Prior densities of hyperparameters, on the parameters themselves (no Jacobian of the logarithm)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np


class Prior(ABC):
    """A density of a positive quantity."""

    @abstractmethod
    def log_density(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log p(value), and its derivative with respect to log(value)."""


class _PositiveParameters(Prior):
    """A prior whose own parameters are positive."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"`{name}` of {type(self).__name__} must be positive, got {value}.")


@dataclass(frozen=True)
class HalfT(_PositiveParameters):
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
class InverseGamma(_PositiveParameters):
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
class GammaPrior(_PositiveParameters):
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
