"""Data for examples and experiments: toys whose relevant features are known, and the five data sets of the paper.

`toys.py` makes data. `load.py` finds a data set in a folder, in the cache or at a public source (`sources.py`), and the
recipe of the set (`paper_sets.py`) makes the paper's table of it. Read `load.py` first. No data come with the package.
"""

from gpsift.paper.datasets.load import NAMES, Dataset, load
from gpsift.paper.datasets.sources import DataMismatch, DataUnavailable
from gpsift.paper.datasets.toys import Toy, friedman, paper_toy

__all__ = ["NAMES", "DataMismatch", "DataUnavailable", "Dataset", "Toy", "friedman", "load", "paper_toy"]
