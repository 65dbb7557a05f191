"""Reading a table from a file: CSV with its dialect found, Parquet, Excel, or standard input."""

from __future__ import annotations

import codecs
import csv
import io
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

DELIMITERS = (",", ";", "\t", "|")
# Lines from which the delimiter is found.
SAMPLE_LINES = 50
MOST_LINES = 0.8
ENCODINGS = ("utf-8-sig", "cp1252")
BYTE_ORDER_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
MISSING = frozenset({"", "?", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "null", "NULL", "None", "#N/A"})
DECIMAL_COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d+)?([eE][+-]?\d+)?")


def read_file(source: str | Path) -> pd.DataFrame:
    """The table in a file, by its ending: ``.parquet``, ``.xlsx``, or text (``.csv``, ...); ``-`` is standard input.

    The delimiter of a text file is found among comma, semicolon, tab and bar, and numbers with a decimal comma are
    understood. Names of columns must differ. The rows are counted from 1, below the header.
    """
    if str(source) == "-":
        return _parse_text(_decoded(sys.stdin.buffer.read(), "standard input"), "standard input")
    path = Path(source)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        return _read_path(path)
    except PermissionError:
        raise PermissionError(f"{path} may not be read: permission denied.") from None


def _read_path(path: Path) -> pd.DataFrame:
    ending = path.suffix.lower()
    if ending in (".parquet", ".pq"):
        return _checked(_read_with("pyarrow", "Parquet", pd.read_parquet, path), str(path))
    if ending in (".xlsx", ".xlsm"):
        return _checked(_read_excel(path), str(path))
    if ending == ".xls":
        raise ValueError(f"{path} is in the old Excel format; save it as .xlsx or .csv.")
    return _parse_text(_decoded(path.read_bytes(), str(path)), str(path))


def _read_with(library: str, kind: str, read: Callable[..., Any], path: Path, **options: Any) -> pd.DataFrame:
    try:
        return read(path, **options)
    except ImportError as error:
        raise ImportError(
            f"{kind} files are read with {library}: pip install {library}, or save the table as CSV. ({error})"
        ) from None
    # pyarrow's own errors, whose classes are not importable without it, and whatever meets a damaged archive first
    except Exception as error:
        raise ValueError(f"{path} could not be read as {kind}: {error}") from error


def _read_excel(path: Path) -> pd.DataFrame:
    sheet = _read_with("openpyxl", "Excel", pd.read_excel, path, header=None)
    if sheet.empty:
        raise ValueError(f"{path} has an empty first sheet.")
    # The header is read as a row of its own: pandas would rename columns that have the same name.
    frame = sheet.iloc[1:].reset_index(drop=True).infer_objects()
    frame.columns = _names([("" if pd.isna(cell) else str(cell)) for cell in sheet.iloc[0]])
    return frame


def _decoded(content: bytes, where: str) -> str:
    if content[:2] in BYTE_ORDER_MARKS:
        try:
            return content.decode(BYTE_ORDER_MARKS[content[:2]])
        except UnicodeDecodeError:
            raise ValueError(f"{where} begins like UTF-16 text, but is damaged or cut off.") from None
    if b"\x00" in content[:4096]:
        raise ValueError(
            f"{where} is no text: it holds zero bytes. Known formats are CSV, Parquet (.parquet) and Excel (.xlsx)."
        )
    for encoding in ENCODINGS:
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise ValueError(f"{where} is neither UTF-8 nor Windows-1252 text; save it as UTF-8.")


def _parse_text(text: str, where: str) -> pd.DataFrame:
    if not text.strip():
        raise ValueError(f"{where} is empty.")
    try:
        delimiter = find_delimiter(text)
        read = list(csv.reader(io.StringIO(text, newline=None), delimiter=delimiter))
    except csv.Error as error:
        raise ValueError(f"{where} could not be read as a table in text: {error}.") from None
    records = [record for record in read if len(record) > 1 or "".join(record).strip()]
    header, body = [name.strip() for name in records[0]], records[1:]
    if not body:
        raise ValueError(f"{where} has a header but no rows.")
    for number, record in enumerate(body, start=2):
        if len(record) != len(header):
            raise ValueError(
                f"Record {number} of {where} has {len(record)} fields but the header has {len(header)} (the delimiter "
                f"seems to be {delimiter!r})."
            )
    columns = list(zip(*body, strict=True))
    frame = pd.DataFrame({j: _converted(column, delimiter) for j, column in enumerate(columns)})
    frame.columns = _names(header)
    return _checked(frame, where)


def find_delimiter(text: str) -> str:
    """The delimiter that cuts the header and most of the first lines into as many fields, the largest such number."""
    sample = "\n".join(text.splitlines()[:SAMPLE_LINES])
    best, most = ",", 1
    for delimiter in DELIMITERS:
        widths = [len(record) for record in csv.reader(io.StringIO(sample), delimiter=delimiter) if record]
        if widths[0] > most and widths.count(widths[0]) >= MOST_LINES * len(widths):
            best, most = delimiter, widths[0]
    return best


def _converted(column: tuple[str, ...], delimiter: str) -> np.ndarray | pd.Series[Any]:
    """Numbers where all entries are numbers, text otherwise; missing entries are None or NaN."""
    complete = _complete_numbers(column)
    if complete is not None:
        return complete
    values = [None if (entry := cell.strip()) in MISSING else entry for cell in column]
    numbers = _numbers(values)
    if numbers is None and delimiter != ",":
        present = (value for value in values if value is not None)
        if all(DECIMAL_COMMA.fullmatch(value) for value in present):
            numbers = _numbers(
                [None if value is None else value.replace(".", "").replace(",", ".") for value in values]
            )
    return pd.Series(values, dtype=object) if numbers is None else pd.Series(numbers, dtype=float)


def _complete_numbers(column: tuple[str, ...]) -> np.ndarray | None:
    """The quick way for most columns: nothing is missing, and `float` takes spaces around a number as we do."""
    try:
        numbers = np.array(list(map(float, column)))
    except ValueError:
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


def _names(header: list[str]) -> list[str]:
    return [name.strip() or f"column {number}" for number, name in enumerate(header, start=1)]


def _checked(frame: pd.DataFrame, where: str) -> pd.DataFrame:
    frame = frame.rename(columns=str)
    repeated = [name for name, count in Counter(frame.columns).items() if count > 1]
    if repeated:
        raise ValueError(
            f"{where} has several columns called {', '.join(map(repr, repeated[:5]))}. Give each its own name."
        )
    if frame.empty:
        raise ValueError(f"{where} has no rows.")
    return frame.set_axis(pd.RangeIndex(1, len(frame) + 1, name="row"))
