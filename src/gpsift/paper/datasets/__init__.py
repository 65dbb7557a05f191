"""This package has data for experiments: toys whose relevant features are known, and the five data sets of the paper.

Read `load.py` first: it finds a file in a folder, in the cache or at a public source (`sources.py`). A recipe
(`paper_sets.py`) makes the table of the paper from it. `toys.py` simulates data. No data come with the package.
"""

from gpsift.paper.datasets.load import NAMES, Dataset, load
from gpsift.paper.datasets.sources import DataMismatch, DataUnavailable
from gpsift.paper.datasets.toys import Toy, friedman, paper_toy

__all__ = ["NAMES", "DataMismatch", "DataUnavailable", "Dataset", "Toy", "friedman", "load", "paper_toy"]
