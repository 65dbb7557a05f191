"""What may matter about a date: how long ago, which month, which weekday, which hour."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

DAY = np.timedelta64(1, "D")
HOUR = np.timedelta64(1, "h")
# Within a year the month says nothing that the days have not said.
YEAR = 366 * DAY
# Up to this span time is counted in hours.
FEW_DAYS = 3 * DAY


def parts_of(column: pd.Series[Any]) -> dict[str, np.ndarray]:
    """The parts that vary, by name, each (n,); the time since the first date is always one of them."""
    moments = column.to_numpy(dtype="datetime64[ns]")
    since, span = moments - moments.min(), moments.max() - moments.min()
    unit, word = (HOUR, "hours") if span <= FEW_DAYS else (DAY, "days")
    found = {f"{column.name}: {word}": since / unit}
    found |= {f"{column.name}: {part}": values for part, values in _cycles(column, span).items()}
    return {name: values for name, values in found.items() if np.ptp(values) > 0} or found


def _cycles(column: pd.Series[Any], span: np.timedelta64) -> dict[str, np.ndarray]:
    dates = column.dt
    cycles: dict[str, np.ndarray] = {}
    if span > YEAR:
        cycles["month"] = dates.month.to_numpy(dtype=float)
    # Dates that all are on the same day of their months or years are not about weekdays.
    if dates.day.nunique() > 1:
        cycles["weekday"] = dates.day_of_week.to_numpy(dtype=float)
    cycles["hour"] = dates.hour.to_numpy(dtype=float)
    return cycles
