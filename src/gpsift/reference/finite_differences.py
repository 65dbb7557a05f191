r"""This module has models without closed-form derivatives: some only predict, others have gradients too.

A model that can only predict (`Numeric`) has derivatives by the central difference of fourth order,

.. math:: f'(x) = \frac{8 [f(x + h) - f(x - h)] - [f(x + 2h) - f(x - 2h)]}{12 h} + O(h^4),

with h a small share of the feature's standard deviation. It needs four predictions a feature. Predictions of Gaussian
processes have the rounding errors of a linear solve, which a difference divides by h; the best step of fourth order is
a hundred times longer than that of second order, so these errors are a hundred times smaller.

In a short step a model with gradients of another library (`Differentiable`) changes by the integral of the gradient,

.. math:: f(x + \delta e_j) - f(x) = \delta \int_0^1 \partial_j f(x + t \delta e_j) \, dt ,

by Gauss-Legendre quadrature, without the cancellation in the difference of two nearly equal predictions.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from gpsift._utils.quadrature import gauss_legendre
from gpsift.likelihoods import distributions as families
from gpsift.likelihoods.distributions import Distribution
from gpsift.reference.base import Reference, Response
from gpsift.reference.inputs import Points
from gpsift.reference.response import Predictive

# Step of the differences in standard deviations of the feature. For a function with length-scale l standard deviations,
# the truncation error is about (STEP / l)^4 / 30 and that of rounding eps / STEP: at l = 1, 3e-14 and 2e-13.
STEP = 1e-3


class NumericResponse(Response):
    """A response computed from predictions alone."""

    def __init__(self, model: Numeric, X: np.ndarray, scale: np.ndarray):
        self._model, self._X, self._scale = model, X, scale

    @cached_property
    def parameters(self) -> tuple[np.ndarray, ...]:
        """The varying parameters of the predictive distribution at the points."""
        return self._model.parameters(self._X)

    def distribution(self, *, latent: bool) -> Distribution:
        return self._model.family(self._X, self.parameters, latent=latent)

    @property
    def latent_mean(self) -> np.ndarray:
        return self._model.mean_only(self._X)

    def gradients(self) -> tuple[np.ndarray, ...]:
        gradients = [np.zeros((*parameter.shape, self._scale.size)) for parameter in self.parameters]
        for j in map(int, np.flatnonzero(self._scale)):
            h = STEP * self._scale[j]
            moved = (self._model.parameters(self._move(j, step)) for step in (h, -h, 2 * h, -2 * h))
            for gradient, *ends in zip(gradients, *moved, strict=True):
                gradient[..., j] = central_difference(ends, h)
        return tuple(gradients)

    def step(self, j: int, delta: float) -> tuple[np.ndarray, ...]:
        moved = self._model.parameters(self._move(j, delta))
        return tuple(there - here for there, here in zip(moved, self.parameters, strict=True))

    def section(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        n_nodes = max(1, self._model.batch_size // max(1, base.size))
        parts = []
        for some in (offset[k : k + n_nodes] for k in range(0, offset.size, n_nodes)):
            X = np.repeat(self._X, some.size, axis=0)
            X[:, j] = np.add.outer(base, some).ravel()
            values = self._model.mean_only(X)
            parts.append(values.reshape(base.size, some.size, *values.shape[1:]))
        return np.concatenate(parts, axis=1)

    def _move(self, j: int, delta: float) -> np.ndarray:
        X = self._X.copy()
        X[:, j] += delta
        return X


class Numeric(Reference):
    """A model that predicts the parameters of a distribution and offers no derivatives."""

    RESPONSE: ClassVar[type[NumericResponse]] = NumericResponse
    # The nodes of a section are predicted in calls of at most this many points. By default each node is a call: JAX
    # compiles for each number of points, and other libraries make large matrices.
    batch_size: ClassVar[int] = 1

    predictive: Predictive  # of latent mean and variance, where these are the parameters

    @abstractmethod
    def parameters(self, X: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the varying parameters of the predictive distribution, (n, ...) each; VAR scores the first one."""

    def mean_only(self, X: np.ndarray) -> np.ndarray:
        """Return the first parameter, the latent mean, where that is cheaper."""
        return self.parameters(X)[0]

    def family(self, X: np.ndarray, parameters: tuple[np.ndarray, ...], *, latent: bool) -> Distribution:
        """Return the predictive distribution at the rows of X, with these `parameters`."""
        mean, var = parameters
        return families.Gaussian(mean, var) if latent else self.predictive(mean, var)

    @property
    def how(self) -> str:
        return "finite differences"

    def at(self, points: Points) -> NumericResponse:
        return self.RESPONSE(self, points.X, points.inputs.sd)


