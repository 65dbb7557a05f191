"""What was learned from a table while it was made fit for a model, so that new rows can be treated in the same way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Recipe:
    """Numbers, levels and dates that belong to the table of the fit.

    Attributes
    ----------
    fills : mapping of str to float or str
        What stands for missing values of a column: a number, or a date as text.
    marks : mapping of str to str
        Columns that say where another one is missing, with the names of those.
    levels : mapping of str to tuple of str
        Of categories whose rare levels were joined, those that stayed.
    own_level : tuple of str
        Categories whose missing values are a level of their own.
    codes : tuple of str
        Columns of numbers that are a category.
    first_dates : mapping of str to str
        The date from which time is counted.
    base_levels : mapping of str to tuple of str
        Of categories with two levels, the one that has no column of its own.
    """

    fills: Mapping[str, float | str] = field(default_factory=dict)
    marks: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    own_level: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    first_dates: Mapping[str, str] = field(default_factory=dict)
    base_levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
