"""Infer the type of a column, and read its texts as numbers or dates.

`infer_type` decides from the values whether a column holds numbers, categories, dates or names of rows.
`parse_number_texts` reads numbers with units, money, per cent, thousands separators, decimal commas or limits of
detection. `parse_date_texts` and `parse_date_numbers` read dates. `date_features` turns dates into numbers for a model.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Set
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

STRICT_DATE = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}([T ].*)?|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}( .*)?|\d{4}/\d{1,2}/\d{1,2}( .*)?"
)
# A column of texts that all differ names the rows, if there are at least this many rows.
LEAST_ROWS_OF_NAMES = 10
# Texts among numbers are remarks or errors up to this share of a column. Above it the column is a category.
MOST_TEXTS_AMONG_NUMBERS = 0.5


class ColumnType(Enum):
    """The types of columns that are treated in different ways."""

    NUMBER = "number"
    CATEGORY = "category"
    DATE = "date"
    NAME = "name for each row"
    MIXED = "numbers and texts"
    EMPTY = "nothing"


def infer_type(column: pd.Series[Any]) -> ColumnType:
    """Return the type of a column, judged by its values."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind == "f":  # the commonest type; no copy is made
        return ColumnType.EMPTY if np.isnan(column.to_numpy()).all() else ColumnType.NUMBER
    present = column.dropna()
    if present.empty:
        return ColumnType.EMPTY
    if types.is_datetime64_any_dtype(column) or isinstance(column.dtype, pd.PeriodDtype):
        return ColumnType.DATE
    if types.is_bool_dtype(column) or isinstance(column.dtype, pd.CategoricalDtype):
        return ColumnType.CATEGORY
    if types.is_numeric_dtype(column):
        return ColumnType.NUMBER
    texts = present.astype(str)
    if 0 < len(texts_among_numbers(texts)) <= MOST_TEXTS_AMONG_NUMBERS * len(texts):
        return ColumnType.MIXED
    if texts.map(lambda text: STRICT_DATE.fullmatch(text.strip()) is not None).mean() > 0.9:
        return ColumnType.DATE
    if len(present) >= LEAST_ROWS_OF_NAMES and present.nunique() == len(present):
        return ColumnType.NAME
    return ColumnType.CATEGORY


def basic_type(column: pd.Series[Any]) -> ColumnType:
    """Return the type of a column of floats, dates or objects."""
    if types.is_datetime64_any_dtype(column):
        return ColumnType.DATE
    return ColumnType.NUMBER if types.is_float_dtype(column) else ColumnType.CATEGORY


def texts_among_numbers(texts: pd.Series[Any]) -> list[str]:
    """Return the entries that are not numbers."""
    return list(texts[pd.to_numeric(texts.str.replace(",", "."), errors="coerce").isna()])


def is_row_count(column: pd.Series[Any]) -> bool:
    """Return whether a column only counts the rows: 1, 2, 3, ... under a name such as "id"."""
    named = re.fullmatch(r"(id|index|row|nr|no|unnamed.*|column 1)", str(column.name).strip().lower()) is not None
    return named and bool((column.diff().dropna() == 1).all()) and len(column) >= LEAST_ROWS_OF_NAMES


def raise_if_constant(column: pd.Series[Any]) -> None:
    """Raise an error if the target is empty or has the same value in every row."""
    present = column.dropna()
    if present.empty:
        raise ValueError(f"The target {column.name!r} holds nothing.")
    if present.nunique() < 2:
        raise ValueError(
            f"The target {column.name!r} is {value_text(present.iloc[0])} in every row; there is nothing to explain."
        )


def value_text(value: Any) -> str:
    """Return a value of the target as text, numbers without superfluous digits."""
    return f"{value:g}" if isinstance(value, float) else str(value)


SECONDS_OF_A_DAY = 86_400


def to_basic_types(frame: pd.DataFrame, codes: Set[str]) -> pd.DataFrame:
    """Return the table with three types only: floats, dates without time zone, and objects.

    Columns of numbers in `codes` are categories and become objects.
    """
    changed = {
        str(name): _to_basic_type(column, is_code=name in codes)
        for name, column in frame.items()
        if column.dtype != np.float64 or name in codes
    }
    return frame.assign(**changed)


def _to_basic_type(column: pd.Series[Any], *, is_code: bool) -> pd.Series[Any]:
    """Return a column as floats, dates or objects. Texts are stripped; objects that are all numbers become floats."""
    if types.is_datetime64_any_dtype(column):
        times = column if column.dt.tz is None else column.dt.tz_convert("UTC").dt.tz_localize(None)
        return times.astype("datetime64[ns]")
    if isinstance(column.dtype, pd.PeriodDtype):
        return column.dt.to_timestamp().astype("datetime64[ns]")
    if types.is_timedelta64_dtype(column):
        return column.dt.total_seconds() / SECONDS_OF_A_DAY
    if types.is_numeric_dtype(column) and not types.is_bool_dtype(column) and not is_code:
        return column.astype(float)
    cells = [cell.strip() if isinstance(cell, str) else cell for cell in column.astype(object)]
    values = pd.Series(cells, column.index, dtype=object, name=column.name)
    is_number = [isinstance(cell, int | float | np.number) and not isinstance(cell, bool) for cell in values.dropna()]
    may_be_numbers = column.dtype == object and not is_code
    return values.astype(float) if may_be_numbers and is_number and all(is_number) else values


