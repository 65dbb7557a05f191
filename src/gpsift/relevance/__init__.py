"""This package has the measures of relevance, which score each feature of a model at points, and rankings by them.

`measure.py` defines the interface; `kl.py` and `var.py` are the paper's two measures, `derivative.py` and `rate.py` are
by other authors, and `ard.py` is the one that the paper argues against. `rank.py` applies a measure and returns a
`Ranking` (`ranking.py`), which `display.py` prints and `plots.py` draws.

`feature_groups.py` reads what is scored (features, groups, categories), `points.py` the rows. `conditionals.py` is for
VAR. `intervals.py` computes the uncertainty of scores. Read `measure.py`, then `kl.py`.
"""

from gpsift.relevance.ard import ARD
from gpsift.relevance.derivative import Derivative
from gpsift.relevance.kl import KL
from gpsift.relevance.measure import Measure, Relevance
from gpsift.relevance.rank import get_measure, rank
from gpsift.relevance.rate import RATE
from gpsift.relevance.var import VAR

__all__ = ["ARD", "KL", "RATE", "VAR", "Derivative", "Measure", "Relevance", "get_measure", "rank"]
