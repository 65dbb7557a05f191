"""Find a table among lines of cells, which may also be titles, a line of units, totals and remarks.

`text_records` splits a text into cells, by the delimiter that fits the first lines best. `find_table` finds the header
and the rows of the table, in a text or on a sheet of a workbook, and lists the lines that it drops as steps.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from gpsift._utils.text import join_names
from gpsift.app.findings import FindingKind
from gpsift.app.tables.steps import CleaningStep, TableError

# A cell of a text file is a text. A cell of a workbook may also be a number or a date.
Cell = Any
Record = list[Cell]

MISSING = frozenset({"", "?", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "null", "NULL", "None", "#N/A", "<NA>"})
TOTAL = re.compile(r"(grand |sub)?(total|sum|mean|average|summe|gesamt|mittelwert)s?\s*:?", re.IGNORECASE)
NUMBER = re.compile(r"[+-]?(\d+([.,]\d+)*|[.,]\d+)([eE][+-]?\d+)?%?")
LIKE_NUMBER = re.compile(r"[<>~]?\s*[+-]?[$€£¥]?\s*[.,]?\d|n\.?d\.?$", re.IGNORECASE)
COMMENT = "#"
# The last row may be totals, and the first row units, only in a table of at least this many rows.
FEWEST_ROWS = 3
# If more than this share of the lines differ in length from the header, the delimiter is wrong.
MOST_UNEVEN = 0.2
TITLE_SHOWN = 40
# This many lines decide whether a column holds numbers.
COLUMN_SAMPLE_LINES = 200
DELIMITERS = (",", ";", "\t", "|")
# The "delimiter" of cells that are separated by blanks.
BLANKS = " "
# The delimiter is found in this many lines, of which this share must agree.
SAMPLE_LINES = 50
AGREEING_SHARE = 0.8
# At most this many lines are titles above the header.
TITLE_LINES = 5
FIXED_WIDTH = "fixed width"
# Columns of fixed width are separated by at least two blanks.
GAP = re.compile(r"\S\s{2,}\S")


def find_delimiter(text: str) -> str:
    """Return the delimiter that splits header and most of the first lines into the same, largest number of cells."""
    best, most = ",", 1
    for delimiter in DELIMITERS:
        widths = _widths(text, delimiter)
        if widths[0] > most and widths.count(widths[0]) >= AGREEING_SHARE * len(widths):
            best, most = delimiter, widths[0]
    return best


def sniff_delimiter(text: str) -> str:
    """Return the delimiter of a text that may have titles above the header, or cells separated by blanks.

    Return `FIXED_WIDTH` for columns of fixed width.
    """
    first = find_delimiter(text)
    better = next((delimiter for delimiter in DELIMITERS if _splits_better(text, delimiter, first)), None)
    if better is not None:
        return better
    if first != "," or _widths(text, ",")[0] > 1:
        return first
    blank = _widths(text, BLANKS)
    common = _most_common(blank)
    # The header may lack a name for the first column, if that names the rows.
    if common > 1 and blank[0] in (common, common - 1) and blank.count(common) >= AGREEING_SHARE * (len(blank) - 1):
        return BLANKS
    below_titles = {delimiter: _most_common_width(text, delimiter) for delimiter in (*DELIMITERS, BLANKS)}
    best = max(DELIMITERS, key=lambda delimiter: below_titles[delimiter])
    if below_titles[best] > 1:
        return best
    if below_titles[BLANKS] > 1:
        return BLANKS
    lines = [line.strip() for line in text.splitlines()[:SAMPLE_LINES] if line.strip()]
    n_gaps = sum(GAP.search(line) is not None for line in lines)
    return FIXED_WIDTH if n_gaps >= AGREEING_SHARE * len(lines) else first


def text_records(text: str, source: str) -> tuple[str, list[Record]]:
    """Return the delimiter of a text, and its cells line by line without empty lines."""
    try:
        delimiter = sniff_delimiter(text)
        read = READERS.get(delimiter, _split_by_delimiter)(text, delimiter)
    except csv.Error as error:
        raise ValueError(f"{source} could not be read as a table in text: {error}.") from None
    return delimiter, [record for record in read if len(record) > 1 or "".join(map(str, record)).strip()]


def _split_by_delimiter(text: str, delimiter: str) -> list[Record]:
    return [list(record) for record in csv.reader(io.StringIO(text, newline=None), delimiter=delimiter)]


def _split_by_blanks(text: str, delimiter: str) -> list[Record]:
    lines = "\n".join(" ".join(line.split("\t")).strip() for line in text.splitlines())
    return [list(record) for record in csv.reader(io.StringIO(lines), delimiter=delimiter, skipinitialspace=True)]


def _split_by_position(text: str, _: str) -> list[Record]:
    """Split lines at the positions where all of them have blanks."""
    lines = "\n".join(line for line in text.splitlines() if line.strip())
    frame = pd.read_fwf(io.StringIO(lines), header=None, dtype=str, keep_default_na=False, infer_nrows=SAMPLE_LINES)
    return frame.to_numpy(dtype=object).tolist()


READERS: dict[str, Callable[[str, str], list[Record]]] = {BLANKS: _split_by_blanks, FIXED_WIDTH: _split_by_position}


def _widths(text: str, delimiter: str) -> list[int]:
    """Return the number of cells in each of the first lines."""
    sample = "\n".join(text.splitlines()[:SAMPLE_LINES])
    return [len(record) for record in READERS.get(delimiter, _split_by_delimiter)(sample, delimiter) if record]


def _most_common(widths: list[int]) -> int:
    return Counter(widths).most_common(1)[0][0]


def _most_common_width(text: str, delimiter: str) -> int:
    """Return the commonest number of cells, if most lines but a few titles have it; otherwise 1."""
    widths = _widths(text, delimiter)
    common = _most_common(widths)
    n = widths.count(common)
    return common if n > len(widths) / 2 and n >= AGREEING_SHARE * (len(widths) - TITLE_LINES) else 1


def _splits_better(text: str, delimiter: str, first: str) -> bool:
    """Return whether a delimiter splits lines into more cells than `first`, and more lines alike below the titles.

    A title and the rows may have the same number of decimal commas, and the header between them none.
    """
    widths, others = _widths(text, delimiter), _widths(text, first)
    common = _most_common_width(text, delimiter)
    if common <= others[0]:
        return False
    below = others[widths.index(common) :]
    return widths.count(common) > below.count(_most_common(below))


@dataclass(frozen=True)
class TableLayout:
    """The header and the rows of a table, and the steps by which they were found."""

    header: Record
    body: list[Record]
    steps: tuple[CleaningStep, ...] = ()

    def add_step(self, kind: FindingKind, count: int, **detail: Any) -> TableLayout:
        return replace(self, steps=(*self.steps, CleaningStep(kind, count=count, detail=detail)))


def find_table(records: Sequence[Record], source: str) -> TableLayout:
    """Find the header and the rows of a table, and give every row as many cells as the header."""
    filled = [number for number, record in enumerate(records) if _n_cells(record)]
    if not filled:
        raise ValueError(f"{source} is empty.")
    layout = _drop_remarks(_add_header(_drop_title_lines(list(records[filled[0] :]))))
    layout = _drop_totals(_drop_units(_pad_rows(layout, source)))
    if not layout.body:
        raise ValueError(f"{source} has a header but no rows.")
    return layout


def is_empty(cell: Cell) -> bool:
    """Return whether a cell has no value, or an empty text."""
    return cell.strip() == "" if isinstance(cell, str) else cell is None or bool(pd.isna(cell))


def is_missing(cell: Cell) -> bool:
    """Return whether a cell is empty or has a mark of a missing value such as "NA"."""
    return is_empty(cell) or (isinstance(cell, str) and cell.strip() in MISSING)


def is_number(cell: Cell) -> bool:
    """Return whether a cell is a number, with a decimal point or comma."""
    if isinstance(cell, str):
        return NUMBER.fullmatch(cell.strip()) is not None
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def column_names(header: Record) -> list[str]:
    """Return the names of columns, without quotes and blanks around them. A column without a name gets its number."""
    return [_clean_name(cell) or f"column {number}" for number, cell in enumerate(header, start=1)]


def make_unique(names: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return names that all differ, and those that are new: the second "dose" is called "dose (2)"."""
    taken, found, made = set(names), [], []
    seen: Counter[str] = Counter()
    for name in names:
        seen[name] += 1
        if seen[name] == 1:
            found.append(name)
            continue
        number = seen[name]
        while (new := f"{name} ({number})") in taken:
            number += 1
        taken.add(new)
        found.append(new)
        made.append(new)
    return found, tuple(made)


