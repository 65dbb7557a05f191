"""Submodels of Pima by size (Figure 4).

python experiments/paper/figure_4_pima.py [options of gpsift reproduce]
"""

import sys

from gpsift.app.cli import app

if __name__ == "__main__":
    for experiment in ["pima"]:
        app(["reproduce", experiment, *sys.argv[1:]], standalone_mode=False)
