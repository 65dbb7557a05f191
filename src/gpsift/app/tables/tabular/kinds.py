"""What a column holds: numbers, a category, dates, or a name for each row."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([T ].*)?|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}( .*)?|\d{4}/\d{1,2}/\d{1,2}( .*)?")
# Text whose values are all different is a name for each row, if there are enough rows to tell.
LEAST_ROWS_OF_NAMES = 10
# Texts among numbers are remarks or slips up to this share of a column; above it the column is taken for a category.
MOST_TEXTS_AMONG_NUMBERS = 0.5


class Kind(Enum):
    """What a column holds."""

    NUMBER = "number"
    CATEGORY = "category"
    DATE = "date"
    NAME = "name for each row"
    MIXED = "numbers and texts"
    EMPTY = "nothing"


def kind_of(column: pd.Series[Any]) -> Kind:
    """The kind of a column, by its values."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind == "f":  # the commonest, without a copy
        return Kind.EMPTY if np.isnan(column.to_numpy()).all() else Kind.NUMBER
    present = column.dropna()
    if present.empty:
        return Kind.EMPTY
    if types.is_datetime64_any_dtype(column) or isinstance(column.dtype, pd.PeriodDtype):
        return Kind.DATE
    if types.is_bool_dtype(column) or isinstance(column.dtype, pd.CategoricalDtype):
        return Kind.CATEGORY
    if types.is_numeric_dtype(column):
        return Kind.NUMBER
    texts = present.astype(str)
    if 0 < len(not_numbers(texts)) <= MOST_TEXTS_AMONG_NUMBERS * len(texts):
        return Kind.MIXED
    if texts.map(lambda text: DATE.fullmatch(text.strip()) is not None).mean() > 0.9:
        return Kind.DATE
    if len(present) >= LEAST_ROWS_OF_NAMES and present.nunique() == len(present):
        return Kind.NAME
    return Kind.CATEGORY


def not_numbers(texts: pd.Series[Any]) -> list[str]:
    """The entries that are no numbers."""
    return list(texts[pd.to_numeric(texts.str.replace(",", "."), errors="coerce").isna()])


def counts_rows(column: pd.Series[Any]) -> bool:
    """Whether a column of numbers only counts the rows: 1, 2, 3, ... under a name such as "id"."""
    named = re.fullmatch(r"(id|index|row|nr|no|unnamed.*|column 1)", str(column.name).strip().lower()) is not None
    return named and bool((column.diff().dropna() == 1).all()) and len(column) >= LEAST_ROWS_OF_NAMES
