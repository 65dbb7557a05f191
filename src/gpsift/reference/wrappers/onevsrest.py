r"""Several classes, each told from the rest by a Gaussian process of its own; probabilities are normalised.

.. math:: s_c = E \, \sigma(f_c), \quad f_c \sim N(m_c, v_c), \qquad \pi_c = s_c / \textstyle\sum_d s_d

With d s_c = E sigma'(f_c) dm_c + E sigma''(f_c) dv_c / 2, the relative changes are
d log pi_c = d log s_c - (sum_d d s_d) / (sum_d s_d), and r^2 = sum_c pi_c (d log pi_c)^2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import expit

from gpsift.likelihoods.distributions import Distribution, MultivariateNormal, log1p_excess
from gpsift.likelihoods.distributions.classes import SeveralClasses
from gpsift.reference.base import Reference, Response, Several
from gpsift.reference.inputs import Inputs, Points
from gpsift.reference.response import OneClassResponse

# The latent value is averaged by the trapezoidal rule over +-REACH standard deviations. The logistic function has poles
# at a distance of pi, so a step of LOGIT_STEP in f errs by exp(-2 pi^2 / LOGIT_STEP); one of COARSEST_STEP standard
# deviations resolves the normal density.
REACH = 8.5
LOGIT_STEP = 0.5
COARSEST_STEP = 0.35
SMALLEST_SHARE = 1e-300


@dataclass(frozen=True, eq=False)
class OneVsRestLogit(SeveralClasses):
    """Normalised probabilities of classes with latent values N(latent_mean, latent_cov), (n, C) and (n, C, C).

    Gradients and changes are those of the latent moments, (n, C, p) and (n, C, C, p), (n, C) and (n, C, C). Each class
    has a process of its own, so only the diagonal of the covariances counts.
    """

    VARYING: ClassVar = ("latent_mean", "latent_cov")

    latent_mean: np.ndarray
    latent_cov: np.ndarray

    @cached_property
    def _sd(self) -> np.ndarray:
        return np.sqrt(np.maximum(diagonal_of(self.latent_cov), np.finfo(float).tiny))

    @cached_property
    def _nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Standard normal nodes and weights, (h,) each."""
        step = min(COARSEST_STEP, LOGIT_STEP / float(self._sd.max()))
        t = np.linspace(-REACH, REACH, int(np.ceil(2.0 * REACH / step)) + 1)
        weights = np.exp(-0.5 * t**2)
        return t, weights / weights.sum()

    @cached_property
    def _latent(self) -> np.ndarray:
        """Latent values, (n, C, h)."""
        return self.latent_mean[:, :, None] + self._sd[:, :, None] * self._nodes[0]

    @cached_property
    def shares(self) -> np.ndarray:
        """s_c, (n, C)."""
        return np.maximum(expit(self._latent) @ self._nodes[1], SMALLEST_SHARE)

    @property
    def probabilities(self) -> np.ndarray:
        return self.shares / self.shares.sum(axis=1, keepdims=True)

    def metric_terms(self, *gradients: np.ndarray) -> dict[str, np.ndarray]:
        mean_gradient, cov_gradient = gradients
        f, weights = self._latent, self._nodes[1]
        slope = expit(f) * expit(-f)
        by_mean, by_var = slope @ weights, 0.5 * (slope * (expit(-f) - expit(f))) @ weights
        var_gradient = np.moveaxis(np.diagonal(cov_gradient, axis1=1, axis2=2), 2, 1)
        change = by_mean[:, :, None] * mean_gradient + by_var[:, :, None] * var_gradient
        relative = (
            change / self.shares[:, :, None] - (change.sum(axis=1) / self.shares.sum(axis=1)[:, None])[:, None, :]
        )
        return {"prediction": np.sum(self.probabilities[:, :, None] * relative**2, axis=1)}

    def kl_terms(self, *changes: np.ndarray) -> dict[str, np.ndarray]:
        mean_change, cov_change = changes
        var_change = diagonal_of(cov_change)
        sd_change = var_change / (np.sqrt(np.maximum(self._sd**2 + var_change, 0.0)) + self._sd)
        f, (t, weights) = self._latent, self._nodes
        move = mean_change[:, :, None] + sd_change[:, :, None] * t
        # sigma(f + a) - sigma(f) = sigma(f) sigma(-f - a) (exp(a) - 1), without a subtraction.
        change = (expit(f) * expit(-f - move) * np.expm1(move)) @ weights
        total = (change.sum(axis=1) / self.shares.sum(axis=1))[:, None]
        # pi' / pi - 1; its average over the classes is 0, so KL = sum pi (u - log(1 + u)).
        relative = (change / self.shares - total) / (1.0 + total)
        return {"prediction": np.sum(self.probabilities * log1p_excess(relative), axis=1)}


