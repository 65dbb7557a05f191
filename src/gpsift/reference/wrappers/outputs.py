r"""This module combines independent models: of several outputs, or one Gaussian process for each class.

`Outputs` are several outputs of the same inputs. Their joint distribution is a product, so KL divergences add up.

`OneVsRest` has a Gaussian process for each class against the rest; probabilities are normalised,

.. math:: s_c = E \, \sigma(f_c), \quad f_c \sim N(m_c, v_c), \qquad \pi_c = s_c / \textstyle\sum_d s_d

With d s_c = E sigma'(f_c) dm_c + E sigma''(f_c) dv_c / 2, the relative changes are
d log pi_c = d log s_c - (sum_d d s_d) / (sum_d s_d), and r^2 = sum_c pi_c (d log pi_c)^2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from scipy.special import expit

from gpsift._utils.quadrature import normal_trapezoid
from gpsift.likelihoods.distributions import Distribution, Gaussian, MultivariateNormal, log1p_excess
from gpsift.likelihoods.distributions.classes import SeveralClasses
from gpsift.reference.base import Reference, Response
from gpsift.reference.ensemble import Ensemble
from gpsift.reference.inputs import Inputs, Points, same_rows
from gpsift.reference.response import OneClassResponse

# The trapezoidal rule averages over the latent value within REACH standard deviations. The logistic function has poles
# at a distance of pi, so the error of a step of LOGIT_STEP in f is exp(-2 pi^2 / LOGIT_STEP); a step of COARSEST_STEP
# standard deviations resolves the normal density.
REACH = 8.5
LOGIT_STEP = 0.5
COARSEST_STEP = 0.35
SMALLEST_SHARE = 1e-300


@dataclass(frozen=True, eq=False)
class OneVsRestLogit(SeveralClasses):
    """Normalised probabilities of classes with latent values N(latent_mean, latent_cov), (n, C) and (n, C, C).

    Gradients and changes are those of the latent moments, (n, C, p) and (n, C, C, p), (n, C) and (n, C, C). Each class
    has a process of its own, so only the diagonals of the covariances count.
    """

    VARYING: ClassVar = ("latent_mean", "latent_cov")

    latent_mean: np.ndarray
    latent_cov: np.ndarray

    @cached_property
    def _sd(self) -> np.ndarray:
        return np.sqrt(np.maximum(diagonals(self.latent_cov), np.finfo(float).tiny))

    @cached_property
    def _nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Standard normal nodes and weights, (h,) each."""
        step = min(COARSEST_STEP, LOGIT_STEP / float(self._sd.max()))
        return normal_trapezoid(int(np.ceil(2.0 * REACH / step)) + 1, REACH)

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
        var_change = diagonals(cov_change)
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
class OneVsRest(Reference):
    """A classifier with one model of two classes for each of several classes."""

    members: tuple[Reference, ...]  # the model of each class against the rest; they see the same inputs
    white_var: np.ndarray  # variance of white noise that is added to each latent function before it is observed, (C,)
    classes: tuple[str, ...] = ()  # names of the classes; by default their numbers

    mean_of = "the latent functions"

    @property
    def inputs(self) -> Inputs:  # type: ignore[override]
        return self.members[0].inputs

    @property
    def how(self) -> str:
        return f"{self.members[0].how}, for each of {len(self.members)} classes"

    def at(self, points: Points) -> OneVsRestResponse:
        responses = [member.at(points.for_model(member.inputs)) for member in self.members]
        return OneVsRestResponse(responses, self.white_var)

    def draw_functions(self, n: int, rng: np.random.Generator) -> list[Self]:
        draws = [member.draw_functions(n, rng) for member in self.members]
        return [replace(self, members=members) for members in zip(*draws, strict=True)]

    @property
    def functions(self) -> Mapping[str, OneOfRest]:
        names = self.classes or tuple(map(str, range(len(self.members))))
        return {f"class {name}": OneOfRest(self, number, name) for number, name in enumerate(names)}


