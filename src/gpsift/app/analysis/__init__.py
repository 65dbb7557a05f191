"""From a table to an answer: everything that the command line and the page show, in one record."""

from gpsift.app.analysis.analysis import Analysis
from gpsift.app.analysis.options import Reading, Selection
from gpsift.app.analysis.run import analyse

__all__ = ["Analysis", "Reading", "Selection", "analyse"]