def rename_repeated(frame: pd.DataFrame) -> tuple[pd.DataFrame, tuple[CleaningStep, ...]]:
    """Give columns unique names, and return the step that this took, if any."""
    names, made = make_unique(list(map(str, frame.columns)))
    steps = (CleaningStep(FindingKind.NAMES_TOLD_APART, made, len(made)),) if made else ()
    return frame.set_axis(names, axis=1), steps


def _clean_name(cell: Cell) -> str:
    name = "" if is_empty(cell) else str(cell).strip()
    while len(name) > 1 and name[0] == name[-1] and name[0] in "\"'`":
        name = name[1:-1].strip()
    return name


def _n_cells(record: Record) -> int:
    return sum(not is_empty(cell) for cell in record)


def _commonest_width(records: Sequence[Record]) -> int:
    """Return the commonest number of cells of a line; of equally common ones the largest."""
    counts = Counter(map(len, records))
    return max(counts, key=lambda width: (counts[width], width))


def _drop_title_lines(records: list[Record]) -> TableLayout:
    """Drop the lines above the header, which is the first line as wide as the table."""
    width = _commonest_width(records)
    place = 0
    while width > 1 and place < len(records) - 1:
        record = records[place]
        n_cells = _n_cells(record)
        is_comment = n_cells > 0 and str(_first(record)).lstrip().startswith(COMMENT)
        is_alone = n_cells <= 1 and (width > 2 or len(record) < width)
        if not (is_alone or is_comment or len(record) < width - 1):
            break
        place += 1
    layout = TableLayout(records[place], records[place + 1 :])
    if place == 0:
        return layout
    text = " ".join(str(cell).strip() for cell in records[0] if not is_empty(cell))[:TITLE_SHOWN]
    return layout.add_step(FindingKind.LINES_ABOVE, place, text=text)


