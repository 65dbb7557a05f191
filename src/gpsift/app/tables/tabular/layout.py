"""Where a table lies on a sheet of cells: below titles, with a line of units, above totals and remarks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from gpsift._utils.text import listed
from gpsift.app.findings import FindingKind
from gpsift.app.tables.tabular.errors import TableError
from gpsift.app.tables.tabular.steps import Step

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
class Sheet:
    """Cells in lines, the first of them the header, and what was done to have it so."""

    header: Record
    body: list[Record]
    steps: tuple[Step, ...] = ()

    def with_step(self, kind: FindingKind, count: int, **detail: Any) -> Sheet:
        return replace(self, steps=(*self.steps, Step(kind, count=count, detail=detail)))


def laid_out(records: Sequence[Record], where: str) -> Sheet:
    """The table on a sheet: what is around it is left out, and each line has as many cells as the header."""
    filled = [number for number, record in enumerate(records) if _n_cells(record)]
    if not filled:
        raise ValueError(f"{where} is empty.")
    sheet = _with_header(_without_titles(list(records[filled[0] :])))
    for tidied in (_without_remarks, _even, _without_units, _without_totals):
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
    return [_unquoted(cell) or f"column {number}" for number, cell in enumerate(header, start=1)]


def told_apart(names: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
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


def _unquoted(cell: Cell) -> str:
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


def _without_titles(records: list[Record]) -> Sheet:
    """The first line that is as wide as the table begins it, and one that has a single cell does not."""
    width = _width(records)
    place = 0
    while place < len(records) - 1 and _is_title(records[place], width):
        place += 1
    sheet = Sheet(records[place], records[place + 1 :])
    if place == 0:
        return sheet
    text = " ".join(str(cell).strip() for cell in records[0] if not is_empty(cell))[:TITLE_SHOWN]
    return sheet.with_step(FindingKind.LINES_ABOVE, place, text=text)


def _is_title(record: Record, width: int) -> bool:
    is_comment = _n_cells(record) > 0 and str(_first(record)).lstrip().startswith(COMMENT)
    is_alone = _n_cells(record) <= 1 and (width > 2 or len(record) < width)
    return width > 1 and (is_alone or is_comment or len(record) < width - 1)


def _with_header(sheet: Sheet) -> Sheet:
    """With names for columns that have none: of a first line of numbers, and of a first column of names of rows."""
    header, body = sheet.header, sheet.body
    if body and _is_row(header):
        names = [f"column {number}" for number in range(1, len(header) + 1)]
        found = replace(sheet, header=names, body=[header, *body])
        return found.with_step(FindingKind.HEADER_MISSING, len(names), text=listed(names, 3))
    if body and len(header) == _width(body) - 1:
        return replace(sheet, header=["", *header]).with_step(FindingKind.HEADER_SHORT, 1, text="column 1")
    return sheet


def _is_row(header: Record) -> bool:
    """Whether a first line is one of numbers; counting names, 0, 1, 2 or 1990, 1991, are a header all the same."""
    if not all(map(is_number, header)):
        return False
    numbers = [float(str(cell).strip().rstrip("%").replace(",", ".")) for cell in header if _is_plain(cell)]
    counts = all(number == int(number) for number in numbers) and numbers == sorted(set(numbers))
    return len(numbers) < len(header) or not counts


def _is_plain(cell: Cell) -> bool:
    return len(re.findall("[.,]", str(cell))) <= 1


def _without_remarks(sheet: Sheet, where: str) -> Sheet:  # noqa: ARG001
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


def _even(sheet: Sheet, where: str) -> Sheet:
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


def _without_units(sheet: Sheet, where: str) -> Sheet:  # noqa: ARG001
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


def _without_totals(sheet: Sheet, where: str) -> Sheet:  # noqa: ARG001
    """Without a last line that calls itself a total, where no other line does."""
    if len(sheet.body) <= FEWEST_ROWS or len(sheet.header) < 2:
        return sheet
    last = sheet.body[-1]
    places = [j for j, cell in enumerate(last) if isinstance(cell, str) and TOTAL.fullmatch(cell.strip())]
    if not places or any(record[places[0]] == last[places[0]] for record in sheet.body[:-1]):
        return sheet
    found = replace(sheet, body=sheet.body[:-1])
    return found.with_step(FindingKind.LINES_BELOW, 1, text=str(last[places[0]]).strip())
