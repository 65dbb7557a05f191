"""Answers: frozen records that print themselves, become data frames and draw themselves. One file a record."""

from typing import TYPE_CHECKING

from gpsift.on_demand import on_demand
from gpsift.results.prediction import Prediction
from gpsift.results.quality import Quality, SampledQuality
from gpsift.results.ranking import Ranking

if TYPE_CHECKING:
    from gpsift.results.attribution import Attribution
    from gpsift.results.comparison import Comparison
    from gpsift.results.discoveries import Discoveries
    from gpsift.results.effects import Curve, Effects
    from gpsift.results.interactions import Interactions, Surface
    from gpsift.results.path import Path
    from gpsift.results.power import Power
    from gpsift.results.projection import Projection, ProjectionPath
    from gpsift.results.stability import Stability
    from gpsift.results.suggestion import Baseline, Suggestion, Verdict
    from gpsift.results.variance_shares import VarianceShares

__all__ = [
    "Attribution",
    "Baseline",
    "Comparison",
    "Curve",
    "Discoveries",
    "Effects",
    "Interactions",
    "Path",
    "Power",
    "Prediction",
    "Projection",
    "ProjectionPath",
    "Quality",
    "Ranking",
    "SampledQuality",
    "Stability",
    "Suggestion",
    "Surface",
    "VarianceShares",
    "Verdict",
]

if not TYPE_CHECKING:  # the other records when they are made, or asked for
    __getattr__, __dir__ = on_demand(
        __name__,
        {
            "Attribution": "gpsift.results.attribution",
            "Baseline": "gpsift.results.suggestion",
            "Comparison": "gpsift.results.comparison",
            "Curve": "gpsift.results.effects",
            "Discoveries": "gpsift.results.discoveries",
            "Effects": "gpsift.results.effects",
            "Interactions": "gpsift.results.interactions",
            "Path": "gpsift.results.path",
            "Power": "gpsift.results.power",
            "Projection": "gpsift.results.projection",
            "ProjectionPath": "gpsift.results.projection",
            "Stability": "gpsift.results.stability",
            "Suggestion": "gpsift.results.suggestion",
            "Surface": "gpsift.results.interactions",
            "VarianceShares": "gpsift.results.variance_shares",
            "Verdict": "gpsift.results.suggestion",
        },
    )
