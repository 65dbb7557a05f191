"""Columns that name or number the rows, and free text: no model can learn from them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from gpsift.app.findings import FindingKind
from gpsift.app.tables.tabular import Step
from gpsift.app.tables.tabular.kinds import LEAST_ROWS_OF_NAMES
from gpsift.app.tables.tabular.prepare import MOST_LEVELS
from gpsift.app.tables.tidy.columns import left_out
from gpsift.app.tables.tidy.draft import Draft

# Of texts, the share of different ones above which they name the rows.
MOST_DIFFERENT = 0.5
# Words of a text on average, from which it is prose.
WORDS_OF_PROSE = 4
NUMBERING = re.compile(
    r"(unnamed.*|column 1|row\W?names?|row|obs|observation|index|case|record|serial|seq|sequence|sample|key|uuid"
    r"|(.*[\W_])?(id|no|nr|num|number)\.?|.*[a-z]ID)",
)


def of_rows(draft: Draft) -> Iterator[Step]:
    """Texts that differ from row to row, whole numbers that do so under the name of a number, and prose."""
    many = {name: column for name, column in draft.texts() if name not in draft.codes and _varies(column)}
    prose = [name for name, column in many.items() if _is_prose(column)]
    names = [name for name in many if name not in prose]
    yield from left_out(FindingKind.COLUMN_NAMES_ROWS, names)
    yield from left_out(FindingKind.COLUMN_FREE_TEXT, prose)
    numbering = [name for name in draft.numbers() if numbers_rows(draft.frame[name])]
    yield from left_out(FindingKind.COLUMN_NUMBERS_ROWS, numbering)


def numbers_rows(column: pd.Series[Any]) -> bool:
    """Whether whole numbers, different in all rows, only identify these, as their name says."""
    if len(column) < LEAST_ROWS_OF_NAMES or not _is_numbering(str(column.name).strip()):
        return False
    values = column.dropna().to_numpy()
    return len(values) > 0 and bool(np.all(values == np.floor(values))) and len(np.unique(values)) == len(values)


def _is_numbering(name: str) -> bool:
    return NUMBERING.fullmatch(name) is not None or NUMBERING.fullmatch(name.lower()) is not None


def _varies(column: pd.Series[Any]) -> bool:
    """Whether texts are nearly as many as rows."""
    present = column.dropna()
    n_levels = present.astype(str).nunique()
    enough = len(present) >= LEAST_ROWS_OF_NAMES
    return enough and (
        n_levels == len(present) or (n_levels > MOST_LEVELS and n_levels > MOST_DIFFERENT * len(present))
    )


def _is_prose(column: pd.Series[Any]) -> bool:
    return bool(column.dropna().map(lambda cell: len(str(cell).split())).mean() >= WORDS_OF_PROSE)
