"""How the cost of the measures grows.

python experiments/paper/cost.py [options of gpsift reproduce]
"""

import sys

from gpsift.app.cli import app

if __name__ == "__main__":
    for experiment in ["cost"]:
        app(["reproduce", experiment, *sys.argv[1:]], standalone_mode=False)
