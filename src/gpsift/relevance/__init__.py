"""Measures of relevance: a reference and points in, scores out.

Each file is one measure: `kl.py` and `var.py` are the paper's two, `ard.py` is the one it argues against. `rank.py`
is the verb that applies a measure and makes the record. Read `measure.py` (the contract, ten lines), then `kl.py`.
"""

from gpsift.relevance.ard import ARD
from gpsift.relevance.kl import KL
from gpsift.relevance.measure import Measure, Relevance
from gpsift.relevance.rank import rank
from gpsift.relevance.var import VAR

__all__ = ["ARD", "KL", "VAR", "Measure", "Relevance", "rank"]
