"""Measures of relevance: a reference and points in, scores out.

Each file is one measure: `kl.py` and `var.py` are the paper's two, `derivative.py` and `rate.py` are other people's,
`ard.py` is the one that the paper argues against. `rank.py` is the verb that applies a measure and makes the record;
`named.py` reads measures that are given by name, `points.py` where to look, `scored.py` what is scored: features,
groups of them (`groups.py`) and categories (`categories.py`, `training_levels.py`). `everywhere.py` sums over rows that
live elsewhere, `conditionals.py` is for VAR, `intervals.py` and `more_draws.py` say how far the data leave scores open.
Read `measure.py` (the contract), then `kl.py`.
"""

from gpsift.relevance.ard import ARD
from gpsift.relevance.derivative import Derivative
from gpsift.relevance.kl import KL
from gpsift.relevance.measure import Measure, Relevance
from gpsift.relevance.rank import get_measure, rank
from gpsift.relevance.rate import RATE
from gpsift.relevance.var import VAR

__all__ = ["ARD", "KL", "RATE", "VAR", "Derivative", "Measure", "Relevance", "get_measure", "rank"]
