"""Models that predict and offer gradients of what they predict, but no more."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from gpsift.adapters.numeric import Numeric, NumericResponse
from gpsift.tables import column_sd

# Steps up to this many standard deviations are integrals of gradients. With N_NODES nodes and a length-scale of l
# standard deviations the error of Gauss's rule is about (SHORT / l)^6 / 2e6 of the step.
SHORT = 0.01
N_NODES = 3


class Graded(Numeric):
    """A model whose predictions have gradients that somebody else computes."""

    @abstractmethod
    def gradients(self, X: np.ndarray) -> tuple[np.ndarray, ...]:
        """Derivatives of the `parameters` along each feature, (n, ..., p) each."""

    def at(self, X: np.ndarray, rows: np.ndarray | None = None) -> GradedResponse:
        scale = column_sd(X if self.X_train is None else self.X_train)
        return GradedResponse(self, X if rows is None else X[rows], scale)


class GradedResponse(NumericResponse):
    """Gradients in place of differences."""

    _model: Graded

    def gradients(self) -> tuple[np.ndarray, ...]:
        return self._model.gradients(self._X)

    def step(self, j: int, delta: float) -> tuple[np.ndarray, ...]:
        # The difference of two predictions leaves only the digits that they do not share; the integral of the
        # derivative along a short step leaves all.
        if not abs(delta) <= SHORT * self._scale[j]:
            return super().step(j, delta)
        total = [np.zeros_like(parameter) for parameter in self._here]
        for node, weight in zip(*np.polynomial.legendre.leggauss(N_NODES), strict=True):
            X = self._X.copy()
            X[:, j] += 0.5 * (1.0 + node) * delta
            for change, gradient in zip(total, self._model.gradients(X), strict=True):
                change += 0.5 * weight * delta * gradient[..., j]
        return tuple(total)
