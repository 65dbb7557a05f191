"""Tables in text: which signs are between the cells, found from the first lines."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from gpsift._utils.text import listed
from gpsift.app.findings import FindingKind
from gpsift.app.tables.steps import CleaningStep, TableError

DELIMITERS = (",", ";", "\t", "|")
# What a table whose cells are apart by blanks has in place of a delimiter.
BLANKS = " "
# Lines from which the delimiter is found.
SAMPLE_LINES = 50
MOST_LINES = 0.8
# Lines above a header that may have other numbers of cells.
TITLE_LINES = 5
FIXED_WIDTH = "fixed width"
# Columns of fixed width stand apart by blanks in all of the first lines.
GAP = re.compile(r"\S\s{2,}\S")


def find_delimiter(text: str) -> str:
    """The delimiter that cuts the header and most of the first lines into as many fields, the largest such number."""
    best, most = ",", 1
    for delimiter in DELIMITERS:
        widths = _widths(text, delimiter)
        if widths[0] > most and widths.count(widths[0]) >= MOST_LINES * len(widths):
            best, most = delimiter, widths[0]
    return best


def sniff_delimiter(text: str) -> str:
    """The same for texts as people have them: lines of titles may be above the header, and cells apart by blanks."""
    first = find_delimiter(text)
    better = next((delimiter for delimiter in DELIMITERS if _splits_better(text, delimiter, first)), None)
    if better is not None:
        return better
    if first != "," or _widths(text, ",")[0] > 1:
        return first
    blank = _widths(text, BLANKS)
    common = _most_common(blank)
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
        delimiter = sniff_delimiter(text)
        read = READERS.get(delimiter, _split_by_delimiter)(text, delimiter)
    except csv.Error as error:
        raise ValueError(f"{where} could not be read as a table in text: {error}.") from None
    return delimiter, [record for record in read if len(record) > 1 or "".join(map(str, record)).strip()]


def _split_by_delimiter(text: str, delimiter: str) -> list[Record]:
    return [list(record) for record in csv.reader(io.StringIO(text, newline=None), delimiter=delimiter)]


def _split_by_blanks(text: str, delimiter: str) -> list[Record]:
    lines = "\n".join(" ".join(line.split("\t")).strip() for line in text.splitlines())
    return [list(record) for record in csv.reader(io.StringIO(lines), delimiter=delimiter, skipinitialspace=True)]


def _split_by_position(text: str, _: str) -> list[Record]:
    """Cells that begin and end at the same places in all lines."""
    lines = "\n".join(line for line in text.splitlines() if line.strip())
    frame = pd.read_fwf(io.StringIO(lines), header=None, dtype=str, keep_default_na=False, infer_nrows=SAMPLE_LINES)
    return frame.to_numpy(dtype=object).tolist()


READERS: dict[str, Callable[[str, str], list[Record]]] = {BLANKS: _split_by_blanks, FIXED_WIDTH: _split_by_position}


def _widths(text: str, delimiter: str) -> list[int]:
    """How many cells the first lines have."""
    sample = "\n".join(text.splitlines()[:SAMPLE_LINES])
    return [len(record) for record in READERS.get(delimiter, _split_by_delimiter)(sample, delimiter) if record]


def _most_common(widths: list[int]) -> int:
    return Counter(widths).most_common(1)[0][0]


def _most_common_width(text: str, delimiter: str) -> int:
    """That of most lines but for a few of titles; 1 where lines differ."""
    widths = _widths(text, delimiter)
    common = _most_common(widths)
    n = widths.count(common)
    return common if n > len(widths) / 2 and n >= MOST_LINES * (len(widths) - TITLE_LINES) else 1


def _splits_better(text: str, delimiter: str, first: str) -> bool:
    """Whether a delimiter makes more cells than the first one found, and of more lines alike below those of titles.

    A title and numbers may have as many commas as one another, and the header between them none.
    """
    widths, others = _widths(text, delimiter), _widths(text, first)
    common = _most_common_width(text, delimiter)
    if common <= others[0]:
        return False
    below = others[widths.index(common) :]
    return widths.count(common) > below.count(_most_common(below))


def _has_gaps(text: str) -> bool:
    lines = [line for line in text.splitlines()[:SAMPLE_LINES] if line.strip()]
    return sum(GAP.search(line.strip()) is not None for line in lines) >= MOST_LINES * len(lines)


# A cell of a text file is a text, one of a workbook may be a number or a date as well.
Cell = Any
Record = list[Cell]

MISSING = frozenset({"", "?", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "null", "NULL", "None", "#N/A", "<NA>"})
TOTAL = re.compile(r"(grand |sub)?(total|sum|mean|average|summe|gesamt|mittelwert)s?\s*:?", re.IGNORECASE)
NUMBER = re.compile(r"[+-]?(\d+([.,]\d+)*|[.,]\d+)([eE][+-]?\d+)?%?")
LIKE_NUMBER = re.compile(r"[<>~]?\s*[+-]?[$€£¥]?\s*[.,]?\d|n\.?d\.?$", re.IGNORECASE)
COMMENT = "#"
# A table needs this many rows before its last one is taken for totals, or its first one for units.
FEWEST_ROWS = 3
# With more uneven lines than this share, the delimiter is not what it seems.
MOST_UNEVEN = 0.2
TITLE_SHOWN = 40
# Lines by which a column is known to hold numbers.
LINES_LOOKED_AT = 200


@dataclass(frozen=True)
class TableLayout:
    """Cells in lines, the first of them the header, and what was done to have it so."""

    header: Record
    body: list[Record]
    steps: tuple[CleaningStep, ...] = ()

    def with_step(self, kind: FindingKind, count: int, **detail: Any) -> TableLayout:
        return replace(self, steps=(*self.steps, CleaningStep(kind, count=count, detail=detail)))


def find_table(records: Sequence[Record], where: str) -> TableLayout:
    """The table on a sheet: what is around it is left out, and each line has as many cells as the header."""
    filled = [number for number, record in enumerate(records) if _n_cells(record)]
    if not filled:
        raise ValueError(f"{where} is empty.")
    sheet = _add_header(_drop_title_lines(list(records[filled[0] :])))
    for tidied in (_drop_remarks, _pad_rows, _drop_units, _drop_totals):
        sheet = tidied(sheet, where)
    if not sheet.body:
        raise ValueError(f"{where} has a header but no rows.")
    return sheet


def is_empty(cell: Cell) -> bool:
    """Whether nothing is in a cell."""
    return cell.strip() == "" if isinstance(cell, str) else cell is None or bool(pd.isna(cell))


def is_missing(cell: Cell) -> bool:
    """Whether a cell is empty, or says that something is missing."""
    return is_empty(cell) or (isinstance(cell, str) and cell.strip() in MISSING)


def is_number(cell: Cell) -> bool:
    """Whether a cell holds a number, with a decimal point or comma."""
    if isinstance(cell, str):
        return NUMBER.fullmatch(cell.strip()) is not None
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def column_names(header: Record) -> list[str]:
    """Names without quotes and spaces around them; columns without a name are numbered."""
    return [_clean_name(cell) or f"column {number}" for number, cell in enumerate(header, start=1)]


def make_unique(names: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Names that differ, and those that had to be made: the second "dose" is called "dose (2)"."""
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


