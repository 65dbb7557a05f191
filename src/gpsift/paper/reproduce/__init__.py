"""The paper's experiments again: every figure, table and claim of Paananen et al. (2019).

`datasplits.py` is the protocol on real data, `toyruns.py` that on the toys; `claims.py` holds the rule by which each
claim is decided, `figures.py` the pictures, `run.py` the verb that the command line calls.
"""

from gpsift.paper.reproduce.experiments import Settings
from gpsift.paper.reproduce.run import EXPERIMENTS, run

__all__ = ["EXPERIMENTS", "Settings", "run"]
