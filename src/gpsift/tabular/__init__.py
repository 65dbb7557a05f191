"""Tables as people have them: files in many forms, columns of many kinds, holes; made fit for a model."""

from gpsift.tabular.errors import Choice, TableError
from gpsift.tabular.files import read_file
from gpsift.tabular.prepare import Prepared, prepare
from gpsift.tabular.where import matching_rows

__all__ = ["Choice", "Prepared", "TableError", "matching_rows", "prepare", "read_file"]
