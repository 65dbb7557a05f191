"""Columns of any type as one of three: floats, dates, or objects."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

SECONDS_OF_A_DAY = 86_400


def plain(frame: pd.DataFrame, codes: Set[str]) -> pd.DataFrame:
    """The same table in floats, dates without time zone, and objects; `codes` are numbers that stay a category."""
    changed = {
        str(name): _plain(column, is_code=name in codes)
        for name, column in frame.items()
        if column.dtype != np.float64 or name in codes
    }
    return frame.assign(**changed)


def _plain(column: pd.Series[Any], *, is_code: bool) -> pd.Series[Any]:
    if types.is_datetime64_any_dtype(column):
        moments = column if column.dt.tz is None else column.dt.tz_convert("UTC").dt.tz_localize(None)
        return moments.astype("datetime64[ns]")
    if isinstance(column.dtype, pd.PeriodDtype):
        return column.dt.to_timestamp().astype("datetime64[ns]")
    if types.is_timedelta64_dtype(column):
        return column.dt.total_seconds() / SECONDS_OF_A_DAY
    if types.is_numeric_dtype(column) and not types.is_bool_dtype(column) and not is_code:
        return column.astype(float)
    return _objects(column, is_code=is_code)


def _objects(column: pd.Series[Any], *, is_code: bool) -> pd.Series[Any]:
    """Objects, texts without blanks around them; objects that are all numbers as these."""
    cells = [cell.strip() if isinstance(cell, str) else cell for cell in column.astype(object)]
    values = pd.Series(cells, column.index, dtype=object, name=column.name)
    is_number = [isinstance(cell, int | float | np.number) and not isinstance(cell, bool) for cell in values.dropna()]
    may_be_numbers = column.dtype == object and not is_code
    return values.astype(float) if may_be_numbers and is_number and all(is_number) else values
