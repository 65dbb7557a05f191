"""The choices of an analysis: how its table is read, and how submodels are judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from gpsift.app.findings import Finding, FindingKind
from gpsift.app.tables.clean import CleaningResult, Missing, clean, prepare
from gpsift.app.tables.encode import ModelTable, Task
from gpsift.app.tables.read import read_table
from gpsift.app.tables.steps import Choice, RawTable, TableError, raise_if_strict
from gpsift.selection.held_out import HeldOut
from gpsift.selection.sizes import Rule


@dataclass(frozen=True)
class Reading:
    """How a table is read.

    Parameters
    ----------
    drop : sequence of str
        Columns to leave out.
    categorical : sequence of str
        Columns of numbers that are codes of a category. Columns of text are categories anyway.
    task : {"auto", "regression", "classification", "counts"}
        By default classification for text and for two different values, regression otherwise.
    missing : {"auto", "refuse", "drop", "mean"}
        What to do with missing values. By default rows with some are left out if they are few; otherwise numbers are
        filled in with the median, categories get a level of their own, and where much is missing a new column says
        which rows these are. Or refuse the table, drop all such rows, or fill in means.
    most_rows : int, optional
        A larger table is cut to this many rows, drawn with the seed of the analysis. By default these are 1000 if
        submodels are searched or samples ranked. For a ranking alone they are 20,000 with Gaussian noise, where
        inference is sparse beyond 2000, and 2000 otherwise.
    strict : bool
        Refuse a table that something would have to be done with, in place of doing and telling it.
    table : str, optional
        Of a file with several, the table or sheet to read; by default the one that has the target.

    Examples
    --------
    >>> import gpsift as gs
    >>> as_it_is = gs.Reading(strict=True)
    """

    drop: Sequence[str] = ()
    categorical: Sequence[str] = ()
    task: Literal["auto"] | Task = "auto"
    missing: Missing | Literal["auto"] = "auto"
    most_rows: int | None = None
    strict: bool = False
    table: str | None = None

    def read(self, data: Any, target: str | int | None) -> ModelTable:
        """A data frame or a file, made fit for a model; what is `Prepared` stays as it is."""
        if isinstance(data, ModelTable):
            return data
        return self.planned(self.found(data, target), target).table

    def found(self, data: Any, target: str | int | None) -> RawTable:
        """The table of a data frame or a file, with what was done to read it."""
        if target is None:
            raise TypeError("`target` is missing: which column is to be explained?")
        if isinstance(data, str | Path):
            return read_table(data, target=str(target), table=self.table, strict=self.strict)
        return RawTable(pd.DataFrame(data))

    def planned(self, table: RawTable, target: str | int | None) -> CleaningResult:
        """What is done with a table; a strict reading refuses it where that is anything."""
        assert target is not None
        options: Any = {"drop": self.drop, "categorical": self.categorical, "task": self.task}
        if not self.strict:
            return clean(table, target, missing=self.missing, **options)
        missing: Missing = "refuse" if self.missing == "auto" else self.missing
        prepare(table.frame, target, missing=missing, **options)  # which has messages of its own
        plan = clean(table, target, missing=missing, **options)
        raise_if_strict(plan.steps)
        return plan

    def limited(self, table: ModelTable, limit: int, seed: int, notes: list[Finding]) -> ModelTable:
        """A table of at most `limit` rows, or of as many as the user says, drawn at random; that it was is noted."""
        n, most = len(table.y), self.most_rows or limit
        if n <= most:
            return table
        if self.strict and self.most_rows is None:
            raise TableError(
                f"The table has {n:,} rows, of which {most:,} would be drawn at random, and `strict` refuses that. Say "
                "how many: ",
                Choice("most_rows", str(most)),
                ".",
            )
        notes.append(Finding(FindingKind.ROWS_DRAWN, {"used": most, "n_rows": n, "seed": seed}))
        return table.take(np.sort(np.random.default_rng(seed).choice(n, most, replace=False)))


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


def reproduce_code(data: Any, target: Any, options: Mapping[str, Any]) -> str:
    """The call of `report`, with the options that were given; a table that is no file is called `table`."""
    first = code_of(str(data)) if isinstance(data, str | PathLike) else "table"
    given = [f"{name}={code_of(value)}" for name, value in options.items()]
    aim = [] if target is None else [code_of(target)]
    arguments = ", ".join([first, *aim, "path='page.html'", *given])
    return f"import gpsift as gs\n\ngs.report({arguments})"


def code_of(value: Any) -> str:
    """A choice as it would be typed: with the fields that are not as by default."""
    if not is_dataclass(value) or isinstance(value, type):
        return repr(value)
    chosen = [
        f"{each.name}={code_of(getattr(value, each.name))}"
        for each in fields(value)
        if each.init and repr(getattr(value, each.name)) != repr(_default(each))
    ]
    return f"gs.{type(value).__name__}({', '.join(chosen)})"


def _default(each: Field[Any]) -> Any:
    return each.default_factory() if each.default_factory is not MISSING else each.default