# Of a column's texts at least LEAST_PLAIN must be plain numbers, and at most MOST_TEXTS may be no numbers at all.
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
# "1,234" or "1'234,567": groups of three. If all numbers with a comma are of this kind, commas separate thousands.
GROUPED = re.compile(r"\d{1,3}(?P<sign>[,'’ \u00a0\u202f])\d{3}(?:(?P=sign)\d{3})*(?:\.\d+)?")
COMMA_DIGITS = r"(\d{1,3}(\.\d{3})+|\d+)(,\d+)?"
DECIMAL_COMMA = re.compile(rf"{COMMA_DIGITS}|,\d+")
PLAIN = re.compile(r"\d+\.?\d*|\.\d+")


@dataclass(frozen=True, eq=False)
class TextNumbers:
    """The numbers that the texts of a column denote."""

    values: Mapping[str, float]  # the number of each text
    limits: frozenset[str] = frozenset()  # texts that denote a value below a limit of detection
    notations: tuple[str, ...] = ()  # the notations of the texts, in words


def parse_number_texts(column: pd.Series[Any]) -> TextNumbers | None:
    """Read a column of texts as numbers. Return None if too few of the texts are numbers.

    A value below a limit of detection becomes half of the limit.
    """
    present = column.dropna()
    if not present.map(lambda cell: isinstance(cell, str | int | float) and not isinstance(cell, bool)).all():
        return None
    counts = present.astype(str).value_counts()
    cells = {text: match for text in counts.index if (match := CELL.fullmatch(text.strip())) is not None}
    cells = _keep_one_unit(cells, counts)
    # Commas are decimal signs if all cells can be read so, and not all are groups of three digits.
    digits = [match["digits"] for match in cells.values()]
    with_comma = [each for each in digits if "," in each]
    is_grouped = all(GROUPED.fullmatch(each) for each in with_comma)
    comma = bool(with_comma) and not is_grouped and all(DECIMAL_COMMA.fullmatch(each) for each in digits)
    values = {text: number for text, match in cells.items() if (number := _number(match, comma=comma)) is not None}
    is_plain = [text in values and not _is_below(text, cells) for text in counts.index]
    shorthands = [text for text in counts.index if text.lower() in BELOW_LIMIT]
    known = [text in values or text in shorthands for text in counts.index]
    n = counts.sum()
    if len(set(values.values())) < 2 and _notations(cells, comma=comma):
        return None
    if n == 0 or counts[is_plain].sum() < LEAST_PLAIN * n or counts[known].sum() < (1 - MOST_TEXTS) * n:
        return None
    limits = {text for text in values if _is_below(text, cells)}
    # "n.d." and the like are half of the least limit, or else of the least positive number.
    if limits:
        least = min(values[text] for text in limits)
    else:
        least = min((number for number in values.values() if number > 0), default=np.nan) / 2
    values |= dict.fromkeys(shorthands, least)
    read = {text: match for text, match in cells.items() if text in values}
    return TextNumbers(values, frozenset(limits | set(shorthands)), _notations(read, comma=comma))


def _keep_one_unit(cells: dict[str, re.Match[str]], counts: pd.Series[int]) -> dict[str, re.Match[str]]:
    """Drop cells with another unit than the commonest, such as "2 g" among "5 mg": the numbers do not compare."""
    units: dict[str, int] = {}
    for text, match in cells.items():
        if _unit(match):
            units[_unit(match)] = units.get(_unit(match), 0) + int(counts[text])
    commonest = max(units, key=lambda unit: units[unit], default="")
    return {text: match for text, match in cells.items() if _unit(match) in ("", commonest)}


def _unit(match: re.Match[str]) -> str:
    """Return the unit of a cell in one spelling, such as "year" for "Years"."""
    unit = (match["unit"] or "").strip().lower()
    return unit.rstrip("s.") or unit


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


def _notations(cells: Mapping[str, re.Match[str]], *, comma: bool) -> tuple[str, ...]:
    """List the notations of some cells in words, such as "percent"."""
    units = {(match["unit"] or "").strip() for match in cells.values()} - {""}
    found = {
        "money": any(match["money"] for match in cells.values()) or bool(units & set(MONEY)),
        "percent": "%" in units,
        "decimal commas": comma,
        "thousands": not comma and any(GROUPED.fullmatch(match["digits"]) for match in cells.values()),
    }
    others = sorted(units - {"%"} - set(MONEY))
    return (*(name for name, is_found in found.items() if is_found), *([f"unit {others[0]!r}"] if others else []))


MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
DATE = re.compile(
    rf"""\d{{4}}[-/.]\d{{1,2}}([-/.]\d{{1,2}})?([T\ ].*)?      # 2024-01-31, 2024-01
    |\d{{1,2}}[./-]\d{{1,2}}[./-]\d{{2,4}}([T\ ].*)?           # 31.1.2024, 1/31/24
    |\d{{1,2}}[\ -](?:{MONTHS})[a-z]*\.?[\ -]\d{{2,4}}(\ .*)?  # 31 Jan 2024
    |(?:[a-z]{{3,9}},?\ )?(?:{MONTHS})[a-z]*\.?\ (\d{{1,2}},?\ )?\d{{4}}(\ .*)?  # Jan 31, 2024
    |\d{{4}}[-\ ]?Q[1-4]                                       # 2024Q1
    """,
    re.VERBOSE | re.IGNORECASE,
)
DAY_OR_MONTH_FIRST = re.compile(r"(\d{1,2})([./-])(\d{1,2})[./-]\d{2,4}")
QUARTER = re.compile(r"(\d{4})[-\ ]?Q([1-4])", re.IGNORECASE)
# Only columns with such names may hold dates as numbers of eight digits, in this range.
DATED = re.compile("date|day|time|datum", re.IGNORECASE)
FIRST_NUMBER, LAST_NUMBER = 1600_01_01, 2200_12_31
# This share of the texts of a column must be dates.
LEAST_DATES = 0.9


def parse_date_texts(column: pd.Series[Any]) -> pd.Series[Any] | None:
    """Read a column of texts as dates. Return None if too few of the texts are dates."""
    texts = column.dropna().astype(str)
    if texts.empty or texts.map(lambda text: DATE.fullmatch(text) is not None).mean() < LEAST_DATES:
        return None
    plain = texts.map(_quarter_to_date)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas warns if it guesses the format of each text
        times = pd.to_datetime(plain, errors="coerce", dayfirst=date_order(plain) == "day", format="mixed", utc=True)
    if times.notna().mean() < LEAST_DATES:
        return None
    return times.dt.tz_localize(None).astype("datetime64[ns]").reindex(column.index)


def _quarter_to_date(text: str) -> str:
    """Return the first day of a quarter such as "2024Q1", and any other text unchanged."""
    match = QUARTER.fullmatch(text)
    return text if match is None else f"{match[1]}-{3 * int(match[2]) - 2:02d}-01"


def date_order(column: pd.Series[Any]) -> str:
    """Return whether dates such as 1.2.2024 begin with the "day" or the "month"; "" if there are none.

    The day is first if dots separate the numbers, or if a first number exceeds 12. Otherwise the month is first.
    """
    texts = column.dropna().astype(str)
    matches = [match for text in texts if (match := DAY_OR_MONTH_FIRST.match(text)) is not None]
    if not matches:
        return ""
    return "day" if any(match[2] == "." or int(match[1]) > 12 for match in matches) else "month"


def parse_date_numbers(column: pd.Series[Any]) -> pd.Series[Any] | None:
    """Read numbers such as 20240131 as dates. Return None unless all of them are dates."""
    present = column.dropna()
    if present.empty or not present.between(FIRST_NUMBER, LAST_NUMBER).all() or (present % 1 != 0).any():
        return None
    times = pd.to_datetime(present.astype(int).astype(str), format="%Y%m%d", errors="coerce")
    return None if times.isna().any() else times.astype("datetime64[ns]").reindex(column.index)


DAY = np.timedelta64(1, "D")
HOUR = np.timedelta64(1, "h")
# Only dates that span more than a year have a month: within a year the number of days determines it.
YEAR = 366 * DAY
# Up to this span, time is counted in hours.
FEW_DAYS = 3 * DAY
# Parts of a date that repeat, and their names in pandas.
CALENDAR = {"month": "month", "weekday": "day_of_week", "hour": "hour"}


def date_features(column: pd.Series[Any]) -> dict[str, np.ndarray]:
    """Return the features that encode a date, by name, each (n,).

    These are the time since the first date, and month, weekday and hour as far as they vary.
    """
    first, span = column.min(), column.max() - column.min()
    parts = ["hours" if span <= FEW_DAYS else "days"]
    if span > YEAR:
        parts.append("month")
    # If all dates have the same day of the month, as in yearly data, the weekday means nothing.
    if column.dt.day.nunique() > 1:
        parts.append("weekday")
    found = {f"{column.name}: {part}": date_part(column, part, first) for part in [*parts, "hour"]}
    return {name: values for name, values in found.items() if np.ptp(values) > 0} or found


def date_part(column: pd.Series[Any], part: str, first: pd.Timestamp) -> np.ndarray:
    """Return the month, weekday or hour of dates, or the days or hours since the first date, (n,)."""
    if part in CALENDAR:
        return getattr(column.dt, CALENDAR[part]).to_numpy(dtype=float)
    since = column.to_numpy(dtype="datetime64[ns]") - np.datetime64(first)
    return np.asarray(since / (HOUR if part == "hours" else DAY), dtype=float)
