"""Options for reading a table and for judging submodels, and the code that repeats an analysis with its options."""

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
from gpsift.selection.cross_validation import HeldOut
from gpsift.selection.path import Rule


@dataclass(frozen=True)
class Reading:
    """The options for reading and cleaning a table.

    Parameters
    ----------
    drop : sequence of str
        Columns to leave out.
    categorical : sequence of str
        Columns of numbers that are codes of a category. Columns of text are categories anyway.
    task : {"auto", "regression", "classification", "counts"}
        By default classification for text and for two different values, regression otherwise.
    missing : {"auto", "refuse", "drop", "mean"}
        The treatment of missing values. By default rows with missing values are dropped if they are few. Otherwise
        numbers are filled in with the median, categories get a level of their own, and an indicator column is added
        where much is missing. "refuse" raises an error, "drop" drops all such rows, and "mean" fills in means.
    most_rows : int, optional
        A larger table is cut to this many rows, drawn with the seed of the analysis. The default is 1000 if
        submodels are searched or samples are ranked. For a ranking alone it is 20,000 with Gaussian noise, where
        inference is sparse beyond 2000 rows, and 2000 otherwise.
    strict : bool
        Raise an error if the table needs cleaning, and list what it needs.
    table : str, optional
        The table or sheet to read from a file with several; by default the one that has the target.

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
        """Read and clean a data frame or a file. A `ModelTable` is returned unchanged."""
        if isinstance(data, ModelTable):
            return data
        return self.clean(self.load(data, target), target).table

    def load(self, data: Any, target: str | int | None) -> RawTable:
        """Read a data frame or a file without cleaning it."""
        if target is None:
            raise TypeError("`target` is missing: which column is to be explained?")
        if isinstance(data, str | Path):
            return read_table(data, target=str(target), table=self.table, strict=self.strict)
        return RawTable(pd.DataFrame(data))

    def clean(self, table: RawTable, target: str | int | None) -> CleaningResult:
        """Clean a table, or raise an error if it needs cleaning and reading is strict."""
        assert target is not None
        options: Any = {"drop": self.drop, "categorical": self.categorical, "task": self.task}
        if not self.strict:
            return clean(table, target, missing=self.missing, **options)
        missing: Missing = "refuse" if self.missing == "auto" else self.missing
        prepare(table.frame, target, missing=missing, **options)  # its messages name the remedies
        result = clean(table, target, missing=missing, **options)
        raise_if_strict(result.steps)
        return result

    def limit_rows(self, table: ModelTable, limit: int, seed: int, notes: list[Finding]) -> ModelTable:
        """Draw at most `limit` rows at random, or as many as the user says, with a note about it."""
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
    """The options for judging submodels, and for deciding which size is enough.

    Parameters
    ----------
    cv : HeldOut, int, splitter or splits, optional
        The same as in `search`; leave-one-out by default. A number of folds draws them with the seed of the analysis.
    rule : {"one-se", "negligible", "explained"}
        The rule of `suggest_size`.
    """

    cv: HeldOut | Any = None
    rule: Rule = "one-se"


def reproduce_code(data: Any, target: Any, options: Mapping[str, Any]) -> str:
    """Return the call of `report` as code, with the options that were given. A data frame is called `table`."""
    first = code_of(str(data)) if isinstance(data, str | PathLike) else "table"
    keywords = [f"{name}={code_of(value)}" for name, value in options.items()]
    positional = [] if target is None else [code_of(target)]
    arguments = ", ".join([first, *positional, "path='page.html'", *keywords])
    return f"import gpsift as gs\n\ngs.report({arguments})"


def code_of(value: Any) -> str:
    """Return a value as code. An options object is written with the fields that differ from the default."""
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
