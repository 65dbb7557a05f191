"""Steps of a normal distribution towards an optimum, in its natural parameters: halved, or mixed of the last ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from gpsift._utils.arrays import Array, namespace
from gpsift._utils.linalg import (
    NotPositiveDefinite,
    cholesky,
    cholesky_solve,
    invert_lower,
    log_det_from_cholesky,
    total_product,
)

# How often a step is halved that does not lead up.
MAX_HALVINGS = 30
# How many places of the path are mixed; directions this near to parallel count as one.
MEMORY = 6
PARALLEL = 1e-10


@dataclass(frozen=True, eq=False)
class Normal:
    """q(v) = N(m, S) by its natural parameters."""

    precision: Array  # P = S^-1, (m, m)
    shift: Array  # P m, (m,)

    @cached_property
    def L_P(self) -> Array:
        return cholesky(self.precision)

    @cached_property
    def L_P_inverse(self) -> Array:
        return invert_lower(self.L_P)

    @cached_property
    def mean(self) -> Array:
        return cholesky_solve(self.L_P, self.shift)

    @cached_property
    def covariance(self) -> Array:
        return self.L_P_inverse.T @ self.L_P_inverse

    @cached_property
    def kl_from_prior(self) -> float:
        """KL(q || N(0, I))."""
        spread = total_product(self.L_P_inverse, self.L_P_inverse)
        size = self.mean.shape[0]
        return 0.5 * float(spread + self.mean @ self.mean - size + log_det_from_cholesky(self.L_P))

    def towards(self, other: Self, step: float) -> Self:
        """A part of the way to another one."""
        return type(self)(
            self.precision + step * (other.precision - self.precision), self.shift + step * (other.shift - self.shift)
        )

    def distance(self, other: Self) -> float:
        """KL(q || other) + KL(other || q), to which the gain of a small step of length 1 is half."""
        shift = self.mean - other.mean
        across = total_product(other.precision - self.precision, self.covariance - other.covariance)
        return 0.5 * float(across + shift @ ((self.precision + other.precision) @ shift))

    def is_proper(self) -> bool:
        """Whether there is such a distribution: rounding and mixtures with negative weights can leave none."""
        try:
            _ = self.L_P
        except NotPositiveDefinite:
            return False
        return True

    def scaled(self, towards: Self, start: Self) -> Array:
        """The way from `start` to another in units of this one's width, flat: its square is twice a small distance."""
        xp, L_inverse = namespace(self.precision), self.L_P_inverse
        by_precision, by_shift = towards.precision - start.precision, towards.shift - start.shift
        of_precision = L_inverse @ by_precision @ L_inverse.T
        of_mean = L_inverse @ (by_shift - by_precision @ self.mean)
        return xp.concat([xp.reshape(of_precision, (-1,)), math.sqrt(2.0) * of_mean])


def mixed(path: Sequence[tuple[Normal, Normal]]) -> Normal:
    """Anderson's mixture of where the last steps lead: were all linear, a step from there would be the shortest.

    Plain steps creep, or go back and forth, where the signal is large: at a signal variance of 100 with a logit link
    they took 107 visits of the rows, and with mixtures 9.
    """
    here = path[-1][0]
    ways = [here.scaled(target, q) for q, target in path]
    lengths = np.array([math.sqrt(float(way @ way)) for way in ways])
    cosines = np.array([[float(one @ other) for one in ways] for other in ways]) / np.outer(lengths, lengths)
    weights = np.linalg.solve(cosines + PARALLEL * np.eye(len(ways)), 1.0 / lengths) / lengths
    weights /= weights.sum()
    shares = [(float(weight), target) for weight, (_, target) in zip(weights, path, strict=True)]
    return Normal(
        sum(weight * target.precision for weight, target in shares),
        sum(weight * target.shift for weight, target in shares),
    )


def goals(path: Sequence[tuple[Normal, Normal]]) -> Iterator[Normal]:
    """Where to go from the last place of the path, the boldest first."""
    q, target = path[-1]
    if len(path) > 1:
        mixture = mixed(path)
        if mixture.is_proper():
            yield mixture
    for halving in range(MAX_HALVINGS):
        yield q.towards(target, 0.5**halving)
