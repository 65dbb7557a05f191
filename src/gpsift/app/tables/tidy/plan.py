"""The plan: which steps a table needs, each found in the table that those before it leave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

import pandas as pd
from pandas.api import types

from gpsift._utils.recipe import Recipe
from gpsift.app.findings import Finding, FindingKind
from gpsift.app.tables.tabular import Prepared, Step, Table
from gpsift.app.tables.tabular.encode import TASKS, Task, encoded, refuse_constant
from gpsift.app.tables.tabular.kinds import Kind
from gpsift.app.tables.tabular.layout import told_apart
from gpsift.app.tables.tabular.prepare import MISSINGS, Missing, refuse_unknown, target_name, without_holes
from gpsift.app.tables.tidy import columns, dates, holes, levels, names, numbers
from gpsift.app.tables.tidy.draft import Draft
from gpsift.app.tables.tidy.formulas import formulas
from gpsift.app.tables.tidy.leaks import leaking
from gpsift.app.tables.tidy.learn import with_base_levels, with_dates, with_fills
from gpsift.app.tables.tidy.plain import plain

# In the order in which they are looked for; a later one sees what an earlier one left.
FINDERS: Sequence[Callable[[Draft], Iterable[Step]]] = (
    columns.empty,
    numbers.written_as_texts,
    holes.infinite,
    holes.without_target,
    dates.written_otherwise,
    names.of_rows,
    columns.empty,
    holes.nearly_empty,
    levels.too_many,
    holes.filled,
    columns.constant,
    columns.repeated,
    dates.taken_apart,
)


@dataclass(frozen=True, eq=False)
class Plan:
    """What is done with a table, and the table with it done."""

    steps: tuple[Step, ...]
    prepared: Prepared


def planned(
    table: Table,
    target: str | int,
    *,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    task: Literal["auto"] | Task = "auto",
    missing: Missing | Literal["auto"] = "auto",
) -> Plan:
    """What a table needs before it is fit for a model; the parameters are those of `prepare`.

    With ``missing="auto"`` rows with holes are left out where these are few, numbers are filled in with medians
    elsewhere, and a new column says where much was missing.
    """
    if task not in ("auto", *TASKS):
        raise ValueError(f"`task` must be auto, {', '.join(TASKS)}, got {task!r}.")
    if missing not in ("auto", *MISSINGS):
        raise ValueError(f"`missing` must be auto or one of {', '.join(MISSINGS)}, got {missing!r}.")
    draft = _begun(table, target, drop, categorical, missing)
    for find in FINDERS:
        for step in find(draft):
            draft = draft.with_step(step)
    return Plan(draft.steps, _finished(draft, task, missing))


def _begun(table: Table, target: str | int, drop: Sequence[str], categorical: Sequence[str], missing: str) -> Draft:
    unique, made = told_apart(list(map(str, table.frame.columns)))
    frame = table.frame.set_axis(unique, axis=1)
    new = (Step(FindingKind.NAMES_TOLD_APART, made, len(made)),) if made else ()
    name = target_name(frame, target)
    refuse_unknown(frame, "drop", drop)
    refuse_unknown(frame, "categorical", categorical)
    if name in drop:
        raise ValueError(f"The target {name!r} is among the columns to drop.")
    refuse_constant(frame[name])
    codes = frozenset(categorical)
    kept = plain(frame.drop(columns=list(drop)), codes)
    return Draft(kept, name, codes, missing, (*table.steps, *new))


def _finished(draft: Draft, task: Literal["auto"] | Task, missing: Missing | Literal["auto"]) -> Prepared:
    notes = [step.finding for step in draft.steps]
    frame, kinds = draft.frame, {name: _kind(draft.frame[name]) for name in draft.inputs}
    if not kinds:
        raise ValueError(
            f"No column is left to explain {draft.target!r} by. {' '.join(note.detail for note in notes)}".strip()
        )
    if missing != "auto":
        frame = without_holes(frame, draft.target, kinds, missing, notes)
    prepared = replace(encoded(frame, draft.target, kinds, task), recipe=_recipe(draft, kinds, missing, frame))
    return replace(prepared, notes=(*_given_away(prepared), *notes))


def _recipe(draft: Draft, kinds: dict[str, Kind], missing: str, frame: pd.DataFrame) -> Recipe:
    """What all steps have learned, and what stands for missing values where the user has said so."""
    recipe = replace(draft.recipe, codes=tuple(sorted(draft.codes)))
    if missing == "mean":
        rows = draft.frame.loc[frame.index]
        holes = [name for name in kinds if rows[name].isna().any()]
        means = {name: rows[name].mean() for name in holes if kinds[name] is not Kind.CATEGORY}
        recipe = with_fills(recipe, means)
        recipe = replace(recipe, own_level=tuple(name for name in holes if name not in means))
    recipe = with_base_levels(recipe, frame, [name for name in kinds if kinds[name] is Kind.CATEGORY])
    return with_dates(recipe, frame, [name for name in kinds if kinds[name] is Kind.DATE])


def _given_away(table: Prepared) -> Iterator[Finding]:
    """Columns that alone nearly give the target, and formulas of a few that do."""
    alone = leaking(table)
    if alone:
        yield Finding(FindingKind.MAY_LEAK, {"columns": alone, "target": table.target})
    for formula in formulas(table):
        yield Finding(FindingKind.MADE_OF, {**asdict(formula), "target": table.target})


def _kind(column: pd.Series) -> Kind:
    if types.is_datetime64_any_dtype(column):
        return Kind.DATE
    return Kind.NUMBER if types.is_float_dtype(column) else Kind.CATEGORY
