"""Dates: texts that are some, and what a model takes of them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd
from pandas.api import types

from gpsift.app.findings import FindingKind
from gpsift.app.tables.tabular import Step
from gpsift.app.tables.tabular.date_parts import parts_of
from gpsift.app.tables.tidy.changes import replaced
from gpsift.app.tables.tidy.draft import Draft

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
# Names of columns whose numbers of eight digits may be dates, and which numbers these are.
DATED = re.compile("date|day|time|datum", re.IGNORECASE)
FIRST_NUMBER, LAST_NUMBER = 1600_01_01, 2200_12_31
# Of the texts of a column this share must be dates.
LEAST_DATES = 0.9


def written_otherwise(draft: Draft) -> Iterator[Step]:
    """Dates that are written as texts, or as numbers such as 20240131, read."""
    texts = {name: column for name, column in draft.texts() if name not in draft.codes}
    read = {name: moments for name, column in texts.items() if (moments := dates_of(column)) is not None}
    for first in ("day", "month", ""):
        yield from _read({name: read[name] for name in read if _first_part(texts[name]) == first}, first)
    numbers = {name: draft.frame[name] for name in draft.numbers() if DATED.search(name)}
    yield from _read({name: found for name, each in numbers.items() if (found := _of_numbers(each)) is not None}, "")


def _read(found: dict[str, pd.Series[Any]], first: str) -> Iterator[Step]:
    if found:
        detail = {"how": f", the {first} first" if first else ""}
        yield Step(FindingKind.DATES_READ, tuple(found), len(found), detail, partial(replaced, columns=found))


def taken_apart(draft: Draft) -> Iterator[Step]:
    """What a model takes of each date; the column itself stays, as the name of its parts."""
    moments = {name: draft.frame[name] for name in draft.inputs if types.is_datetime64_any_dtype(draft.frame[name])}
    if moments:
        parts = {
            name: [part.rpartition(": ")[2] for part in parts_of(column.dropna())] for name, column in moments.items()
        }
        yield Step(FindingKind.DATES_TAKEN_APART, tuple(moments), len(moments), {"parts": parts})


def dates_of(column: pd.Series[Any]) -> pd.Series[Any] | None:
    """Texts as moments; None where they are no dates."""
    texts = column.dropna().astype(str)
    if texts.empty or texts.map(lambda text: DATE.fullmatch(text) is not None).mean() < LEAST_DATES:
        return None
    plain = texts.map(_first_day)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of texts whose form pandas has to guess one by one
        moments = pd.to_datetime(plain, errors="coerce", dayfirst=_first_part(plain) == "day", format="mixed", utc=True)
    if moments.notna().mean() < LEAST_DATES:
        return None
    return moments.dt.tz_localize(None).astype("datetime64[ns]").reindex(column.index)


def _first_day(text: str) -> str:
    """Of a quarter; other texts as they are."""
    match = QUARTER.fullmatch(text)
    return text if match is None else f"{match[1]}-{3 * int(match[2]) - 2:02d}-01"


def _first_part(column: pd.Series[Any]) -> str:
    """What dates such as 1.2.2024 begin with, the day or the month; nothing where there are none.

    Dots have the day first; otherwise what is above 12 is no month, and in doubt the month is first.
    """
    texts = column.dropna().astype(str)
    matches = [match for text in texts if (match := DAY_OR_MONTH_FIRST.match(text)) is not None]
    if not matches:
        return ""
    return "day" if any(match[2] == "." or int(match[1]) > 12 for match in matches) else "month"


def _of_numbers(column: pd.Series[Any]) -> pd.Series[Any] | None:
    """Numbers of eight digits as moments; None where they are no dates."""
    present = column.dropna()
    if present.empty or not present.between(FIRST_NUMBER, LAST_NUMBER).all() or (present % 1 != 0).any():
        return None
    moments = pd.to_datetime(present.astype(int).astype(str), format="%Y%m%d", errors="coerce")
    return None if moments.isna().any() else moments.astype("datetime64[ns]").reindex(column.index)
