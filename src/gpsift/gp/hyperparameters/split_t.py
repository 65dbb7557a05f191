"""Distributions that follow a log density around its modes: almost normal, and not the same on both sides."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
from scipy.special import chdtri, logsumexp, ndtri

from gpsift.gp.hyperparameters.even import even_shares

# Degrees of freedom of the draws. On 50 sets of 80 rows and six inputs k-hat is above 0.7 in 16 %, of normal draws in
# 40 %, and 90 % intervals cover 90 %.
DF = 20.0
# A direction that the data say nothing about is no wider than this curvature says.
LEAST_CURVATURE = 0.05
# Each side of an axis is at most this much narrower or wider than the curvature at the mode says.
WIDTHS = (0.3, 3.0)


@dataclass(frozen=True, eq=False)
class SplitT:
    """A t distribution, almost normal, whose two sides along each of its axes differ in width."""

    mode: np.ndarray
    axes: np.ndarray  # (k, k), a unit of length in each column
    widths: np.ndarray  # (2, k), of the sides, in these
    top: float = 0.0  # the log density that it follows, at the mode

    @classmethod
    def at(cls, mode: np.ndarray, curvature: np.ndarray, value: Callable[[np.ndarray], float]) -> SplitT:
        """With the curvature of minus a log density at its mode, and the widths that the density itself says."""
        values, vectors = np.linalg.eigh(curvature)
        axes = vectors / np.sqrt(np.maximum(values, LEAST_CURVATURE))
        top = value(mode)
        drops = [[top - value(mode + side * math.sqrt(2.0) * axis) for axis in axes.T] for side in (1.0, -1.0)]
        return cls(mode, axes, np.clip(1.0 / np.sqrt(np.maximum(drops, 1e-3)), *WIDTHS), top)

    @cached_property
    def log_volume(self) -> float:
        """Logarithm of its integral if it is 1 at the mode, up to a constant that all of a dimension share."""
        return float(np.linalg.slogdet(self.axes)[1] + np.sum(np.log(self.widths.mean(axis=0))))

    def distance(self, u: np.ndarray) -> np.ndarray:
        """Of each row from the mode, in its own units of length."""
        along = np.linalg.solve(self.axes, (u - self.mode).T)
        sides = np.where(along.T > 0, self.widths[0], self.widths[1])
        return np.asarray(np.linalg.norm(along.T / sides, axis=-1))

    def log_density(self, u: np.ndarray) -> np.ndarray:
        """At each row, up to a constant that all of a dimension share."""
        return -0.5 * (DF + self.mode.size) * np.log1p(self.distance(u) ** 2 / DF) - self.log_volume

    def placed(self, shares: np.ndarray) -> np.ndarray:
        """From shares (m, k + 1), uniform between 0 and 1, to draws (m, k).

        Along each axis a share is that of the draws further down; the last one is that of a common size.
        """
        along, size = shares[:, :-1], np.sqrt(DF / chdtri(DF, shares[:, -1]))
        below = self.widths[1] / self.widths.sum(axis=0)
        is_below = along < below
        beyond = np.where(is_below, along / below, (1.0 - along) / (1.0 - below))  # of the draws of its side
        normal = ndtri(0.5 * beyond) * np.where(is_below, self.widths[1], -self.widths[0])
        return self.mode + (size[:, None] * normal) @ self.axes.T


@dataclass(frozen=True, eq=False)
class Mixture:
    """One distribution for each mode; each weighs what the log density that they follow has around it."""

    parts: tuple[SplitT, ...]

    @cached_property
    def log_weights(self) -> np.ndarray:
        masses = np.array([part.top + part.log_volume for part in self.parts])
        return masses - logsumexp(masses)

    def log_density(self, u: np.ndarray) -> np.ndarray:
        """At each row, up to a constant."""
        of_parts = np.array([part.log_density(u) for part in self.parts])
        return np.asarray(logsumexp(self.log_weights + of_parts.T, axis=-1))

    def draws(self, seed: int) -> Iterator[np.ndarray]:
        """Draws (k,), without end, which fill the distribution evenly."""
        return chain.from_iterable(self.blocks(seed))

    def blocks(self, seed: int) -> Iterator[np.ndarray]:
        """The same, many at a time, (m, k)."""
        ends = np.cumsum(np.exp(self.log_weights))[:-1]
        for shares in even_shares(self.parts[0].mode.size + 2, seed):
            numbers = np.searchsorted(ends, shares[:, -1], side="right")
            of_parts = np.array([part.placed(shares[:, :-1]) for part in self.parts])
            yield of_parts[numbers, np.arange(numbers.size)]
