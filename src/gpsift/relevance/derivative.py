r"""This module scores features by the mean square, or the mean absolute value, of the slope along each.

.. math:: \nu_j = \mathrm{mean}_i \, (s_j \, \partial m(x_i) / \partial x_j)^2, \qquad
          \mu^*_j = \mathrm{mean}_i \, |s_j \, \partial m(x_i) / \partial x_j|

with m the latent mean and s_j the standard deviation of the feature, or 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from gpsift.reference.base import MissingCapability, Reference
from gpsift.reference.inputs import Points
from gpsift.relevance.feature_groups import Groups, Units, feature_scale, sum_over_groups
from gpsift.relevance.measure import RateMeasure, Relevance

Kind = Literal["squared", "absolute"]


@dataclass(frozen=True)
class Derivative(RateMeasure):
    """The slope of the latent mean along a feature, squared (DGSM, the default) or absolute.

    It does not depend on the uncertainty of predictions, nor on changes of that; `KL` does. Compare the root of squared
    scores with KL and with absolute scores.

    Parameters
    ----------
    kind : {"squared", "absolute"}
        Mean squared slope, the derivative-based global sensitivity measure. For independent normal features, per
        standard deviation, it bounds the variance that a feature takes part in (its total Sobol index times the
        variance of the function). Or mean absolute slope, which single steep points move less.
    units : {"sd", "raw"}
        Slopes per standard deviation of the feature, or per unit of it.

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=60)
    >>> ranking = gs.rank(gs.GP().fit(X, y), X, measure=gs.Derivative())
    >>> ranking.names[ranking.order[0]]
    'x1'

    References
    ----------
    Sobol and Kucherenko (2009), "Derivative based global sensitivity measures and their link with global sensitivity
    indices", Mathematics and Computers in Simulation 79. The absolute kind is the limit of small steps of the mu* of
    Campolongo, Cariboni and Saltelli (2007).
    """

    kind: Kind = "squared"
    units: Units = "sd"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind not in get_args(Kind):
            raise ValueError(f'`kind` must be "squared" or "absolute", got {self.kind!r}.')

    def relevance(self, reference: Reference, points: Points) -> Relevance:
        slope = mean_gradient(reference, points) * feature_scale(points, self.units)
        return Relevance(slope**2 if self.kind == "squared" else np.abs(slope), self._units_of(reference))

    def group_relevance(self, reference: Reference, points: Points, groups: Groups) -> Relevance:
        directions = self.directions(points, groups)
        slopes = mean_gradient(reference, points) @ directions
        squares = sum_over_groups(slopes**2, groups)
        return Relevance(squares if self.kind == "squared" else np.sqrt(squares), self._units_of(reference))

    def _units_of(self, reference: Reference) -> str:
        if self.kind == "absolute":
            return f"in units of {reference.mean_of} {self.per_unit}"
        return f"in units of {reference.mean_of} {self.per_unit}, squared"


def mean_gradient(reference: Reference, points: Points) -> np.ndarray:
    """Return the slopes of the latent mean, the first parameter of a model's predictions, (n, p)."""
    gradient = reference.at(points).gradients()[0]
    if gradient.ndim != 2:
        raise MissingCapability(
            f"Derivative needs one function with a slope, but {type(reference).__name__} predicts several outputs at a "
            "point. Use KL()."
        )
    return gradient
