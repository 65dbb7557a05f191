r"""How well a conditional describes a feature: how much of it the others explain, and whether the rest is as expected.

With o_i the place of row i on the axis of a feature, and m_i and v_i the mean and the variance of the places that its
conditional allows,

.. math:: \text{explained} = 1 - \sum_i (o_i - m_i)^2 / \sum_i (o_i - \bar o)^2 , \qquad
          \text{calibration} = \sum_i (o_i - m_i)^2 / \sum_i v_i .

Places are normal scores of a column of many values, indicators of levels, and values of columns that are moved together
in standard deviations; over several coordinates squares are summed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpsift.selection.conditional_test.axes import Axis, Redraws

# A column with a smaller share of its variance left is decided by the others, and nothing is left to be calibrated.
LEAST_LEFT = 1e-9


class Adequacy(NamedTuple):
    """The share of a feature that the others explain, and squared deviations over those expected, 1 if right."""

    explained: float
    calibration: float


def adequacy(axis: Axis, redraws: Redraws) -> Adequacy:
    """Of a conditional, at all rows; of a feature that the others decide, or that is constant, 1 and 1."""
    mean, covariance = redraws.moments(axis.coordinates)
    here = axis.places
    total = float(np.sum((here - here.mean(axis=0)) ** 2))
    left, expected = float(np.sum((here - mean) ** 2)), float(np.einsum("icc->", covariance))
    if max(left, expected) <= LEAST_LEFT * max(total, 1.0):
        return Adequacy(1.0, 1.0)
    return Adequacy(1.0 - left / total if total > 0 else 1.0, left / max(expected, LEAST_LEFT * max(total, 1.0)))
