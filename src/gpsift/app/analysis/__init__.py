"""Analyse a table: make one record of everything that the command line and the page show.

`analyse` reads a table, fits a model, ranks its columns and searches submodels; an `Analysis` has the results.
`parts.py` adds intervals, effects and tests to it; `cautions.py` finds what a reader should know; `costs.py` has limits
beyond which a part takes too long. Read `run.py` first.
"""

from gpsift.app.analysis.analysis import Analysis
from gpsift.app.analysis.options import Reading, Selection
from gpsift.app.analysis.run import analyse

__all__ = ["Analysis", "Reading", "Selection", "analyse"]
