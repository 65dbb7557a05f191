"""This module has ARD, "automatic relevance determination", which scores features by their length-scales."""

from __future__ import annotations

from dataclasses import dataclass

from gpsift.reference.base import MissingCapability, Reference
from gpsift.reference.inputs import Points
from gpsift.relevance.feature_groups import Units, feature_scale
from gpsift.relevance.measure import RateMeasure, Relevance


@dataclass(frozen=True)
class ARD(RateMeasure):
    """The inverse length-scale of each feature, for comparison: the paper argues against this measure.

    A short length-scale says that the function bends quickly along a feature, not that the feature matters. ARD
    overrates nonlinear features, and length-scales are only weakly identified by the data. Prefer `KL` or `VAR`.

    Parameters
    ----------
    units : {"sd", "raw"}
        Scores per standard deviation of the feature, or per unit of it.
    """

    units: Units = "sd"

    @property
    def is_of_function(self) -> bool:
        return False

    def relevance(self, reference: Reference, points: Points) -> Relevance:
        lengthscale = reference.lengthscale
        if lengthscale is None:
            raise MissingCapability(
                f"ARD needs one length-scale for each feature, which {type(reference).__name__} does not have (a "
                "kernel with a shared length-scale, several radial terms or none). Use KL() or VAR()."
            )
        return Relevance(feature_scale(points, self.units) / lengthscale, self.per_unit)