def _clean_name(cell: Cell) -> str:
    name = "" if is_empty(cell) else str(cell).strip()
    while len(name) > 1 and name[0] == name[-1] and name[0] in "\"'`":
        name = name[1:-1].strip()
    return name


def _n_cells(record: Record) -> int:
    return sum(not is_empty(cell) for cell in record)


def _width(records: Sequence[Record]) -> int:
    """How wide most lines are; of equally frequent widths the larger."""
    counts = Counter(map(len, records))
    return max(counts, key=lambda width: (counts[width], width))


def _drop_title_lines(records: list[Record]) -> TableLayout:
    """The first line that is as wide as the table begins it, and one that has a single cell does not."""
    width = _width(records)
    place = 0
    while place < len(records) - 1 and _is_title(records[place], width):
        place += 1
    sheet = TableLayout(records[place], records[place + 1 :])
    if place == 0:
        return sheet
    text = " ".join(str(cell).strip() for cell in records[0] if not is_empty(cell))[:TITLE_SHOWN]
    return sheet.with_step(FindingKind.LINES_ABOVE, place, text=text)


def _is_title(record: Record, width: int) -> bool:
    is_comment = _n_cells(record) > 0 and str(_first(record)).lstrip().startswith(COMMENT)
    is_alone = _n_cells(record) <= 1 and (width > 2 or len(record) < width)
    return width > 1 and (is_alone or is_comment or len(record) < width - 1)


