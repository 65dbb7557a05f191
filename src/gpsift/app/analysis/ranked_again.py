"""A saved model ranked again: at the rows that it was fitted on, or at those of another table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gpsift.app.analysis.columns import odd_columns
from gpsift.app.analysis.record import MOST_FIRST
from gpsift.app.analysis.saved_inputs import features_of, inputs_of
from gpsift.app.findings import Finding
from gpsift.app.tables.tabular import Table
from gpsift.reference.base import Reference
from gpsift.reference.ensemble import Ensemble
from gpsift.relevance import Measure
from gpsift.relevance.ranking import Ranking
from gpsift.selection.orders import unit_ranking


@dataclass(frozen=True, eq=False)
class RankedAgain:
    """What is shown of it.

    Attributes
    ----------
    model : str
        The file of the model.
    table : str or None
        That of the rows; None where they are those of the fit.
    leading : Ranking
        Of the user's columns.
    cautions : tuple of Finding
        What a reader should know, what was done with the table among it.
    seed : int
    command : str or None
        What to type to have the same again.
    """

    model: str
    table: str | None
    leading: Ranking
    cautions: tuple[Finding, ...] = ()
    seed: int = 0
    command: str | None = None
    seconds: float = 0.0

    @property
    def source(self) -> str:
        return self.model if self.table is None else f"{self.table}, by {self.model}"

    @property
    def target(self) -> str:
        """What is explained; a model knows no name for it."""
        return f"the target of {self.model}"

    @property
    def n_rows(self) -> int:
        return len(self.leading.points)

    @cached_property
    def told(self) -> Mapping[str, Ranking]:
        """The ranking of the columns that deserve a line each, by the name of its measure."""
        shown = self.leading.order[: self.leading.n_shown].tolist()
        told = self.leading.of_columns(shown, [self.leading.names[j] for j in shown])
        return {self.leading.measure.split("(")[0]: told}

    @property
    def leading_told(self) -> Ranking:
        """The same ranking without its name."""
        return next(iter(self.told.values()))

    @cached_property
    def odd_columns(self) -> tuple[Finding, ...]:
        """What is odd about single columns, in their order."""
        return odd_columns(self.told)

    @property
    def n_first(self) -> int:
        """The k of "among the first k", at most five."""
        return max(1, min(MOST_FIRST, len(self.leading.names) // 2))


def ranked_again(
    model: Reference | Ensemble, table: Table | None, measure: Measure, *, names: tuple[str, str | None], **options: Any
) -> RankedAgain:
    """Rank a saved model; `names` are those of the files of model and table, and options those of `rank`."""
    tidied = None if table is None else inputs_of(table, model)
    units = features_of(model).units(model.inputs.names)
    ranking = unit_ranking(model, units, measure, None if tidied is None else tidied.X, **options)
    cautions = () if tidied is None else tuple(step.finding for step in tidied.steps)
    return RankedAgain(*names, ranking, cautions, options.get("seed", 0))
