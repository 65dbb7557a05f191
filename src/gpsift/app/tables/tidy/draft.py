"""A table on its way: what it is by now, and the steps that led there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from pandas.api import types

from gpsift._utils.recipe import Recipe
from gpsift.app.tables.tabular import Step
from gpsift.app.tables.tidy.learn import learned


@dataclass(frozen=True, eq=False)
class Draft:
    """A table of floats, dates and objects, which of its columns is explained, and what was done so far."""

    frame: pd.DataFrame
    target: str
    codes: frozenset[str] = frozenset()  # columns of numbers that are a category, as the user says
    missing: str = "auto"  # what is to be done with missing values, as the user says
    steps: tuple[Step, ...] = ()
    recipe: Recipe = Recipe()  # what they have learned

    @property
    def inputs(self) -> list[str]:
        """The columns that may explain the target."""
        return [name for name in self.frame.columns if name != self.target]

    def texts(self, *, with_target: bool = False) -> Iterator[tuple[str, pd.Series[Any]]]:
        """The columns that are neither numbers nor dates, by name."""
        for name in self.frame.columns if with_target else self.inputs:
            column = self.frame[name]
            if column.dtype == object:
                yield name, column

    def numbers(self) -> list[str]:
        """The inputs that are numbers."""
        return [name for name in self.inputs if types.is_float_dtype(self.frame[name])]

    def with_step(self, step: Step) -> Draft:
        """The table with one more thing done."""
        recipe = learned(self.recipe, step, self.frame)
        return replace(self, frame=step.change(self.frame), steps=(*self.steps, step), recipe=recipe)
