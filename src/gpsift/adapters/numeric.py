r"""Models that can only predict: differences in place of derivatives.

A derivative is the central difference of fourth order,

.. math:: f'(x) = \frac{8 [f(x + h) - f(x - h)] - [f(x + 2h) - f(x - 2h)]}{12 h} + O(h^4),

with h a small share of the feature's standard deviation. It costs four predictions a feature. Predictions of Gaussian
processes carry the rounding errors of a linear solve, which a difference divides by h; the fourth order allows a step
that is a hundred times longer than the best one of second order, and so a hundred times less of them.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from gpsift.adapters.foreign import Foreign
from gpsift.families import Family
from gpsift.tables import column_sd

# Of the feature's standard deviation. For a function with length-scale l standard deviations, the truncation error is
# about (STEP / l)^4 / 30 and that of rounding eps / STEP: at l = 1, 3e-14 and 2e-13.
STEP = 1e-3


class Numeric(Foreign):
    """A model that predicts the parameters of a distribution and offers no derivatives."""

    @abstractmethod
    def parameters(self, X: np.ndarray) -> tuple[np.ndarray, ...]:
        """What the predictive distribution varies with, (n, ...) each; the first one is what VAR looks at."""

    @abstractmethod
    def family(self, X: np.ndarray, parameters: tuple[np.ndarray, ...], *, latent: bool) -> Family:
        """The predictive distribution at the rows of X, where `parameters` were found."""

    def mean(self, X: np.ndarray) -> np.ndarray:
        """The first parameter alone, where that is cheaper."""
        return self.parameters(X)[0]

    def at(self, X: np.ndarray, rows: np.ndarray | None = None) -> NumericResponse:
        scale = column_sd(X if self.X_train is None else self.X_train)
        return NumericResponse(self, X if rows is None else X[rows], scale)


class NumericResponse:
    """A response from predictions alone."""

    def __init__(self, model: Numeric, X: np.ndarray, scale: np.ndarray):
        self._model, self._X, self._scale = model, X, scale
        self._here = model.parameters(X)

    def distribution(self, *, latent: bool) -> Family:
        return self._model.family(self._X, self._here, latent=latent)

    def gradients(self) -> tuple[np.ndarray, ...]:
        gradients = [np.zeros((*parameter.shape, self._scale.size)) for parameter in self._here]
        for j in map(int, np.flatnonzero(self._scale)):
            h = STEP * self._scale[j]
            up, down, twice_up, twice_down = (self._moved(j, step) for step in (h, -h, 2 * h, -2 * h))
            for k, gradient in enumerate(gradients):
                gradient[..., j] = (8.0 * (up[k] - down[k]) - (twice_up[k] - twice_down[k])) / (12.0 * h)
        return tuple(gradients)

    def step(self, j: int, delta: float) -> tuple[np.ndarray, ...]:
        return tuple(moved - here for moved, here in zip(self._moved(j, delta), self._here, strict=True))

    def section(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        X = self._X.copy()
        columns = []
        for move in offset:
            X[:, j] = base + move
            columns.append(self._model.mean(X))
        return np.stack(columns, axis=1)

    def _moved(self, j: int, delta: float) -> tuple[np.ndarray, ...]:
        X = self._X.copy()
        X[:, j] += delta
        return self._model.parameters(X)
