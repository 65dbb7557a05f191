"""The choices of an analysis: how its table is read, and how submodels are judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from gpsift.selection.held_out import HeldOut
from gpsift.selection.sizes import Rule
from gpsift.tabular import Prepared, prepare, read_file
from gpsift.tabular.prepare import Missing, Task


@dataclass(frozen=True)
class Reading:
    """How a table is read.

    Parameters
    ----------
    drop, categorical, task, missing
        As in `gpsift.tabular.prepare`.
    most_rows : int, optional
        A larger table is cut to this many rows, drawn with the seed of the analysis. By default these are 1000 if
        submodels are searched or samples ranked. For a ranking alone they are 20,000 with Gaussian noise, where
        inference is sparse beyond 2000, and 2000 otherwise.
    """

    drop: Sequence[str] = ()
    categorical: Sequence[str] = ()
    task: Literal["auto"] | Task = "auto"
    missing: Missing = "refuse"
    most_rows: int | None = None

    def read(self, data: Any, target: str | int | None) -> Prepared:
        """A data frame or a file, made fit for a model; what is `Prepared` stays as it is."""
        if isinstance(data, Prepared):
            return data
        if target is None:
            raise TypeError("`target` is missing: which column is to be explained?")
        frame = read_file(data) if isinstance(data, str | Path) else pd.DataFrame(data)
        return prepare(
            frame, target, drop=self.drop, categorical=self.categorical, task=self.task, missing=self.missing
        )


@dataclass(frozen=True)
class Selection:
    """How submodels are judged, and when one is enough.

    Parameters
    ----------
    cv : HeldOut, int, splitter or splits, optional
        As in `search`; leave-one-out by default. Folds that are given by their number are drawn with the seed of the
        analysis.
    rule : {"one-se", "negligible", "explained"}
        Of `suggest_size`.
    """

    cv: HeldOut | Any = None
    rule: Rule = "one-se"
