r"""A test of whether the target depends on a feature, given all others, on rows that a model has not seen.

With m the prediction of a model that was fitted to other rows, and with x~ the row whose feature has been drawn anew
from its conditional distribution given the others, let

.. math:: \bar m_i = E\, m(\tilde x_i), \qquad V_i = \mathrm{Var}\, m(\tilde x_i), \qquad d_i = m(x_i) - \bar m_i ,

and r_i = y_i - \bar m_i, or any other number that y and the other features decide (for other likelihoods the slope of
the log density at \bar m_i). If y does not depend on the feature given the others, then given y and the others

.. math:: T = \sum_i r_i d_i

has mean 0 and variance \sum_i r_i^2 V_i, *whatever the model is*: only the conditional distribution has to be right.
Divided by the larger of this standard deviation and that of the observed products, \sum_i r_i^2 d_i^2, it is at most
standard normal; large values speak for the feature.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr


@dataclass(frozen=True)
class Sums:
    """Over rows: products of residual and deviation, their variance given the conditional, and their squares."""

    products: float = 0.0
    variance: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, residual: np.ndarray, deviation: np.ndarray, covariance: np.ndarray) -> Sums:
        """From residuals and deviations (n, c) of c predictions of each row, and the covariance (n, c, c) of these."""
        product = np.sum(residual * deviation, axis=1)
        variance = np.einsum("ic,icd,id->", residual, covariance, residual)
        return cls(float(product.sum()), float(variance), float(product @ product))

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.products + other.products, self.variance + other.variance, self.squares + other.squares)

    @property
    def z(self) -> float:
        """In standard deviations; minus infinity where no model reacts to the feature."""
        largest = max(self.variance, self.squares)
        return self.products / float(np.sqrt(largest)) if largest > 0 else -np.inf

    @property
    def p(self) -> float:
        """The probability of a value as large where the feature does not matter."""
        return float(ndtr(-self.z))
