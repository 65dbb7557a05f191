"""The numbers, levels and dates by which a table was cleaned, so that new rows are cleaned in the same way.

A fitted model has a recipe in its `gpsift.reference.inputs.Inputs`; `gpsift.app.tables` makes and applies it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class CleaningRecipe:
    """Numbers, levels and dates that were read from the training table, by the names of columns."""

    # The value that replaces missing ones of a column: a number, or a date as text.
    fills: Mapping[str, float | str] = field(default_factory=dict)
    # Indicator columns of missing values, each with the name of the column whose missing values it marks.
    marks: Mapping[str, str] = field(default_factory=dict)
    # The levels that were not joined, of categories whose rare levels were joined.
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Categories whose missing values are a level of their own.
    own_level: tuple[str, ...] = ()
    # Columns of numbers that were read as categories.
    codes: tuple[str, ...] = ()
    # The date from which time is counted.
    first_dates: Mapping[str, str] = field(default_factory=dict)
    # The level without a column of its own, of categories with two levels.
    base_levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
