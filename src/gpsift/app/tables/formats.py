"""Detect the format of a file by its first bytes, and read Parquet, Feather, Excel, SQLite and JSON."""

from __future__ import annotations

import io
import json
import sqlite3
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from gpsift._utils.text import join_names
from gpsift.app.findings import FindingKind
from gpsift.app.tables.layout import Record
from gpsift.app.tables.steps import CleaningStep

FIRST_BYTES: Mapping[bytes, str] = {
    b"PAR1": "parquet",
    b"ARROW1": "feather",
    b"FEA1": "feather",
    b"SQLite format 3\x00": "sqlite",
    b"\xd0\xcf\x11\xe0": "old excel",
}
# The end of the file's name decides if the content is of no known format.
FORMAT_OF_SUFFIX: Mapping[str, str] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".xls": "old excel",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".db": "sqlite",
}
TEXT = "text"
# A workbook is a zip archive with this folder.
WORKBOOK = "xl/"


@dataclass(frozen=True)
class SheetChoice:
    """The table or sheet to read from a file with several: the one called `table`, or one with the column `target`."""

    table: str | None = None
    target: str | None = None

    def pick(self, columns: Mapping[str, list[str]], source: str, what: str, *, or_first: bool = False) -> str:
        """Return the name of the table to read, given the columns of each.

        If several fit, take the first one (`or_first`), or raise an error.
        """
        names = list(columns)
        if not names:
            raise ValueError(f"{source} has no {what}.")
        if self.table is not None:
            if self.table not in names:
                raise ValueError(f"{source} has no {what[:-1]} {self.table!r}; there are {join_names(names)}.")
            return self.table
        holding = [name for name in names if self.target in columns[name]]
        if len(names) == 1 or len(holding) == 1 or or_first:
            return (holding or names)[0]
        having = f"several have a column {self.target!r}" if holding else f"none has a column {self.target!r}"
        raise ValueError(f"{source} has the {what} {join_names(names)}, and {having}. Name one: `table`.")

    def step(self, name: str, n: int, what: str) -> tuple[CleaningStep, ...]:
        """Return the step that names the picked table, if there are several and the user named none."""
        if n == 1 or self.table is not None:
            return ()
        return (CleaningStep(FindingKind.PART_CHOSEN, count=n, detail={"what": what, "name": name}),)


def detect_format(content: bytes, ending: str) -> str:
    """Return the format of a file by its content, or else by the end of its name; text if both are unknown."""
    for first, file_format in FIRST_BYTES.items():
        if content.startswith(first):
            return file_format
    if content.startswith(b"PK") and is_workbook(content):
        return "excel"
    return FORMAT_OF_SUFFIX.get(ending, TEXT)


def is_workbook(content: bytes) -> bool:
    """Return whether a zip archive is an Excel file."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return any(name.startswith(WORKBOOK) for name in archive.namelist())
    except zipfile.BadZipFile:
        return False


def read_frame(file_format: str, content: bytes, source: str) -> pd.DataFrame:
    """Read a Parquet or Feather file."""
    read = pd.read_parquet if file_format == "parquet" else pd.read_feather
    return _read_with("pyarrow", file_format.capitalize(), read, content, source)


def read_sheets(content: bytes, source: str) -> dict[str, list[Record]]:
    """Read the cells of each sheet of a workbook, line by line, except of empty sheets."""
    sheets = _read_with("openpyxl", "Excel", pd.read_excel, content, source, header=None, sheet_name=None)
    return {str(name): frame.to_numpy(dtype=object).tolist() for name, frame in sheets.items() if not frame.empty}


def read_sqlite(content: bytes, source: str, choice: SheetChoice) -> tuple[pd.DataFrame, tuple[CleaningStep, ...]]:
    """Read a table or view of an SQLite database."""
    try:
        connection = sqlite3.connect(":memory:")
        connection.deserialize(content)
        query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
        names = [name for (name,) in connection.execute(query)]
        columns = {
            name: [row[1] for row in connection.execute(f"PRAGMA table_info({_quoted(name)})")] for name in names
        }
        name = choice.pick(columns, source, "tables")
        frame = pd.read_sql_query(f"SELECT * FROM {_quoted(name)}", connection)
    except (sqlite3.Error, pd.errors.DatabaseError) as error:
        raise ValueError(f"{source} could not be read as SQLite: {error}.") from None
    finally:
        connection.close()
    return frame, choice.step(name, len(names), "tables")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _read_with(library: str, kind: str, read: Callable[..., Any], content: bytes, source: str, **options: Any) -> Any:
    try:
        return read(io.BytesIO(content), **options)
    except ImportError as error:
        raise ImportError(
            f"{kind} files are read with {library}: pip install {library}, or save the table as CSV. ({error})"
        ) from None
    # The classes of pyarrow's errors cannot be imported without pyarrow; a damaged archive raises still other classes.
    except Exception as error:
        raise ValueError(f"{source} could not be read as {kind}: {error}") from error


def looks_like_json(text: str) -> bool:
    """Return whether a text begins like JSON: with an object, or with a list of objects or lists."""
    start = text.lstrip("\ufeff \t\r\n")[:200]
    return start.startswith("{") or (start.startswith("[") and start[1:].lstrip()[:1] in ("{", "["))


def read_json(text: str, source: str) -> pd.DataFrame:
    """Read a table in JSON: a list of records, columns by name, one record on each line, or a list inside an object.

    Objects inside cells become columns such as "place.lat"; lists inside cells become texts.
    """
    try:
        found = _parse_json(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{source} begins like JSON, but could not be read as such: {error}.") from None
    frame = _frame_from_json(found)
    if frame is None:
        raise ValueError(f"{source} is JSON, but no table: a list of records, or columns by name, is needed.")
    return frame.map(lambda cell: json.dumps(cell) if isinstance(cell, list | dict) else cell)


def _parse_json(text: str) -> Any:
    """Parse one JSON value, or one value on each line."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2:
            raise
        return [json.loads(line) for line in lines]


def _frame_from_json(found: Any) -> pd.DataFrame | None:
    if isinstance(found, list) and found:
        if all(isinstance(each, dict) for each in found):
            return pd.json_normalize(found)
        if all(isinstance(each, list) for each in found) and len(found) > 1:
            return pd.DataFrame(found[1:], columns=list(map(str, found[0])))
        return None
    if not isinstance(found, dict):
        return None
    if {"columns", "data"} <= set(found):
        return pd.DataFrame(found["data"], columns=found["columns"])
    if found and all(isinstance(each, list | dict) for each in found.values()) and _are_columns(found):
        return pd.DataFrame(found).reset_index(drop=True)
    inner = [
        framed for each in found.values() if isinstance(each, list) and (framed := _frame_from_json(each)) is not None
    ]
    return inner[0] if len(inner) == 1 else None


def _are_columns(found: dict[str, Any]) -> bool:
    """Return whether all values are columns: lists or objects of equal length, without nested objects or lists."""
    sizes = {len(each) for each in found.values()}
    cells = (cell for each in found.values() for cell in (each.values() if isinstance(each, dict) else each))
    return len(sizes) == 1 and not any(isinstance(cell, dict | list) for cell in cells)
