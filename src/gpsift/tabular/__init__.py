"""Tables as people have them: files in many forms, columns of many kinds, holes; made fit for a model.

`files` reads whatever a file is into a data frame, `prepare` makes that fit for a model as it is or refuses it.
"""

from gpsift.tabular.encode import Prepared
from gpsift.tabular.errors import Choice, TableError
from gpsift.tabular.files import read_file, read_table
from gpsift.tabular.prepare import prepare
from gpsift.tabular.steps import Step, Table
from gpsift.tabular.where import matching_rows

__all__ = [
    "Choice",
    "Prepared",
    "Step",
    "Table",
    "TableError",
    "matching_rows",
    "prepare",
    "read_file",
    "read_table",
]
