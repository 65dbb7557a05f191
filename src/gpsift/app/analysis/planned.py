"""What an analysis would do with a table, without the analysis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpsift.app.analysis.choices import Reading
from gpsift.app.analysis.run import likelihood_for, source_of, within_reach
from gpsift.app.findings import Finding, FindingKind
from gpsift.app.tables.encode import ModelTable
from gpsift.gp import GP
from gpsift.gp.sparse import Sparse


@dataclass(frozen=True, eq=False)
class PlannedAnalysis:
    """Which rows and columns would be used, as what, and what would be done with the table for that."""

    source: str
    target: str
    task: str
    n_rows: int
    kinds: dict[str, str]  # of each column that would be used
    cautions: tuple[Finding, ...]
    seed: int

    @property
    def n_columns(self) -> int:
        return len(self.kinds)


def planned_analysis(
    data: Any, target: str | int | None, reading: Reading, *, likelihood: str | None, seed: int, ranks_only: bool
) -> PlannedAnalysis:
    """The plan of `analyse`, up to the first fit."""
    table = reading.read(data, target)
    notes = list(table.notes)
    model = GP(likelihood=likelihood or likelihood_for(table))
    table, model = within_reach(table, model, reading, seed=seed, ranks_only=ranks_only, notes=notes)
    if isinstance(model.inference, Sparse):  # by what, a fit decides
        notes.append(Finding(FindingKind.INFERENCE_SPARSE, {"n_rows": len(table.y)}))
    kinds = {name: _kind(table, name) for name in table.columns}
    return PlannedAnalysis(source_of(data), table.target, table.task, len(table.y), kinds, tuple(notes), seed)


def _kind(table: ModelTable, name: str) -> str:
    if name not in table.groups:
        return "a number"
    return "a date" if name in table.dates else "a category"
