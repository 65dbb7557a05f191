"""The recipe of a cleaned table: values learned from it, by which new rows take the same form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class CleaningRecipe:
    """Numbers, levels and dates that cleaning has learned from the table of the fit.

    Attributes
    ----------
    fills : mapping of str to float or str
        The value that replaces missing values of a column: a number, or a date as text.
    marks : mapping of str to str
        Indicator columns of missing values, with the column that each is about.
    levels : mapping of str to tuple of str
        The levels that were kept, for categories whose rare levels were joined.
    own_level : tuple of str
        Categories whose missing values are a level of their own.
    codes : tuple of str
        Columns of numbers that are categories.
    first_dates : mapping of str to str
        The date from which time is counted.
    base_levels : mapping of str to tuple of str
        The level without an indicator, for categories of two levels.
    """

    fills: Mapping[str, float | str] = field(default_factory=dict)
    marks: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    own_level: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    first_dates: Mapping[str, str] = field(default_factory=dict)
    base_levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
