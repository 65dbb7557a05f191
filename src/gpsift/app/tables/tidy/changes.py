"""Changes of a table that several steps are made of."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pandas as pd


def replaced(frame: pd.DataFrame, columns: Mapping[str, pd.Series[Any]]) -> pd.DataFrame:
    """With other values in some columns, or with new columns."""
    return frame.assign(**columns)


def without_columns(frame: pd.DataFrame, names: Collection[str]) -> pd.DataFrame:
    """Without some columns."""
    return frame[[name for name in frame.columns if name not in names]]


def with_rows(frame: pd.DataFrame, kept: np.ndarray) -> pd.DataFrame:
    """With some of the rows, (n,) booleans."""
    return frame[kept]
