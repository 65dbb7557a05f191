r"""Models that predict and offer gradients of what they predict, by whatever differentiates them, but no more.

A short step is the integral of the gradient along it,

.. math:: f(x + \delta e_j) - f(x) = \delta \int_0^1 \partial_j f(x + t \delta e_j) \, dt ,

by Gauss-Legendre quadrature, which keeps the digits that the difference of two nearly equal predictions loses.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from gpsift.reference.finite_differences import Numeric, NumericResponse

# Steps up to this many standard deviations are integrals of gradients. With three nodes and a length-scale of l
# standard deviations the error of Gauss's rule is about (SHORT / l)^6 / 2e6 of the step: 3e-11 at l = 0.1.
SHORT = 0.02
NODES, WEIGHTS = np.polynomial.legendre.leggauss(3)


class GradedResponse(NumericResponse):
    """Gradients in place of differences."""

    _model: Graded

    def gradients(self) -> tuple[np.ndarray, ...]:
        return self._model.gradients(self._X)

    def step(self, j: int, delta: float) -> tuple[np.ndarray, ...]:
        if abs(delta) > SHORT * self._scale[j]:
            return super().step(j, delta)
        slopes = [self._model.gradients(self._moved(j, 0.5 * (1.0 + node) * delta)) for node in NODES]
        return tuple(
            0.5 * delta * np.tensordot(WEIGHTS, [slope[..., j] for slope in along], axes=1)
            for along in zip(*slopes, strict=True)
        )


class Graded(Numeric):
    """A model whose predictions have gradients that somebody else computes."""

    RESPONSE: ClassVar[type[NumericResponse]] = GradedResponse

    @abstractmethod
    def gradients(self, X: np.ndarray) -> tuple[np.ndarray, ...]:
        """Derivatives of the `parameters` along each feature, (n, ..., p) each."""
