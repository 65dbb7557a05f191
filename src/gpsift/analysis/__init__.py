"""From a table to an answer: everything that the command line and the page show, in one record."""

from gpsift.analysis.choices import Reading, Selection
from gpsift.analysis.record import Analysis
from gpsift.analysis.run import analyse

__all__ = ["Analysis", "Reading", "Selection", "analyse"]
