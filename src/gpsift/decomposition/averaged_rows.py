"""The rows that curves are averages over, and which values each of them could have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from gpsift.decomposition.asked import Asked
from gpsift.decomposition.axes import Axis
from gpsift.likelihoods.distributions import Gaussian
from gpsift.reference.inputs import InputMoments
from gpsift.relevance.conditionals import fit_conditionals

# Rows that curves are averages over, at most; and where every row has to be predicted at every value.
MOST_ROWS = 2000
MOST_PREDICTED_ROWS = 200
# Rows with a curve of their own.
N_INDIVIDUAL = 30
# A row could have a value that is within this many standard deviations of what a regression on the others expects.
WITHIN = 3.0


@dataclass(frozen=True, eq=False)
class AveragedRows:
    """The rows that curves are averages over, and what is told of some of them."""

    X: np.ndarray  # (n, p) in the user's units
    is_shown: np.ndarray  # (n,), those with a curve of their own
    is_latent: bool  # whether curves are those of the latent mean, which the mean of a normal observation is, too
    regression: Regression

    @classmethod
    def drawn(cls, asked: Asked, latent: bool, seed: int) -> Self:
        rng = np.random.default_rng(seed)
        is_latent = latent or _is_normal(asked)
        is_summed = is_latent and asked.is_closed
        X = asked.X[_some(len(asked.X), MOST_ROWS if is_summed else MOST_PREDICTED_ROWS, rng)]
        is_shown = np.zeros(len(X), dtype=bool)
        is_shown[_some(len(X), N_INDIVIDUAL, rng)] = True
        return cls(X, is_shown, is_latent, Regression.of(X, asked.model.used))


@dataclass(frozen=True, eq=False)
class Regression:
    """What each column is expected to be given the others that a model uses, and how far it is from that."""

    columns: tuple[int, ...]
    mean: np.ndarray  # (n, k)
    sd: np.ndarray  # (k,)

    @classmethod
    def of(cls, X: np.ndarray, columns: Sequence[int]) -> Self:
        varying = tuple(column for column in columns if np.ptp(X[:, column]) > 0)
        if not varying or len(X) < 3:
            return cls((), np.empty((len(X), 0)), np.empty(0))
        there = X[:, list(varying)]
        conditionals = fit_conditionals(InputMoments.of(there), "auto")
        return cls(varying, conditionals.mean(there), conditionals.sd)

    def support(self, unit: Sequence[int], axis: Axis) -> np.ndarray:
        """The share of rows that could have each value; 1 for categories, of which it does not know."""
        if axis.labels is not None or unit[0] not in self.columns:
            return np.ones(len(axis.values))
        k = self.columns.index(unit[0])
        return np.mean(np.abs(axis.values[:, 0] - self.mean[:, [k]]) <= WITHIN * self.sd[k], axis=0)


def _is_normal(asked: Asked) -> bool:
    first = next(iter(asked.members))
    response = first.at(first.inputs.points(asked.X[:1]))
    return isinstance(response.distribution(latent=False), Gaussian)


def _some(n: int, most: int, rng: np.random.Generator) -> np.ndarray:
    """At most this many of n numbers, ascending."""
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))
