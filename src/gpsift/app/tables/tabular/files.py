"""Reading a table from a file or standard input, whatever it is packed in and whatever form it has."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gpsift.app.findings import FindingKind
from gpsift.app.tables.tabular.formats import (
    ENDINGS,
    TEXT,
    Wanted,
    form_of,
    read_feather,
    read_parquet,
    read_sheets,
    read_sqlite,
)
from gpsift.app.tables.tabular.json_text import looks_like_json, read_json
from gpsift.app.tables.tabular.layout import (
    MISSING,
    Cell,
    Record,
    Sheet,
    column_names,
    is_empty,
    laid_out,
    told_apart,
)
from gpsift.app.tables.tabular.steps import Step, Table, refuse
from gpsift.app.tables.tabular.text import decoded, text_records
from gpsift.app.tables.tabular.unpack import ZIP, unpacked

DECIMAL_COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d+)?([eE][+-]?\d+)?")
# "2,405" may be two thousand or two and a bit. It is thousands where other cells have decimal points, such as "64.6".
GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})*")
DECIMAL_POINT = re.compile(r"[+-]?(\d*\.(\d{1,2}|\d{4,})|(0|\d{4,})\.\d+)")
# Lines in which decimal points are looked for.
LINES_LOOKED_AT = 200
STANDARD_INPUT = "standard input"


def read_file(source: str | Path) -> pd.DataFrame:
    """The table in a file, as it is: one that needs something to be done is refused. See `read_table`."""
    return read_table(source, strict=True).frame


def read_table(
    source: str | Path, *, target: str | None = None, table: str | None = None, strict: bool = False
) -> Table:
    """The table in a file, and what was done to read it; ``-`` is standard input.

    The content decides what a file is, not its name: text with any delimiter, blanks or columns of fixed width, JSON,
    Parquet, Feather, Excel, SQLite, each of them packed or not. Decimal commas are understood. Rows are counted from 1.

    Parameters
    ----------
    target : str, optional
        Of several sheets or tables, the one with this column is read.
    table : str, optional
        The sheet or table to read.
    strict : bool
        Refuse lines around the table, lines of other widths and columns of one name, in place of coping with them.
    """
    where, ending = (STANDARD_INPUT, "") if str(source) == "-" else (str(source), Path(source).suffix.lower())
    content = _content_of(source)
    if not (content.startswith(ZIP) and ENDINGS.get(ending) == "excel"):  # a damaged workbook is one, too
        content = unpacked(content, where)
    form, wanted = form_of(content, ending), Wanted(table, target)
    if form == "old excel":
        raise ValueError(f"{where} is in the old Excel format; save it as .xlsx or .csv.")
    if form == "excel":
        return _of_workbook(read_sheets(content, where), where, wanted, strict=strict)
    if form == "sqlite":
        frame, steps = read_sqlite(content, where, wanted)
        return _named(frame, where, steps, strict=strict)
    if form != TEXT:
        read = read_parquet if form == "parquet" else read_feather
        return _named(read(content, where), where, strict=strict)
    text = decoded(content, where)
    return _of_text(text, where, strict=strict)


def _content_of(source: str | Path) -> bytes:
    if str(source) == "-":
        return sys.stdin.buffer.read()
    path = Path(source)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        return path.read_bytes()
    except PermissionError:
        raise PermissionError(f"{path} may not be read: permission denied.") from None


def _of_text(text: str, where: str, *, strict: bool) -> Table:
    if not text.strip():
        raise ValueError(f"{where} is empty.")
    if looks_like_json(text):
        return _named(read_json(text, where), where, strict=strict)
    delimiter, records = text_records(text, where)
    if strict:
        _refuse_uneven(records, where, delimiter)
    sheet = laid_out(records, where)
    columns = zip(*sheet.body, strict=True)
    points = delimiter != "," and _has_decimal_points(sheet.body[:LINES_LOOKED_AT])
    frame = pd.DataFrame({j: _converted(column, delimiter, points=points) for j, column in enumerate(columns)})
    return _of_sheet(sheet, frame, where, strict=strict)


def _of_workbook(sheets: dict[str, list[Record]], where: str, wanted: Wanted, *, strict: bool) -> Table:
    if not sheets:
        raise ValueError(f"{where} has an empty first sheet.")
    laid = {name: laid_out(records, where) for name, records in sheets.items() if _is_table(records)}
    if not laid:
        raise ValueError(f"{where} has a header but no rows.")
    names = {name: column_names(sheet.header) for name, sheet in laid.items()}
    chosen = wanted.chosen(names, where, "sheets", or_first=True)
    sheet = laid[chosen]
    frame = pd.DataFrame(sheet.body).infer_objects()
    return _of_sheet(sheet, frame, where, wanted.step(chosen, len(laid), "sheets"), strict=strict)


def _is_table(records: Sequence[Record]) -> bool:
    return sum(any(not is_empty(cell) for cell in record) for record in records) > 1


def _of_sheet(sheet: Sheet, frame: pd.DataFrame, where: str, steps: Iterable[Step] = (), *, strict: bool) -> Table:
    found = _named(frame.set_axis(column_names(sheet.header), axis=1), where, (*steps, *sheet.steps), strict=strict)
    if strict:
        refuse(sheet.steps)
    return found


def _refuse_uneven(records: list[Record], where: str, delimiter: str) -> None:
    header, *body = records
    for number, record in enumerate(body, start=2):
        if len(record) != len(header):
            raise ValueError(
                f"Record {number} of {where} has {len(record)} fields but the header has {len(header)} (the delimiter "
                f"seems to be {delimiter!r})."
            )


def _has_decimal_points(body: Sequence[Record]) -> bool:
    """Whether any cell is a number with a decimal point, that cannot be one of thousands."""
    return any(isinstance(cell, str) and DECIMAL_POINT.fullmatch(cell.strip()) for record in body for cell in record)


def _converted(column: tuple[Cell, ...], delimiter: str, *, points: bool) -> np.ndarray | pd.Series[Any]:
    """Numbers where all entries are numbers, text otherwise; missing entries are None or NaN.

    With decimal points elsewhere, a column of commas before groups of three stays as it is: these are thousands.
    """
    complete = _complete_numbers(column)
    if complete is not None:
        return complete
    values = [None if cell is None or (entry := cell.strip()) in MISSING else entry for cell in column]
    numbers = _numbers(values)
    if numbers is None and delimiter != ",":
        present = [value for value in values if value is not None]
        grouped = points and all(map(GROUPED.fullmatch, present))
        if not grouped and all(map(DECIMAL_COMMA.fullmatch, present)):
            numbers = _numbers(
                [None if value is None else value.replace(".", "").replace(",", ".") for value in values]
            )
    return pd.Series(values, dtype=object) if numbers is None else pd.Series(numbers, dtype=float)


def _complete_numbers(column: tuple[Cell, ...]) -> np.ndarray | None:
    """The quick way for most columns: nothing is missing, and `float` takes spaces around a number as we do."""
    try:
        numbers = np.array(list(map(float, column)))
    except (ValueError, TypeError):
        return None
    return None if "_" in "".join(column) else numbers


def _numbers(values: list[str | None]) -> list[float] | None:
    """By Python's own reading, which is right to the last digit; None where something is no number."""
    try:
        numbers = [float("nan") if value is None else float(value) for value in values]
    except ValueError:
        return None
    # Python takes "1_000" for a number too, which in a table is a text.
    return None if any(value is not None and "_" in value for value in values) else numbers


def _named(frame: pd.DataFrame, where: str, steps: Iterable[Step] = (), *, strict: bool) -> Table:
    """With names that differ, and rows counted from 1."""
    names, made = told_apart(list(map(str, frame.columns)))
    if made and strict:
        repeated = dict.fromkeys(name for name in map(str, frame.columns) if list(frame.columns).count(name) > 1)
        raise ValueError(
            f"{where} has several columns called {', '.join(map(repr, list(repeated)[:5]))}. Give each its own name."
        )
    if frame.empty:
        raise ValueError(f"{where} has no rows.")
    new = (Step(FindingKind.NAMES_TOLD_APART, made, len(made)),) if made else ()
    counted = frame.set_axis(names, axis=1).set_axis(pd.RangeIndex(1, len(frame) + 1, name="row"))
    return Table(counted, (*steps, *new))
