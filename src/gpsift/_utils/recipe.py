"""The recipe of a cleaned table: numbers, levels and dates with which new rows are treated in the same way.

A fitted model carries it (`gpsift.reference.inputs.Inputs`); `gpsift.app.tables` makes and applies it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class CleaningRecipe:
    """Numbers, levels and dates that were learned from the table of the fit.

    Attributes
    ----------
    fills : mapping of str to float or str
        The value that replaces missing ones of a column: a number, or a date as text.
    marks : mapping of str to str
        Indicator columns of missing values, each with the name of the column that it belongs to.
    levels : mapping of str to tuple of str
        The levels that stayed of categories whose rare levels were joined.
    own_level : tuple of str
        Categories whose missing values are a level of their own.
    codes : tuple of str
        Columns of numbers that were taken as categories.
    first_dates : mapping of str to str
        The date from which time is counted.
    base_levels : mapping of str to tuple of str
        The level without a column of its own, of categories with two levels.
    """

    fills: Mapping[str, float | str] = field(default_factory=dict)
    marks: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    own_level: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    first_dates: Mapping[str, str] = field(default_factory=dict)
    base_levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
