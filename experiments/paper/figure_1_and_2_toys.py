"""The toy functions (Figure 1) and the relevances on the toys (Figure 2, and the supplement's with 50 features).

python experiments/paper/figure_1_and_2_toys.py [options of gpsift reproduce]
"""

import sys

from gpsift.app.cli import app

if __name__ == "__main__":
    for experiment in ["toy"]:
        app(["reproduce", experiment, *sys.argv[1:]], standalone_mode=False)
