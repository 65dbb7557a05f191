"""Numbers that are written as texts: with units, money, percent, thousands, decimal commas, or below a limit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from gpsift._utils.text import listed
from gpsift.app.findings import FindingKind
from gpsift.app.tables.tabular import Step
from gpsift.app.tables.tidy.changes import replaced
from gpsift.app.tables.tidy.draft import Draft

# At least this share of a column's texts must be plain numbers, and at most that share of them may be none at all.
LEAST_PLAIN = 0.5
MOST_TEXTS = 0.2
BELOW_LIMIT = frozenset(
    {"n.d.", "n.d", "nd", "n/d", "bdl", "b.d.l.", "lod", "<lod", "<loq", "<dl", "not detected", "below detection limit"}
)
MONEY = "$€£¥₹"
CURRENCIES = r"USD|EUR|GBP|CHF|JPY"
DIGITS = r"\d(?:[\d.,'’\u00a0\u202f]*\d)?|\d{1,3}(?:\ \d{3})+(?:[.,]\d+)?|[.,]\d+"
CELL = re.compile(
    rf"""(?P<limit>[<>≤≥~]?=?)\s*(?P<bracket>\()?(?P<sign>[+\-−])?\s*
    (?P<money>[{MONEY}]|(?:{CURRENCIES})(?=[\s\d]))?\s*(?P<minus>[\-−])?
    (?P<digits>{DIGITS})(?:\.(?=\s*\)?$))?(?P<power>[eE][+\-]?\d+)?
    \s*(?P<unit>[^\d\s<>()][^\d<>()]{{0,14}})?\)?""",
    re.VERBOSE,
)
# "1,234" or "1'234,567": groups of three. A column of those only, without decimals, is taken for thousands.
GROUPED = re.compile(r"\d{1,3}(?P<sign>[,'’ \u00a0\u202f])\d{3}(?:(?P=sign)\d{3})*(?:\.\d+)?")
DECIMAL_COMMA = re.compile(r"(\d+|\d{1,3}(\.\d{3})+),\d+|,\d+|\d+|\d{1,3}(\.\d{3})+")
PLAIN = re.compile(r"\d+\.?\d*|\.\d+")


@dataclass(frozen=True, eq=False)
class TextNumbers:
    """How the texts of a column are read."""

    values: Mapping[str, float]  # of each text that is a number, or below a limit
    limits: frozenset[str] = frozenset()
    how: tuple[str, ...] = ()


def written_as_texts(draft: Draft) -> Iterator[Step]:
    """Columns of numbers that are written as texts, as numbers; a few texts among them become missing values."""
    ways: dict[tuple[str, ...], dict[str, pd.Series[Any]]] = {}
    for name, column in draft.texts(with_target=True):
        reading = None if name in draft.codes else reading_of(column)
        if reading is None:
            continue
        numbers = column.map(lambda cell, values=reading.values: values.get(str(cell), np.nan)).astype(float)
        odd = list(_odd_cells(name, column, numbers, reading))
        yield from odd
        if reading.how or not odd:
            ways.setdefault(reading.how, {})[name] = numbers
    for how, columns in ways.items():
        detail = {"how": listed(how, None) or "plain ones"}
        yield Step(FindingKind.NUMBERS_READ, tuple(columns), len(columns), detail, partial(replaced, columns=columns))


def _odd_cells(name: str, column: pd.Series[Any], numbers: pd.Series[float], reading: TextNumbers) -> Iterator[Step]:
    """What becomes of cells that are no plain numbers."""
    texts = column.astype(str)
    change = partial(replaced, columns={name: numbers})
    kinds = {
        FindingKind.LIMITS_READ: texts.isin(reading.limits) & column.notna(),
        FindingKind.TEXTS_EMPTIED: column.notna() & numbers.isna(),
    }
    for kind, cells in kinds.items():
        if cells.any():
            yield Step(kind, (name,), int(cells.sum()), {"text": texts[cells].iloc[0]}, change)


def reading_of(column: pd.Series[Any]) -> TextNumbers | None:
    """How a column of texts is read as numbers; None where most of it is no number."""
    present = column.dropna()
    if not present.map(lambda cell: isinstance(cell, str | int | float) and not isinstance(cell, bool)).all():
        return None
    counts = present.astype(str).value_counts()
    cells = {text: match for text in counts.index if (match := CELL.fullmatch(text.strip())) is not None}
    cells = _of_one_unit(cells, counts)
    comma = _has_decimal_comma([match["digits"] for match in cells.values()])
    values = {text: number for text, match in cells.items() if (number := _number(match, comma=comma)) is not None}
    is_plain = [text in values and not _is_below(text, cells) for text in counts.index]
    shorthands = [text for text in counts.index if text.lower() in BELOW_LIMIT]
    known = [text in values or text in shorthands for text in counts.index]
    n = counts.sum()
    if len(set(values.values())) < 2 and _ways(cells, comma=comma):
        return None
    if n == 0 or counts[is_plain].sum() < LEAST_PLAIN * n or counts[known].sum() < (1 - MOST_TEXTS) * n:
        return None
    limits = {text for text in values if _is_below(text, cells)}
    values |= dict.fromkeys(shorthands, _half_of_least(values, limits))
    read = {text: match for text, match in cells.items() if text in values}
    return TextNumbers(values, frozenset(limits | set(shorthands)), _ways(read, comma=comma))


def _of_one_unit(cells: dict[str, re.Match[str]], counts: pd.Series[int]) -> dict[str, re.Match[str]]:
    """Without cells of other units than the commonest, "5 mg" beside "2 g": these are no numbers that compare."""
    units: dict[str, int] = {}
    for text, match in cells.items():
        if _unit(match):
            units[_unit(match)] = units.get(_unit(match), 0) + int(counts[text])
    commonest = max(units, key=lambda unit: units[unit], default="")
    return {text: match for text, match in cells.items() if _unit(match) in ("", commonest)}


def _unit(match: re.Match[str]) -> str:
    """In one spelling: "years" as "year"."""
    unit = (match["unit"] or "").strip().lower()
    return unit.rstrip("s.") or unit


def _has_decimal_comma(digits: list[str]) -> bool:
    """Whether commas are decimal signs: some cell has one, all can be read so, and not all are groups of three."""
    with_comma = [each for each in digits if "," in each]
    grouped = all(GROUPED.fullmatch(each) for each in with_comma)
    return bool(with_comma) and not grouped and all(DECIMAL_COMMA.fullmatch(each) for each in digits)


def _number(match: re.Match[str], *, comma: bool) -> float | None:
    digits = match["digits"]
    if comma:
        digits = digits.replace(".", "").replace(",", ".")
    elif GROUPED.fullmatch(digits):
        digits = re.sub(r"[,'’ \u00a0\u202f]", "", digits)
    if not PLAIN.fullmatch(digits):
        return None
    number = float(digits + (match["power"] or ""))
    is_negative = (match["sign"] or match["minus"]) in ("-", "−") or match["bracket"] is not None
    return (-number if is_negative else number) / (2.0 if match["limit"][:1] in ("<", "≤") else 1.0)


def _is_below(text: str, cells: Mapping[str, re.Match[str]]) -> bool:
    return text in cells and cells[text]["limit"][:1] in ("<", "≤")


def _half_of_least(values: Mapping[str, float], limits: set[str]) -> float:
    """For what is below a limit that is not said: half of the least limit that is, or of the least positive number."""
    if limits:
        return min(values[text] for text in limits)
    positive = [number for number in values.values() if number > 0]
    return min(positive) / 2 if positive else np.nan


def _ways(cells: Mapping[str, re.Match[str]], *, comma: bool) -> tuple[str, ...]:
    """What had to be read over, in words."""
    units = {(match["unit"] or "").strip() for match in cells.values()} - {""}
    found = {
        "money": any(match["money"] for match in cells.values()) or bool(units & set(MONEY)),
        "percent": "%" in units,
        "decimal commas": comma,
        "thousands": not comma and any(GROUPED.fullmatch(match["digits"]) for match in cells.values()),
    }
    others = sorted(units - {"%"} - set(MONEY))
    return (*(way for way, is_so in found.items() if is_so), *([f"unit {others[0]!r}"] if others else []))
