"""Tables as people have them: files in many forms, columns of many kinds, holes; made fit for a model.

`files` reads whatever a file is into a data frame, `prepare` makes that fit for a model as it is or refuses it.
"""

from gpsift.app.tables.tabular.encode import Prepared
from gpsift.app.tables.tabular.errors import Choice, TableError
from gpsift.app.tables.tabular.files import read_file, read_table
from gpsift.app.tables.tabular.prepare import prepare
from gpsift.app.tables.tabular.steps import Step, Table
from gpsift.app.tables.tabular.where import matching_rows

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
