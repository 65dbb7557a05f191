"""Sensitivity of KL to its step (supplement).

python experiments/paper/supplement_steps.py [options of gpsift reproduce]
"""

import sys

from gpsift.app.cli import app

if __name__ == "__main__":
    for experiment in ["delta"]:
        app(["reproduce", experiment, *sys.argv[1:]], standalone_mode=False)