@dataclass(frozen=True, eq=False, repr=False)
class OneOfRest(Reference):
    """The latent function of one class against the rest, and the probability of the class."""

    whole: OneVsRest
    number: int
    name: str

    @property
    def _own(self) -> Reference:
        return self.whole.members[self.number]

    @property
    def inputs(self) -> Inputs:  # type: ignore[override]
        return self.whole.inputs

    @property
    def how(self) -> str:
        return self._own.how

    @property
    def mean_of(self) -> str:
        return f"the latent function of class {self.name} against the rest"

    def at(self, points: Points) -> OneClassResponse:
        own = self._own.at(points.for_model(self._own.inputs))
        return OneClassResponse(own, self.whole.at(points), self.number)

    def joint(self, points: Points) -> tuple[np.ndarray, np.ndarray]:
        return self._own.joint(points.for_model(self._own.inputs))

    def draw_functions(self, n: int, rng: np.random.Generator) -> list[Self]:
        return [replace(self, whole=each) for each in self.whole.draw_functions(n, rng)]


class StackedResponse(Response):
    """The responses of independent models with normal latent values at the same points."""

    def __init__(self, members: Sequence[Response]):
        self._members = members

    def distribution(self, *, latent: bool) -> Distribution:
        parts = [member.distribution(latent=latent) for member in self._members]
        mean = np.stack([part.mean for part in parts], axis=1)
        return MultivariateNormal(mean, diagonal_matrices([part.var for part in parts]))

    def gradients(self) -> tuple[np.ndarray, np.ndarray]:
        return self._stack(member.gradients() for member in self._members)

    def step(self, j: int, delta: float) -> tuple[np.ndarray, np.ndarray]:
        return self._stack(member.step(j, delta) for member in self._members)

    def section(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        return np.stack([member.section(j, base, offset) for member in self._members], axis=2)

    @staticmethod
    def _stack(parts: Iterable[tuple[np.ndarray, ...]]) -> tuple[np.ndarray, np.ndarray]:
        mean_parts, var_parts = zip(*parts, strict=True)
        return np.stack(mean_parts, axis=1), diagonal_matrices(var_parts)


class OneVsRestResponse(StackedResponse):
    """The response of `OneVsRest`: normalised probabilities of the classes."""

    def __init__(self, members: Sequence[Response], white_var: np.ndarray):
        super().__init__(members)
        self._white_var = white_var

    def distribution(self, *, latent: bool) -> Distribution:
        normal = super().distribution(latent=True)
        assert isinstance(normal, MultivariateNormal)
        return normal if latent else OneVsRestLogit(normal.mean, normal.cov + np.diag(self._white_var))


def diagonal_matrices(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return diagonal matrices (n, C, C, ...) with the values of C arrays (n, ...)."""
    values = np.stack(parts, axis=1)
    n_classes = values.shape[1]
    matrices = np.zeros((values.shape[0], n_classes, *values.shape[1:]))
    index = np.arange(n_classes)
    matrices[:, index, index] = values
    return matrices


def diagonals(matrices: np.ndarray) -> np.ndarray:
    """Return the diagonals (n, C) of (n, C, C)."""
    return np.diagonal(matrices, axis1=1, axis2=2)


@dataclass(frozen=True, eq=False, repr=False)
class Outputs(Reference):
    """A model for each of several outputs of the same inputs.

    The outputs are independent given the input, so their joint distribution is the product of theirs, and their KL
    divergences add up. VAR adds up the variances of the latent means, each in units of its output's scale: where that
    is the standard deviation of the output, all outputs have equal weight.
    """

    outputs: Mapping[str, Reference]  # by their names; all have the same features, training inputs may differ
    scale: np.ndarray  # the unit of each output in VAR, (C,)

    mean_of = "the outputs, each divided by its standard deviation"

    def __post_init__(self) -> None:
        first, *others = self.outputs.values()
        if any(other.inputs.names != first.inputs.names for other in others):
            raise ValueError("All outputs must have the same features, in the same order.")

    @cached_property
    def inputs(self) -> Inputs:  # type: ignore[override]
        """The inputs of all outputs; the training rows are the union of theirs."""
        parts = [output.inputs for output in self.outputs.values()]
        inputs = replace(parts[0], categorical=tuple(sorted({j for part in parts for j in part.categorical})))
        known = [part.X for part in parts if part.X is not None]
        if not known or all(same_rows(part.X, parts[0].X) for part in parts):
            return inputs
        if len(known) < len(parts):
            return replace(inputs, X=None, is_own=False)
        rows = np.concatenate(known)
        _, first = np.unique(rows, axis=0, return_index=True)
        return replace(inputs, X=rows[np.sort(first)], is_own=False)

    @property
    def how(self) -> str:
        methods = dict.fromkeys(output.how for output in self.outputs.values())
        return f"{'; '.join(methods)}, for each of {len(self.outputs)} outputs"

    @property
    def functions(self) -> Mapping[str, Reference]:
        return self.outputs

    @property
    def notices(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(message for output in self.outputs.values() for message in output.notices))

    def draw_functions(self, n: int, rng: np.random.Generator) -> list[Self]:
        draws = [output.draw_functions(n, rng) for output in self.outputs.values()]
        return [replace(self, outputs=dict(zip(self.outputs, each, strict=True))) for each in zip(*draws, strict=True)]

    def at(self, points: Points) -> OutputsResponse:
        members = {name: output.at(points.for_model(output.inputs)) for name, output in self.outputs.items()}
        return OutputsResponse(members, self.scale)


@dataclass(frozen=True, eq=False, repr=False)
class OutputsEnsemble(Ensemble):
    """Several outputs, some of them ensembles: member s has draw s of each ensemble, and the other outputs."""

    members: tuple[Outputs, ...]
    outputs: Mapping[str, Reference | Ensemble]

    @property
    def scale(self) -> np.ndarray:
        """The unit of each output in VAR, (C,)."""
        return self.members[0].scale

    @property
    def functions(self) -> Mapping[str, Reference | Ensemble]:
        return self.outputs


def stack_outputs(outputs: Mapping[str, Reference | Ensemble], scale: np.ndarray) -> Outputs | OutputsEnsemble:
    """Return the joint model of several outputs, or the ensemble of joint models where some outputs are ensembles."""
    sizes = [len(output.members) for output in outputs.values() if isinstance(output, Ensemble)]
    if not sizes:
        return Outputs(outputs, scale)  # type: ignore[arg-type]
    models = [
        {name: each.members[draw] if isinstance(each, Ensemble) else each for name, each in outputs.items()}
        for draw in range(min(sizes))
    ]
    return OutputsEnsemble(tuple(Outputs(each, scale) for each in models), outputs)


class OutputsResponse(StackedResponse):
    """The responses of all outputs at the same points."""

    def __init__(self, members: Mapping[str, Response], scale: np.ndarray):
        super().__init__(list(members.values()))
        self._scale = scale
        for name, member in members.items():
            family = member.distribution(latent=False)
            if not isinstance(family, Gaussian):
                raise TypeError(
                    f"Output {name!r} is not normal but {type(family).__name__}; outputs of other kinds have no joint "
                    "ranking. Rank each: `{name: rank(output) for name, output in reference.outputs.items()}`."
                )

    def section(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        return super().section(j, base, offset) / self._scale


def choose_output(outputs: Mapping[str, Reference | Ensemble], output: int | str) -> Reference | Ensemble:
    """Return one of the outputs, by its name or its position."""
    if isinstance(output, str) and output in outputs:
        return outputs[output]
    is_position = isinstance(output, int | np.integer) and not isinstance(output, bool)
    if is_position and 0 <= output < len(outputs):  # type: ignore[operator]
        return list(outputs.values())[int(output)]
    raise ValueError(
        f"`output` must be one of {', '.join(map(repr, outputs))}, or a whole number from 0 to {len(outputs) - 1}, got "
        f"{output!r}."
    )
