"""Scores by the other way to approximate a model: where they differ, the approximation has its part in the answer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpsift.reference.base import TwoWays
from gpsift.reference.inputs import Points
from gpsift.relevance.measure import Measure
from gpsift.relevance.record_other_way import OtherScores
from gpsift.relevance.scored import ScoredUnits
from gpsift.relevance.switched import relevance_of_used


def scores_by_other_way(
    model: TwoWays,
    measure: Measure,
    points: Points,
    units: ScoredUnits,
    aggregated: Callable[[np.ndarray], np.ndarray],
) -> OtherScores | None:
    """The scores at the same points, None where the model has no other way."""
    other = model.other_way
    if other is None:
        return None
    assert isinstance(other, TwoWays)
    values = relevance_of_used(measure, other, points, units).values
    return OtherScores(other.way, model.lead, aggregated(values) if values.ndim == 2 else values)
