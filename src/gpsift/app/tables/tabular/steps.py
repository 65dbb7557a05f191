"""What is done with a table, one thing at a time, as records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from gpsift.app.findings import Finding, FindingKind, told
from gpsift.app.tables.tabular.errors import TableError


def as_it_is(frame: pd.DataFrame) -> pd.DataFrame:
    """The change of a step that was done while the file was read."""
    return frame


@dataclass(frozen=True, eq=False)
class Step:
    """One thing that is done with a table.

    Attributes
    ----------
    kind : FindingKind
        What is done.
    columns : tuple of str
        To which columns; empty where it is about rows or lines.
    count : int
        To how many columns, rows, lines or cells.
    detail : mapping
        What its words need besides.
    change : callable
        From a table to the table with it done.
    """

    kind: FindingKind
    columns: tuple[str, ...] = ()
    count: int = 0
    detail: Mapping[str, Any] = field(default_factory=dict)
    change: Callable[[pd.DataFrame], pd.DataFrame] = field(default=as_it_is, repr=False)

    @property
    def finding(self) -> Finding:
        """The same for a reader."""
        return Finding(self.kind, {"columns": self.columns, "count": self.count, **self.detail})


@dataclass(frozen=True, eq=False)
class Table:
    """A table as it was read, and what was done for that."""

    frame: pd.DataFrame
    steps: tuple[Step, ...] = ()


def refuse(steps: Sequence[Step]) -> None:
    """Refuse a table that cannot be used as it is."""
    if steps:
        ((_, text),) = told(step.finding for step in steps)
        raise TableError("Something would have to be done with the table, and `strict` refuses that: ", text)
