"""Measures of relevance: a reference model and points in, a score for each feature out.

`measure.py` is the contract; `kl.py` and `var.py` are the paper's two measures, `derivative.py` and `rate.py` other
people's, `ard.py` the one that the paper argues against. `rank.py` applies a measure and makes the record of
`ranking.py`, which `display.py` prints and `plots.py` draws.

`feature_groups.py` says what is scored (features, groups of them, categories), `points.py` at which rows.
`conditionals.py` is for VAR. `intervals.py` says how far the data leave scores open. Read `measure.py`, then `kl.py`.
"""

from gpsift.relevance.ard import ARD
from gpsift.relevance.derivative import Derivative
from gpsift.relevance.kl import KL
from gpsift.relevance.measure import Measure, Relevance
from gpsift.relevance.rank import get_measure, rank
from gpsift.relevance.rate import RATE
from gpsift.relevance.var import VAR

__all__ = ["ARD", "KL", "RATE", "VAR", "Derivative", "Measure", "Relevance", "get_measure", "rank"]
