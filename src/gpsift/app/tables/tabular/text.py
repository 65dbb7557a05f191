"""Tables in text: which signs are between the cells, found from the first lines."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Callable

import pandas as pd

from gpsift.app.tables.tabular.layout import Record

DELIMITERS = (",", ";", "\t", "|")
# What a table whose cells are apart by blanks has in place of a delimiter.
BLANKS = " "
# Lines from which the delimiter is found.
SAMPLE_LINES = 50
MOST_LINES = 0.8
# Lines above a header that may have other numbers of cells.
TITLE_LINES = 5
ENCODINGS = ("utf-8-sig", "cp1252")
BYTE_ORDER_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
FIXED_WIDTH = "fixed width"
# Columns of fixed width stand apart by blanks in all of the first lines.
GAP = re.compile(r"\S\s{2,}\S")


def decoded(content: bytes, where: str) -> str:
    """Bytes as text: UTF-8, UTF-16 with its mark, or Windows-1252."""
    if content[:2] in BYTE_ORDER_MARKS:
        try:
            return content.decode(BYTE_ORDER_MARKS[content[:2]])
        except UnicodeDecodeError:
            raise ValueError(f"{where} begins like UTF-16 text, but is damaged or cut off.") from None
    if b"\x00" in content[:4096]:
        raise ValueError(
            f"{where} is no text: it holds zero bytes. Known formats are CSV and other text, JSON, Parquet, Feather, "
            "Excel (.xlsx) and SQLite."
        )
    for encoding in ENCODINGS:
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise ValueError(f"{where} is neither UTF-8 nor Windows-1252 text; save it as UTF-8.")


def find_delimiter(text: str) -> str:
    """The delimiter that cuts the header and most of the first lines into as many fields, the largest such number."""
    best, most = ",", 1
    for delimiter in DELIMITERS:
        widths = _widths(text, delimiter)
        if widths[0] > most and widths.count(widths[0]) >= MOST_LINES * len(widths):
            best, most = delimiter, widths[0]
    return best


def found_delimiter(text: str) -> str:
    """The same for texts as people have them: lines of titles may be above the header, and cells apart by blanks."""
    first = find_delimiter(text)
    better = next((delimiter for delimiter in DELIMITERS if _cuts_better(text, delimiter, first)), None)
    if better is not None:
        return better
    if first != "," or _widths(text, ",")[0] > 1:
        return first
    blank = _widths(text, BLANKS)
    common = _common(blank)
    # A header of names of columns may lack the one of the names of rows.
    if common > 1 and blank[0] in (common, common - 1) and blank.count(common) >= MOST_LINES * (len(blank) - 1):
        return BLANKS
    below_titles = {delimiter: _most_common_width(text, delimiter) for delimiter in (*DELIMITERS, BLANKS)}
    best = max(DELIMITERS, key=lambda delimiter: below_titles[delimiter])
    if below_titles[best] > 1:
        return best
    if below_titles[BLANKS] > 1:
        return BLANKS
    return FIXED_WIDTH if _has_gaps(text) else first


def text_records(text: str, where: str) -> tuple[str, list[Record]]:
    """The delimiter of a text, and its cells, line by line; lines without any are left out."""
    try:
        delimiter = found_delimiter(text)
        read = READERS.get(delimiter, _delimited)(text, delimiter)
    except csv.Error as error:
        raise ValueError(f"{where} could not be read as a table in text: {error}.") from None
    return delimiter, [record for record in read if len(record) > 1 or "".join(map(str, record)).strip()]


def _delimited(text: str, delimiter: str) -> list[Record]:
    return [list(record) for record in csv.reader(io.StringIO(text, newline=None), delimiter=delimiter)]


def _by_blanks(text: str, delimiter: str) -> list[Record]:
    lines = "\n".join(" ".join(line.split("\t")).strip() for line in text.splitlines())
    return [list(record) for record in csv.reader(io.StringIO(lines), delimiter=delimiter, skipinitialspace=True)]


def _by_place(text: str, _: str) -> list[Record]:
    """Cells that begin and end at the same places in all lines."""
    lines = "\n".join(line for line in text.splitlines() if line.strip())
    frame = pd.read_fwf(io.StringIO(lines), header=None, dtype=str, keep_default_na=False, infer_nrows=SAMPLE_LINES)
    return frame.to_numpy(dtype=object).tolist()


READERS: dict[str, Callable[[str, str], list[Record]]] = {BLANKS: _by_blanks, FIXED_WIDTH: _by_place}


def _widths(text: str, delimiter: str) -> list[int]:
    """How many cells the first lines have."""
    sample = "\n".join(text.splitlines()[:SAMPLE_LINES])
    return [len(record) for record in READERS.get(delimiter, _delimited)(sample, delimiter) if record]


def _common(widths: list[int]) -> int:
    return Counter(widths).most_common(1)[0][0]


def _most_common_width(text: str, delimiter: str) -> int:
    """That of most lines but for a few of titles; 1 where lines differ."""
    widths = _widths(text, delimiter)
    common = _common(widths)
    n = widths.count(common)
    return common if n > len(widths) / 2 and n >= MOST_LINES * (len(widths) - TITLE_LINES) else 1


def _cuts_better(text: str, delimiter: str, first: str) -> bool:
    """Whether a delimiter makes more cells than the first one found, and of more lines alike below those of titles.

    A title and numbers may have as many commas as one another, and the header between them none.
    """
    widths, others = _widths(text, delimiter), _widths(text, first)
    common = _most_common_width(text, delimiter)
    if common <= others[0]:
        return False
    below = others[widths.index(common) :]
    return widths.count(common) > below.count(_common(below))


def _has_gaps(text: str) -> bool:
    lines = [line for line in text.splitlines()[:SAMPLE_LINES] if line.strip()]
    return sum(GAP.search(line.strip()) is not None for line in lines) >= MOST_LINES * len(lines)