def _add_header(layout: TableLayout) -> TableLayout:
    """Add a header if the first line has numbers, or an empty name if the header has one cell too few."""
    header, body = layout.header, layout.body
    if body and _is_row_of_numbers(header):
        names = [f"column {number}" for number in range(1, len(header) + 1)]
        found = replace(layout, header=names, body=[header, *body])
        return found.add_step(FindingKind.HEADER_MISSING, len(names), text=join_names(names, 3))
    if body and len(header) == _commonest_width(body) - 1:
        return replace(layout, header=["", *header]).add_step(FindingKind.HEADER_SHORT, 1, text="column 1")
    return layout


def _is_row_of_numbers(header: Record) -> bool:
    """Return whether the first line is a row of numbers. Ascending whole numbers such as 1990, 1991 are names."""
    if not all(map(is_number, header)):
        return False
    plain = [str(cell).strip() for cell in header if len(re.findall("[.,]", str(cell))) <= 1]
    numbers = [float(cell.rstrip("%").replace(",", ".")) for cell in plain]
    ascending = all(number == int(number) for number in numbers) and numbers == sorted(set(numbers))
    return len(numbers) < len(header) or not ascending


def _drop_remarks(layout: TableLayout) -> TableLayout:
    """Drop lines with a single text at the end."""
    body = layout.body
    n = len(body)
    while len(layout.header) > 2 and n > 1:
        n_cells = _n_cells(body[n - 1])
        if n_cells > 1 or (n_cells == 1 and is_number(_first(body[n - 1]))):
            break
        n -= 1
    texts = [str(_first(record)).strip() for record in body[n:] if _n_cells(record)]
    if not texts:
        return layout
    found = replace(layout, body=body[:n])
    return found.add_step(FindingKind.LINES_BELOW, len(body) - n, text=texts[0][:TITLE_SHOWN])


def _first(record: Record) -> Cell:
    return next(cell for cell in record if not is_empty(cell))


def _pad_rows(layout: TableLayout, source: str) -> TableLayout:
    """Give every line as many cells as the header; raise an error if too many lines differ."""
    width = len(layout.header)
    if all(len(record) == width for record in layout.body):
        return layout
    cut = [[*record[:width], *[None] * (width - len(record))] for record in layout.body]
    uneven = [
        number
        for number, record in enumerate(layout.body, start=2)
        if len(record) < width or any(not is_empty(cell) for cell in record[width:])
    ]
    if len(uneven) > max(1, MOST_UNEVEN * len(layout.body)):
        first = layout.body[uneven[0] - 2]
        raise TableError(f"Record {uneven[0]} of {source} has {len(first)} fields but the header has {width}.")
    found = replace(layout, body=cut)
    return found.add_step(FindingKind.LINES_UNEVEN, len(uneven)) if uneven else found


def _drop_units(layout: TableLayout) -> TableLayout:
    """Drop a first line of texts if one of them is above a column of numbers."""
    first, rest = (layout.body[0] if layout.body else []), layout.body[1:]
    if len(rest) < FEWEST_ROWS or any(map(_begins_like_number, first)):
        return layout
    columns = zip(*rest[:COLUMN_SAMPLE_LINES], strict=True)
    below = [(cell, column) for cell, column in zip(first, columns, strict=True) if not is_missing(cell)]
    present = [[cell for cell in column if not is_missing(cell)] for _, column in below]
    has_numbers = any(cells and all(map(_begins_like_number, cells)) for cells in present)
    if any(cell in column for cell, column in below) or not has_numbers:
        return layout
    text = join_names([str(cell).strip() for cell, _ in below], 4)
    return replace(layout, body=rest).add_step(FindingKind.LINE_OF_UNITS, 1, text=text)


def _begins_like_number(cell: Cell) -> bool:
    return is_number(cell) or (isinstance(cell, str) and LIKE_NUMBER.match(cell.strip()) is not None)


def _drop_totals(layout: TableLayout) -> TableLayout:
    """Drop the last line if it is labelled as a total, and no other line is."""
    if len(layout.body) <= FEWEST_ROWS or len(layout.header) < 2:
        return layout
    last = layout.body[-1]
    places = [j for j, cell in enumerate(last) if isinstance(cell, str) and TOTAL.fullmatch(cell.strip())]
    if not places or any(record[places[0]] == last[places[0]] for record in layout.body[:-1]):
        return layout
    found = replace(layout, body=layout.body[:-1])
    return found.add_step(FindingKind.LINES_BELOW, 1, text=str(last[places[0]]).strip())