def _add_header(sheet: TableLayout) -> TableLayout:
    """With names for columns that have none: of a first line of numbers, and of a first column of names of rows."""
    header, body = sheet.header, sheet.body
    if body and _is_row_of_numbers(header):
        names = [f"column {number}" for number in range(1, len(header) + 1)]
        found = replace(sheet, header=names, body=[header, *body])
        return found.with_step(FindingKind.HEADER_MISSING, len(names), text=listed(names, 3))
    if body and len(header) == _width(body) - 1:
        return replace(sheet, header=["", *header]).with_step(FindingKind.HEADER_SHORT, 1, text="column 1")
    return sheet


def _is_row_of_numbers(header: Record) -> bool:
    """Whether a first line is one of numbers; counting names, 0, 1, 2 or 1990, 1991, are a header all the same."""
    if not all(map(is_number, header)):
        return False
    numbers = [float(str(cell).strip().rstrip("%").replace(",", ".")) for cell in header if _has_one_separator(cell)]
    counts = all(number == int(number) for number in numbers) and numbers == sorted(set(numbers))
    return len(numbers) < len(header) or not counts


def _has_one_separator(cell: Cell) -> bool:
    return len(re.findall("[.,]", str(cell))) <= 1


def _drop_remarks(sheet: TableLayout, where: str) -> TableLayout:  # noqa: ARG001
    """Without lines of a single text at the end."""
    body = sheet.body
    n = len(body)
    while len(sheet.header) > 2 and n > 1 and _is_remark(body[n - 1]):
        n -= 1
    texts = [str(_first(record)).strip() for record in body[n:] if _n_cells(record)]
    if not texts:
        return sheet
    found = replace(sheet, body=body[:n])
    return found.with_step(FindingKind.LINES_BELOW, len(body) - n, text=texts[0][:TITLE_SHOWN])


def _is_remark(record: Record) -> bool:
    n = _n_cells(record)
    return n == 0 or (n == 1 and not is_number(_first(record)))


def _first(record: Record) -> Cell:
    return next(cell for cell in record if not is_empty(cell))


def _pad_rows(sheet: TableLayout, where: str) -> TableLayout:
    """Lines as wide as the header."""
    width = len(sheet.header)
    if all(len(record) == width for record in sheet.body):
        return sheet
    cut = [[*record[:width], *[None] * (width - len(record))] for record in sheet.body]
    uneven = [
        number
        for number, record in enumerate(sheet.body, start=2)
        if len(record) < width or any(not is_empty(cell) for cell in record[width:])
    ]
    if len(uneven) > max(1, MOST_UNEVEN * len(sheet.body)):
        first = sheet.body[uneven[0] - 2]
        raise TableError(f"Record {uneven[0]} of {where} has {len(first)} fields but the header has {width}.")
    found = replace(sheet, body=cut)
    return found.with_step(FindingKind.LINES_UNEVEN, len(uneven)) if uneven else found


def _drop_units(sheet: TableLayout, where: str) -> TableLayout:  # noqa: ARG001
    """Without a first line that has no number, where a column of numbers begins below one of its texts."""
    first, rest = (sheet.body[0] if sheet.body else []), sheet.body[1:]
    if len(rest) < FEWEST_ROWS or any(map(_begins_like_number, first)):
        return sheet
    columns = zip(*rest[:LINES_LOOKED_AT], strict=True)
    below = [(cell, column) for cell, column in zip(first, columns, strict=True) if not is_missing(cell)]
    if any(cell in column for cell, column in below) or not any(_holds_numbers(column) for _, column in below):
        return sheet
    text = listed([str(cell).strip() for cell, _ in below], 4)
    return replace(sheet, body=rest).with_step(FindingKind.LINE_OF_UNITS, 1, text=text)


def _holds_numbers(column: Sequence[Cell]) -> bool:
    present = [cell for cell in column if not is_missing(cell)]
    return bool(present) and all(map(_begins_like_number, present))


def _begins_like_number(cell: Cell) -> bool:
    return is_number(cell) or (isinstance(cell, str) and LIKE_NUMBER.match(cell.strip()) is not None)


def _drop_totals(sheet: TableLayout, where: str) -> TableLayout:  # noqa: ARG001
    """Without a last line that calls itself a total, where no other line does."""
    if len(sheet.body) <= FEWEST_ROWS or len(sheet.header) < 2:
        return sheet
    last = sheet.body[-1]
    places = [j for j, cell in enumerate(last) if isinstance(cell, str) and TOTAL.fullmatch(cell.strip())]
    if not places or any(record[places[0]] == last[places[0]] for record in sheet.body[:-1]):
        return sheet
    found = replace(sheet, body=sheet.body[:-1])
    return found.with_step(FindingKind.LINES_BELOW, 1, text=str(last[places[0]]).strip())
