"""This package repeats the experiments of Paananen et al. (2019), with every figure, table and claim.

`experiments.py` has the settings and the protocols on data sets and on toys, `claims.py` the rule that decides each
claim, and `figures.py` the figures. `run.py` runs an experiment for the command line.
"""

from gpsift.paper.reproduce.experiments import Settings
from gpsift.paper.reproduce.run import EXPERIMENTS, run

__all__ = ["EXPERIMENTS", "Settings", "run"]