@dataclass(frozen=True, eq=False, repr=False)
class OneVsRest(Reference, Several):
    """One model of two classes for each of several classes.

    Parameters
    ----------
    members : tuple of Reference
        The model of each class against the rest; they see the same inputs.
    white_var : array (C,)
        Variance of white noise that is added to each latent function before it is observed.
    classes : tuple of str
        What the classes are called; by default by their numbers.
    """

    members: tuple[Reference, ...]
    white_var: np.ndarray
    classes: tuple[str, ...] = ()

    mean_of = "the latent functions"

    @property
    def inputs(self) -> Inputs:  # type: ignore[override]
        return self.members[0].inputs

    @property
    def how(self) -> str:
        return f"{self.members[0].how}, for each of {len(self.members)} classes"

    def at(self, points: Points) -> OneVsRestResponse:
        return OneVsRestResponse([member.at(points.asked_of(member.inputs)) for member in self.members], self.white_var)

    @property
    def functions(self) -> Mapping[str, OneOfRest]:
        names = self.classes or tuple(map(str, range(len(self.members))))
        return {f"class {name}": OneOfRest(self, number, name) for number, name in enumerate(names)}


@dataclass(frozen=True, eq=False, repr=False)
class OneOfRest(Reference):
    """The latent function of one class against the rest, and its probability among all."""

    whole: OneVsRest
    number: int
    name: str

    @property
    def inputs(self) -> Inputs:  # type: ignore[override]
        return self.whole.inputs

    @property
    def how(self) -> str:
        return self.whole.members[self.number].how

    @property
    def mean_of(self) -> str:
        return f"the latent function of class {self.name} against the rest"

    def at(self, points: Points) -> OneClassResponse:
        member = self.whole.members[self.number]
        return OneClassResponse(member.at(points.asked_of(member.inputs)), self.whole.at(points), self.number)

    def joint(self, points: Points) -> tuple[np.ndarray, np.ndarray]:
        member = self.whole.members[self.number]
        return member.joint(points.asked_of(member.inputs))


class StackedResponse(Response):
    """The responses of independent models with normal latent values at the same points."""

    def __init__(self, members: Sequence[Response]):
        self._members = members

    def distribution(self, *, latent: bool) -> Distribution:
        return self.normal(latent=latent)

    def normal(self, *, latent: bool) -> MultivariateNormal:
        """All of them as one distribution."""
        parts = [member.distribution(latent=latent) for member in self._members]
        mean = np.stack([part.mean for part in parts], axis=1)
        return MultivariateNormal(mean, diagonal([part.var for part in parts]))

    def gradients(self) -> tuple[np.ndarray, np.ndarray]:
        return self._joined(member.gradients() for member in self._members)

    def step(self, j: int, delta: float) -> tuple[np.ndarray, np.ndarray]:
        return self._joined(member.step(j, delta) for member in self._members)

    def section(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        return np.stack([member.section(j, base, offset) for member in self._members], axis=2)

    @staticmethod
    def _joined(parts: Iterable[tuple[np.ndarray, ...]]) -> tuple[np.ndarray, np.ndarray]:
        mean_parts, var_parts = zip(*parts, strict=True)
        return np.stack(mean_parts, axis=1), diagonal(var_parts)


class OneVsRestResponse(StackedResponse):
    """Normalised probabilities of the classes."""

    def __init__(self, members: Sequence[Response], white_var: np.ndarray):
        super().__init__(members)
        self._white_var = white_var

    def distribution(self, *, latent: bool) -> Distribution:
        normal = self.normal(latent=True)
        return normal if latent else OneVsRestLogit(normal.mean, normal.cov + np.diag(self._white_var))


def diagonal(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Diagonal matrices of C arrays (n, ...): (n, C, C, ...)."""
    values = np.stack(parts, axis=1)
    n_classes = values.shape[1]
    matrices = np.zeros((values.shape[0], n_classes, *values.shape[1:]))
    index = np.arange(n_classes)
    matrices[:, index, index] = values
    return matrices


def diagonal_of(matrices: np.ndarray) -> np.ndarray:
    """Diagonals (n, C) of (n, C, C)."""
    return np.diagonal(matrices, axis1=1, axis2=2)
