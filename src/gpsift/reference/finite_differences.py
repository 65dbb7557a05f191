r"""Models that can only predict: differences in place of derivatives.

A derivative is the central difference of fourth order,

.. math:: f'(x) = \frac{8 [f(x + h) - f(x - h)] - [f(x + 2h) - f(x - 2h)]}{12 h} + O(h^4),

with h a small share of the feature's standard deviation. It costs four predictions a feature. Predictions of Gaussian
processes carry the rounding errors of a linear solve, which a difference divides by h; the fourth order allows a step
that is a hundred times longer than the best one of second order, and so a hundred times less of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from gpsift.likelihoods import distributions as families
from gpsift.likelihoods.distributions import Distribution
from gpsift.reference.base import Reference, Response
from gpsift.reference.inputs import Points
from gpsift.reference.response import Predictive

# Of the feature's standard deviation. For a function with length-scale l standard deviations, the truncation error is
# about (STEP / l)^4 / 30 and that of rounding eps / STEP: at l = 1, 3e-14 and 2e-13.
STEP = 1e-3


class NumericResponse(Response):
    """A response from predictions alone; they are made when first asked for."""

    def __init__(self, model: Numeric, X: np.ndarray, scale: np.ndarray):
        self._model, self._X, self._scale = model, X, scale

    @cached_property
    def parameters(self) -> tuple[np.ndarray, ...]:
        """What the predictive distribution varies with, at the points."""
        return self._model.parameters(self._X)

    def distribution(self, *, latent: bool) -> Distribution:
        return self._model.family(self._X, self.parameters, latent=latent)

    @property
    def latent_mean(self) -> np.ndarray:
        return self._model.first(self._X)

    def gradients(self) -> tuple[np.ndarray, ...]:
        gradients = [np.zeros((*parameter.shape, self._scale.size)) for parameter in self.parameters]
        for j in map(int, np.flatnonzero(self._scale)):
            h = STEP * self._scale[j]
            moved = (self._model.parameters(self._moved(j, step)) for step in (h, -h, 2 * h, -2 * h))
            for gradient, *ends in zip(gradients, *moved, strict=True):
                gradient[..., j] = fourth_order(ends, h)
        return tuple(gradients)

    def step(self, j: int, delta: float) -> tuple[np.ndarray, ...]:
        moved = self._model.parameters(self._moved(j, delta))
        return tuple(there - here for there, here in zip(moved, self.parameters, strict=True))

    def section(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        together = max(1, self._model.AT_ONCE // max(1, base.size))
        return np.concatenate(
            [self._nodes(j, base, offset[k : k + together]) for k in range(0, offset.size, together)], axis=1
        )

    def _nodes(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """A section by one call."""
        X = np.repeat(self._X, offset.size, axis=0)
        X[:, j] = np.add.outer(base, offset).ravel()
        values = self._model.first(X)
        return values.reshape(base.size, offset.size, *values.shape[1:])

    def _moved(self, j: int, delta: float) -> np.ndarray:
        X = self._X.copy()
        X[:, j] += delta
        return X


class Numeric(Reference):
    """A model that predicts the parameters of a distribution and offers no derivatives.

    Attributes
    ----------
    predictive : callable
        From the parameters, where they are latent mean and variance, to the distribution of a new observation.
    AT_ONCE : int
        Up to this many points, the nodes of a section are predicted in one call. By default each node is a call: JAX
        compiles for each number of points, and others make large matrices of them.
    """

    RESPONSE: ClassVar[type[NumericResponse]] = NumericResponse
    AT_ONCE: ClassVar[int] = 1

    predictive: Predictive

    @abstractmethod
    def parameters(self, X: np.ndarray) -> tuple[np.ndarray, ...]:
        """What the predictive distribution varies with, (n, ...) each; the first one is what VAR looks at."""

    def first(self, X: np.ndarray) -> np.ndarray:
        """The first parameter alone, where that is cheaper."""
        return self.parameters(X)[0]

    def family(self, X: np.ndarray, parameters: tuple[np.ndarray, ...], *, latent: bool) -> Distribution:
        """The predictive distribution at the rows of X, where `parameters` were found."""
        mean, var = parameters
        return families.Gaussian(mean, var) if latent else self.predictive(mean, var)

    @property
    def how(self) -> str:
        return "finite differences"

    def at(self, points: Points) -> NumericResponse:
        return self.RESPONSE(self, points.X, points.inputs.sd)


class NumericReference(Numeric):
    """A model that predicts normal observations: what a subclass of a few lines needs to be ranked.

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
        """Mean, latent variance and noise variance at the rows of X, (n,) each."""

    def parameters(self, X: np.ndarray) -> tuple[np.ndarray, ...]:
        return self.moments(X)[:2]

    def family(self, X: np.ndarray, parameters: tuple[np.ndarray, ...], *, latent: bool) -> Distribution:
        mean, var = parameters
        return families.Gaussian(mean, var if latent else var + self.moments(X)[2])


def fourth_order(values: Sequence[np.ndarray], h: float) -> np.ndarray:
    """The derivative of a function from its values at h, -h, 2h and -2h."""
    up, down, far_up, far_down = values
    return (8.0 * (up - down) - (far_up - far_down)) / (12.0 * h)


def latent_var_of(total: np.ndarray, white_var: float = 0.0) -> np.ndarray:
    """Variances without the white noise that a library's predictions hold, and never below their rounding error.

    Without noise nothing is unknown at a training point, and rounding may take the variance below zero.
    """
    return np.maximum(total - white_var, np.finfo(float).eps * np.max(np.abs(total)))
