"""Answers: frozen records that print themselves, become data frames and draw themselves. One file a record."""

from gpsift.results.attribution import Attribution
from gpsift.results.comparison import Comparison
from gpsift.results.discoveries import Discoveries
from gpsift.results.effects import Curve, Effects
from gpsift.results.interactions import Interactions, Surface
from gpsift.results.path import Path
from gpsift.results.power import Power
from gpsift.results.prediction import Prediction
from gpsift.results.projection import Projection, ProjectionPath
from gpsift.results.quality import Quality, SampledQuality
from gpsift.results.ranking import Ranking
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
