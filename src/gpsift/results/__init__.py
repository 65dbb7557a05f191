"""Answers: frozen records that print themselves, become data frames and draw themselves. One file a record."""

from gpsift.results.prediction import Prediction
from gpsift.results.quality import Quality
from gpsift.results.ranking import Ranking

__all__ = ["Prediction", "Quality", "Ranking"]
