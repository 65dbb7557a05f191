"""Pointwise relevances of the normal toy (Figure 6).

python experiments/paper/figure_6_pointwise.py [options of gpsift reproduce]
"""

import sys

from gpsift.app.cli import app

if __name__ == "__main__":
    for experiment in ["pointwise"]:
        app(["reproduce", experiment, *sys.argv[1:]], standalone_mode=False)