class NumericReference(Numeric):
    """A model that predicts normal observations; a subclass sets `inputs` and implements `moments`.

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> class Curve(gs.NumericReference):
    ...     inputs = gs.Inputs(("a", "b"), names_given=True)
    ...
    ...     def moments(self, X):
    ...         ones = np.ones(len(X))
    ...         return np.sin(X[:, 0]) + 3 * X[:, 1], 0.0 * ones, 0.25 * ones
    >>> ranking = gs.rank(Curve(), np.random.default_rng(0).normal(size=(50, 2)))
    >>> [ranking.names[j] for j in ranking.order]
    ['b', 'a']
    """

    @abstractmethod
    def moments(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the mean, latent variance and noise variance at the rows of X, (n,) each."""

    def parameters(self, X: np.ndarray) -> tuple[np.ndarray, ...]:
        return self.moments(X)[:2]

    def family(self, X: np.ndarray, parameters: tuple[np.ndarray, ...], *, latent: bool) -> Distribution:
        mean, var = parameters
        return families.Gaussian(mean, var if latent else var + self.moments(X)[2])


def central_difference(values: Sequence[np.ndarray], h: float) -> np.ndarray:
    """Return the derivative of a function from its values at h, -h, 2h and -2h."""
    up, down, far_up, far_down = values
    return (8.0 * (up - down) - (far_up - far_down)) / (12.0 * h)


def remove_noise(total: np.ndarray, white_var: float = 0.0) -> np.ndarray:
    """Subtract the white noise from variances that a library predicts; the result is at least their rounding error.

    At a training point of a model without noise the variance is 0, and rounding may make it negative.
    """
    return np.maximum(total - white_var, np.finfo(float).eps * np.max(np.abs(total)))


# Changes by steps of at most this many standard deviations are integrals of gradients. With three nodes and a
# length-scale of l standard deviations the relative error is about (SHORT_STEP / l)^6 / 2e6, 3e-11 at l = 0.1.
SHORT_STEP = 0.02
NODES, WEIGHTS = gauss_legendre(3)


class GradientResponse(NumericResponse):
    """A response that uses gradients instead of differences."""

    _model: Differentiable

    def gradients(self) -> tuple[np.ndarray, ...]:
        return self._model.gradients(self._X)

    def step(self, j: int, delta: float) -> tuple[np.ndarray, ...]:
        if abs(delta) > SHORT_STEP * self._scale[j]:
            return super().step(j, delta)
        slopes = [self._model.gradients(self._move(j, 0.5 * (1.0 + node) * delta)) for node in NODES]
        return tuple(
            0.5 * delta * np.tensordot(WEIGHTS, [slope[..., j] for slope in along], axes=1)
            for along in zip(*slopes, strict=True)
        )


class Differentiable(Numeric):
    """A model that predicts the parameters of a distribution and their gradients."""

    RESPONSE: ClassVar[type[NumericResponse]] = GradientResponse

    @abstractmethod
    def gradients(self, X: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the derivatives of the `parameters` along each feature, (n, ..., p) each."""
