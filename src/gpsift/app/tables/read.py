"""Read a table from a file or from standard input, in any usual format, compressed or not.

The content of a file decides on its format; its name decides only if the content does not. `formats.py` reads formats
other than plain text, and `layout.py` finds the table in lines of cells.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gpsift.app.tables.columns import COMMA_DIGITS
from gpsift.app.tables.formats import (
    FORMAT_OF_SUFFIX,
    TEXT,
    SheetChoice,
    detect_format,
    is_workbook,
    looks_like_json,
    read_frame,
    read_json,
    read_sheets,
    read_sqlite,
)
from gpsift.app.tables.layout import (
    MISSING,
    Cell,
    Record,
    TableLayout,
    column_names,
    find_table,
    is_empty,
    rename_repeated,
    text_records,
)
from gpsift.app.tables.steps import CleaningStep, RawTable, raise_if_strict

DECIMAL_COMMA = re.compile(rf"[+-]?{COMMA_DIGITS}([eE][+-]?\d+)?")
# "2,405" may be 2405 or 2.405. It is 2405 if other cells have decimal points, such as "64.6".
GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})*")
DECIMAL_POINT = re.compile(r"[+-]?(\d*\.(\d{1,2}|\d{4,})|(0|\d{4,})\.\d+)")
# Decimal points are searched for in this many lines.
DECIMAL_SAMPLE_LINES = 200
COMPRESSIONS: Mapping[bytes, tuple[str, Callable[[bytes], bytes]]] = {
    b"\x1f\x8b": ("gzip", gzip.decompress),
    b"BZh": ("bzip2", bz2.decompress),
    b"\xfd7zXZ\x00": ("xz", lzma.decompress),
}
ZIP = b"PK\x03\x04"
ZSTANDARD = b"\x28\xb5\x2f\xfd"
ENCODINGS = ("utf-8-sig", "cp1252")
BYTE_ORDER_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
STANDARD_INPUT = "standard input"


def read_file(source: str | Path) -> pd.DataFrame:
    """Read a table that needs no change; otherwise raise an error."""
    return read_table(source, strict=True).frame


def read_table(
    source: str | Path, *, target: str | None = None, table: str | None = None, strict: bool = False
) -> RawTable:
    """Read the table in a file, with the steps that this took; ``-`` is standard input.

    Formats are text with any delimiter, blanks or columns of fixed width, JSON, Parquet, Feather, Excel and SQLite,
    each of them compressed or not. Decimal commas are understood. Rows are counted from 1.

    Of a file with several tables or sheets, the one called `table` is read, or else the one with the column `target`.
    If `strict`, lines around the table, lines of different length and repeated names of columns are errors.
    """
    name, ending = (STANDARD_INPUT, "") if str(source) == "-" else (str(source), Path(source).suffix.lower())
    content = sys.stdin.buffer.read() if str(source) == "-" else _read_bytes(Path(source))
    if not (content.startswith(ZIP) and FORMAT_OF_SUFFIX.get(ending) == "excel"):  # a workbook is a zip archive itself
        content = decompress(content, name)
    file_format, choice = detect_format(content, ending), SheetChoice(table, target)
    if file_format == "old excel":
        raise ValueError(f"{name} is in the old Excel format; save it as .xlsx or .csv.")
    if file_format == "excel":
        return _parse_workbook(read_sheets(content, name), name, choice, strict=strict)
    if file_format == "sqlite":
        frame, steps = read_sqlite(content, name, choice)
        return _make_raw_table(frame, name, steps, strict=strict)
    if file_format != TEXT:
        return _make_raw_table(read_frame(file_format, content, name), name, strict=strict)
    return _parse_text(decode(content, name), name, strict=strict)


def _read_bytes(path: Path) -> bytes:
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        return path.read_bytes()
    except PermissionError:
        raise PermissionError(f"{path} may not be read: permission denied.") from None


def _parse_text(text: str, source: str, *, strict: bool) -> RawTable:
    if not text.strip():
        raise ValueError(f"{source} is empty.")
    if looks_like_json(text):
        return _make_raw_table(read_json(text, source), source, strict=strict)
    delimiter, records = text_records(text, source)
    for number, record in enumerate(records if strict else [], start=1):
        if len(record) != len(records[0]):
            raise ValueError(
                f"Record {number} of {source} has {len(record)} fields but the header has {len(records[0])} (the "
                f"delimiter seems to be {delimiter!r})."
            )
    layout = find_table(records, source)
    columns = zip(*layout.body, strict=True)
    # Whether the point of some cell must be a decimal point, and cannot separate thousands.
    points = delimiter != "," and any(
        isinstance(cell, str) and DECIMAL_POINT.fullmatch(cell.strip())
        for record in layout.body[:DECIMAL_SAMPLE_LINES]
        for cell in record
    )
    frame = pd.DataFrame({j: _parse_column(column, delimiter, points=points) for j, column in enumerate(columns)})
    return _table_from_layout(layout, frame, source, strict=strict)


def _parse_workbook(sheets: dict[str, list[Record]], source: str, choice: SheetChoice, *, strict: bool) -> RawTable:
    if not sheets:
        raise ValueError(f"{source} has an empty first sheet.")
    layouts = {
        name: find_table(records, source)
        for name, records in sheets.items()
        if sum(any(not is_empty(cell) for cell in record) for record in records) > 1
    }
    if not layouts:
        raise ValueError(f"{source} has a header but no rows.")
    names = {name: column_names(layout.header) for name, layout in layouts.items()}
    picked = choice.pick(names, source, "sheets", or_first=True)
    layout = layouts[picked]
    frame = pd.DataFrame(layout.body).infer_objects()
    return _table_from_layout(layout, frame, source, choice.step(picked, len(layouts), "sheets"), strict=strict)


def _table_from_layout(
    layout: TableLayout, frame: pd.DataFrame, source: str, steps: Iterable[CleaningStep] = (), *, strict: bool
) -> RawTable:
    named = frame.set_axis(column_names(layout.header), axis=1)
    table = _make_raw_table(named, source, (*steps, *layout.steps), strict=strict)
    if strict:
        raise_if_strict(layout.steps)
    return table


def _parse_column(column: tuple[Cell, ...], delimiter: str, *, points: bool) -> np.ndarray | pd.Series[Any]:
    """Turn cells into numbers if all are numbers, otherwise into texts. A missing entry becomes NaN or None.

    If other columns have decimal points, commas before groups of three digits separate thousands, and such a column
    stays text here.
    """
    complete = _parse_numbers(column)  # most columns are complete, and this is fast
    if complete is not None:
        return complete
    values = [None if cell is None or (entry := cell.strip()) in MISSING else entry for cell in column]
    present = [value for value in values if value is not None]
    numbers = _parse_numbers(present)
    if numbers is None and delimiter != ",":
        grouped = points and all(map(GROUPED.fullmatch, present))
        if not grouped and all(map(DECIMAL_COMMA.fullmatch, present)):
            numbers = _parse_numbers([value.replace(".", "").replace(",", ".") for value in present])
    if numbers is None:
        return pd.Series(values, dtype=object)
    parsed = np.full(len(values), np.nan)
    parsed[[value is not None for value in values]] = numbers
    return pd.Series(parsed)


def _parse_numbers(texts: Sequence[Cell]) -> np.ndarray | None:
    """Parse numbers by `float`, which is correct to the last digit; return None if a text is no number."""
    try:
        numbers = np.array(list(map(float, texts)))
    except (ValueError, TypeError):
        return None
    return None if "_" in "".join(texts) else numbers  # Python reads "1_000" as a number; in a table it is a text


def _make_raw_table(frame: pd.DataFrame, source: str, steps: Iterable[CleaningStep] = (), *, strict: bool) -> RawTable:
    """Give columns unique names, and count rows from 1."""
    renamed, new = rename_repeated(frame)
    if new and strict:
        repeated = dict.fromkeys(name for name in map(str, frame.columns) if list(frame.columns).count(name) > 1)
        raise ValueError(
            f"{source} has several columns called {', '.join(map(repr, list(repeated)[:5]))}. Give each its own name."
        )
    if frame.empty:
        raise ValueError(f"{source} has no rows.")
    counted = renamed.set_axis(pd.RangeIndex(1, len(frame) + 1, name="row"))
    return RawTable(counted, (*steps, *new))


def decompress(content: bytes, source: str) -> bytes:
    """Return the content of a file, decompressed if it is compressed, even several times."""
    for first, (name, unpack) in COMPRESSIONS.items():
        if content.startswith(first):
            try:
                unpacked = unpack(content)
            except (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error) as error:
                raise ValueError(f"{source} begins like a {name} file, but is damaged or cut off ({error}).") from None
            return decompress(unpacked, source)
    if content.startswith(ZSTANDARD):
        raise ValueError(f"{source} is packed by zstandard; unpack it, or pack it with gzip.")
    if content.startswith(ZIP) and not is_workbook(content):
        return decompress(_read_only_member(content, source), source)
    return content


def _read_only_member(content: bytes, source: str) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/") and "__MACOSX" not in name]
            if len(names) != 1:
                raise ValueError(f"{source} holds {len(names)} files ({', '.join(names[:5])}); unpack it and name one.")
            return archive.read(names[0])
    except (zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{source} begins like a zip file, but is damaged or cut off ({error}).") from None


def decode(content: bytes, source: str) -> str:
    """Decode bytes as UTF-8, as UTF-16 with a byte order mark, or else as Windows-1252."""
    if content[:2] in BYTE_ORDER_MARKS:
        try:
            return content.decode(BYTE_ORDER_MARKS[content[:2]])
        except UnicodeDecodeError:
            raise ValueError(f"{source} begins like UTF-16 text, but is damaged or cut off.") from None
    if b"\x00" in content[:4096]:
        raise ValueError(
            f"{source} is no text: it holds zero bytes. Known formats are CSV and other text, JSON, Parquet, Feather, "
            "Excel (.xlsx) and SQLite."
        )
    for encoding in ENCODINGS:
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise ValueError(f"{source} is neither UTF-8 nor Windows-1252 text; save it as UTF-8.")
