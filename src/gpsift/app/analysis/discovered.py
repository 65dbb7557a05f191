"""From a table to the columns that matter, at a rate of false discoveries."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from gpsift._utils.parallel import Work, waiting_bar
from gpsift.app.analysis.choices import Reading
from gpsift.app.analysis.run import MOST_ROWS_OF_A_SEARCH, likelihood_for, source_of
from gpsift.app.findings import Finding
from gpsift.gp import GP
from gpsift.selection.conditional_test.conditionals import quick_hyper
from gpsift.selection.conditional_test.discover import Discoveries, discover
from gpsift.selection.conditional_test.folds import InOrder
from gpsift.selection.data import Features


@dataclass(frozen=True, eq=False)
class Discovered:
    """Which columns of a table matter, and what a reader should know of the table."""

    source: str
    target: str
    task: str
    n_rows: int
    found: Discoveries
    cautions: tuple[Finding, ...]
    seed: int
    command: str | None = None
    seconds: float = 0.0

    @property
    def n_columns(self) -> int:
        return self.found.n_features

    def _repr_html_(self) -> str:
        return self.found._repr_html_()


def discover_columns(
    data: Any,
    target: str | int | None = None,
    *,
    rate: float = 0.1,
    folds: int | InOrder = 5,
    repeats: int = 1,
    likelihood: str | None = None,
    reading: Reading = Reading(),
    seed: int = 0,
    work: Work = Work(),
) -> Discovered:
    """`discover` for the columns of a table; categories are tested as one. The parameters are those of `analyse`."""
    began = time.perf_counter()
    with waiting_bar("reading", work.progress):
        table = reading.read(data, target)
    notes = list(table.notes)
    table = reading.limited(table, MOST_ROWS_OF_A_SEARCH, seed, notes)
    model = GP(likelihood=likelihood or likelihood_for(table), hyper=quick_hyper(*table.X.shape))
    folder = work.folder()
    found = discover(
        table.X,
        table.y,
        model,
        rate=rate,
        folds=folds,
        repeats=repeats,
        features=Features(table.groups, table.categories),
        seed=seed,
        work=work if folder is None else replace(work, checkpoint=folder / "discoveries.sqlite"),
    )
    return Discovered(
        source=source_of(data),
        target=table.target,
        task=table.task,
        n_rows=len(table.y),
        found=found,
        cautions=tuple(notes),
        seed=seed,
        seconds=time.perf_counter() - began,
    )
