"""Variability of the rankings (Figure 5, and the supplement's ranks).

python experiments/paper/figure_5_variability.py [options of gpsift reproduce]
"""

import sys

from gpsift.app.cli import app

if __name__ == "__main__":
    for experiment in ["variability"]:
        app(["reproduce", experiment, *sys.argv[1:]], standalone_mode=False)
