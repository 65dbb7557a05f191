"""Submodels of the four regression sets by size (Table 1, Figure 3).

python experiments/paper/figure_3_regression.py [options of gpsift reproduce]
"""

import sys

from gpsift.app.cli import app

if __name__ == "__main__":
    for experiment in ["concrete", "housing", "automobile", "crime"]:
        app(["reproduce", experiment, *sys.argv[1:]], standalone_mode=False)
