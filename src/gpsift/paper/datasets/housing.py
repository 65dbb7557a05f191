"""Boston housing: thirteen properties of census tracts and the median value of homes."""

from __future__ import annotations

import numpy as np

from gpsift.paper.datasets.formats import arff_cells, spaced_cells, statlib_cells
from gpsift.paper.datasets.recipe import DEFAULT, Recipe, Table
from gpsift.paper.datasets.sources import OPENML, STATLIB, RawFile, Source

COLUMNS = ("CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT", "MEDV")

UCI_FILE = RawFile("housing.data", spaced_cells, "baadf72995725d76efe787b664e1f083388c79ba21ef9a7990d87f774184735a")
STATLIB_FILE = RawFile("boston", statlib_cells)
OPENML_FILE = RawFile("boston.arff", arff_cells)


def value_table(cells: np.ndarray, _: str) -> Table:
    """All columns as they are."""
    return Table(COLUMNS, cells.astype(float))


RECIPE = Recipe(
    name="housing",
    title="Boston Housing",
    prepared="boston_housing.csv",
    files=(UCI_FILE, STATLIB_FILE, OPENML_FILE),
    sources=(
        Source(STATLIB, "datasets/boston", STATLIB_FILE),
        Source(OPENML, "data/v1/download/52643/boston.arff", OPENML_FILE),
    ),
    table=value_table,
    digests={DEFAULT: "62eb9529aff475cd6b4160fe53dd5441ec0e9177905c02a32a811290413df6ff"},
    n_train=300,
    citation=(
        "Harrison, D. and Rubinfeld, D. L. (1978). Hedonic prices and the demand for clean air. Journal of "
        "Environmental Economics and Management 5, 81-102. StatLib."
    ),
    caveat=(
        "Column B is a transformed share of Black residents, made on the premise that segregation raises the price "
        "of homes; scikit-learn removed the data for that reason. Treat any ranking as a test of software. MEDV is "
        "capped at 50."
    ),
)
