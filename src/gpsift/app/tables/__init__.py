"""Read a table from a file, clean it, and turn it into numbers for a model.

`read_table` reads a file of any usual format into a `RawTable`. `clean` cleans it as a careful analyst does before the
first fit, and returns a `ModelTable` of inputs and target together with the list of `CleaningStep`s. `apply_recipe`
cleans new rows for a fitted model. `prepare` takes a table as it is, or refuses it. Read `clean.py` first.
"""

from gpsift.app.tables.clean import CleaningResult, clean, prepare
from gpsift.app.tables.conditions import select_rows
from gpsift.app.tables.encode import ModelTable
from gpsift.app.tables.read import read_file, read_table
from gpsift.app.tables.steps import Choice, CleaningStep, RawTable, TableError

__all__ = [
    "Choice",
    "CleaningResult",
    "CleaningStep",
    "ModelTable",
    "RawTable",
    "TableError",
    "clean",
    "prepare",
    "read_file",
    "read_table",
    "select_rows",
]
