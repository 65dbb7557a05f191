"""Categories of many levels: rare ones are joined, and where that is not enough, the column is left out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd

from gpsift.app.findings import FindingKind
from gpsift.app.tables.tabular import Step
from gpsift.app.tables.tabular.prepare import MOST_LEVELS
from gpsift.app.tables.tidy.changes import replaced
from gpsift.app.tables.tidy.columns import left_out
from gpsift.app.tables.tidy.draft import Draft

# Levels that stay, the commonest; one more stands for the others.
KEPT_LEVELS = MOST_LEVELS - 1
# A level needs this many rows to stay.
FEWEST_ROWS = 5
OTHER = "(other)"
# Joined levels that are more of the rows than this leave nothing of the category.
MOST_JOINED = 0.5


def too_many(draft: Draft) -> Iterator[Step]:
    """Categories of more levels than a model takes."""
    joined, counts, hopeless = {}, {}, []
    for name, column in draft.texts():
        if column.nunique() <= MOST_LEVELS:
            continue
        kept = _kept_levels(column)
        if column.isin(kept).sum() < (1 - MOST_JOINED) * column.notna().sum():
            hopeless.append(name)
            continue
        joined[name] = column.where(column.isin(kept) | column.isna(), OTHER)
        counts[name] = int(column.nunique() - len(kept))
    yield from left_out(FindingKind.COLUMN_MANY_LEVELS, hopeless, most=MOST_LEVELS)
    if joined:
        detail = {"joined": counts, "level": OTHER}
        yield Step(
            FindingKind.LEVELS_JOINED, tuple(joined), sum(counts.values()), detail, partial(replaced, columns=joined)
        )


def _kept_levels(column: pd.Series[Any]) -> list[Any]:
    counts = column.value_counts()
    return list(counts.index[counts >= FEWEST_ROWS][:KEPT_LEVELS])
