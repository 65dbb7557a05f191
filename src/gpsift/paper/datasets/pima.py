"""Pima diabetes: eight measurements of women and whether diabetes was diagnosed."""

from __future__ import annotations

import numpy as np

from gpsift.paper.datasets.formats import arff_cells, comma_cells
from gpsift.paper.datasets.recipe import DEFAULT, Recipe, Table
from gpsift.paper.datasets.sources import OPENML, RawFile, Source

INPUTS = ("pregnancies", "glucose", "blood_pressure", "skin_thickness", "insulin", "bmi", "pedigree", "age")
# No living person has a zero in these: it stands for a missing value.
POSITIVE = slice(1, 6)
CLASSES = {"0": 0.0, "1": 1.0, "tested_negative": 0.0, "tested_positive": 1.0}

UCI_FILE = RawFile(
    "pima-indians-diabetes.data", comma_cells, "06f5b7c2cd7bca686fda4f92eab5f61e7ff6426a9acefa2e3dda04fc54293cf5"
)
OPENML_FILE = RawFile("diabetes.arff", arff_cells)


def diabetes_table(cells: np.ndarray, _: str) -> Table:
    """The rows in which nothing is missing."""
    unknown = sorted(set(cells[:, -1].tolist()) - CLASSES.keys())
    if unknown:
        raise ValueError(f"unknown class {unknown[0]!r}")
    inputs = cells[:, :-1].astype(float)
    values = np.column_stack([inputs, [CLASSES[label] for label in cells[:, -1].tolist()]])
    return Table((*INPUTS, "diabetes"), values[np.all(inputs[:, POSITIVE] != 0, axis=1)])


RECIPE = Recipe(
    name="pima",
    title="Pima Indians",
    prepared="pima.csv",
    files=(UCI_FILE, OPENML_FILE),
    sources=(Source(OPENML, "data/v1/download/37/diabetes.arff", OPENML_FILE),),
    table=diabetes_table,
    digests={DEFAULT: "7e4b96f7b530ef961c1f0eef93c571163d7feac461c22d6262a461ef28935bf8"},
    n_train=300,
    is_classification=True,
    citation=(
        "Smith, J. W., Everhart, J. E., Dickson, W. C., Knowler, W. C. and Johannes, R. S. (1988). Using the ADAP "
        "learning algorithm to forecast the onset of diabetes mellitus. Proceedings of the Symposium on Computer "
        "Applications and Medical Care, 261-265. National Institute of Diabetes and Digestive and Kidney Diseases."
    ),
    caveat=(
        "Health data of women of the Akimel O'odham (Pima) people, taken for a study of the illness and reused ever "
        "since for ends in which they had no say (Radin 2017, Osiris 32, 43-64). Treat any ranking as a test of "
        "software: it is no medical finding and holds for no other people."
    ),
)
