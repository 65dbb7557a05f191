"""Make inputs and target of a model from a table: `clean` mends faults of the table, `prepare` refuses them.

`clean` applies the steps of `FINDERS` in their order, encodes the result, and points out columns and formulas that
determine the target. `prepare` takes the table as it is: a column that needs a decision is an error, with remedies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal, get_args

import pandas as pd

from gpsift._utils.text import join_names
from gpsift.app.findings import Finding, FindingKind
from gpsift.app.tables.columns import (
    ColumnType,
    basic_type,
    infer_type,
    is_row_count,
    raise_if_constant,
    to_basic_types,
)
from gpsift.app.tables.encode import TASKS, ModelTable, Task, encode, named_columns, raise_mixed_types
from gpsift.app.tables.layout import rename_repeated
from gpsift.app.tables.leakage import find_formulas, find_leaks
from gpsift.app.tables.steps import (
    MISSING_LEVEL,
    MOST_LEVELS,
    Choice,
    CleaningState,
    CleaningStep,
    RawTable,
    TableError,
    clear_infinite,
    drop_constant,
    drop_empty,
    drop_identifiers,
    drop_nearly_empty,
    drop_repeated,
    drop_rows_without_target,
    extend_recipe,
    fill_missing,
    limit_levels,
    note_date_features,
    parse_dates,
    parse_numbers,
    storable_fill,
)

Missing = Literal["refuse", "drop", "mean"]
MISSING_CHOICES: tuple[str, ...] = get_args(Missing)
# A message names at most this many columns.
MOST_NAMED = 12
# The functions that find the steps of cleaning, in their order; each takes the table that the earlier ones leave.
FINDERS = (
    drop_empty,
    parse_numbers,
    clear_infinite,
    drop_rows_without_target,
    parse_dates,
    drop_identifiers,
    drop_empty,
    drop_nearly_empty,
    limit_levels,
    fill_missing,
    drop_constant,
    drop_repeated,
    note_date_features,
)


@dataclass(frozen=True, eq=False)
class CleaningResult:
    """A cleaned table, ready for a model, and the steps that were done."""

    steps: tuple[CleaningStep, ...]
    table: ModelTable


def clean(
    table: RawTable,
    target: str | int,
    *,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    task: Literal["auto"] | Task = "auto",
    missing: Missing | Literal["auto"] = "auto",
) -> CleaningResult:
    """Clean a table and make it fit for a model. The options are those of `Reading`."""
    if missing not in ("auto", *MISSING_CHOICES):
        raise ValueError(f"`missing` must be auto or one of {', '.join(MISSING_CHOICES)}, got {missing!r}.")
    frame, renamed = rename_repeated(table.frame)
    name = _check_arguments(frame, target, drop, categorical, task)
    raise_if_constant(frame[name])
    codes = frozenset(categorical)
    kept = to_basic_types(frame.drop(columns=list(drop)), codes)
    state = CleaningState(kept, name, codes, missing, (*table.steps, *renamed)).apply(FINDERS)
    cleaned, notes = state.frame, [step.finding for step in state.steps]
    kinds = {each: basic_type(cleaned[each]) for each in state.inputs}
    if not kinds:
        raise ValueError(f"No column is left to explain {name!r} by. {_details(notes)}".strip())
    learned: dict[str, Any] = {}
    if missing != "auto":
        cleaned, learned = handle_missing(cleaned, name, kinds, missing, notes)
    levels = {each: sorted(set(cleaned[each].astype(str))) for each in kinds if kinds[each] is ColumnType.CATEGORY}
    recipe = extend_recipe(
        state.recipe,
        **learned,
        codes=sorted(codes),
        base_levels={each: (two[0],) for each, two in levels.items() if len(two) == 2},
        first_dates={each: str(cleaned[each].min()) for each in kinds if kinds[each] is ColumnType.DATE},
    )
    encoded = replace(encode(cleaned, name, kinds, task), recipe=recipe)
    return CleaningResult(state.steps, replace(encoded, notes=(*_leakage_findings(encoded), *notes)))


def prepare(
    frame: pd.DataFrame,
    target: str | int,
    *,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    task: Literal["auto"] | Task = "auto",
    missing: Missing = "refuse",
) -> ModelTable:
    """Make a table fit for a model without cleaning it. The options are those of `Reading`.

    With ``missing="refuse"`` missing values are an error that lists them. Rows without target are dropped either way.
    """
    if missing not in MISSING_CHOICES:
        raise ValueError(f"`missing` must be one of {', '.join(MISSING_CHOICES)}, got {missing!r}.")
    name = _check_arguments(frame, target, drop, categorical, task)
    if frame[name].isna().all():
        raise ValueError(f"The target {name!r} holds nothing.")
    notes: list[Finding] = []
    used, kinds = _select_useful_columns(frame.drop(columns=list(drop)), name, set(categorical), notes)
    used, _ = handle_missing(used, name, kinds, missing, notes)
    return encode(used, name, kinds, task, notes)


def _check_arguments(
    frame: pd.DataFrame, target: str | int, drop: Sequence[str], categorical: Sequence[str], task: str
) -> str:
    """Return the name of the target, or raise an error if an argument does not suit the table."""
    if task not in ("auto", *TASKS):
        raise ValueError(f"`task` must be auto, {', '.join(TASKS)}, got {task!r}.")
    name = _find_target(frame, target)
    for option, names in {"drop": drop, "categorical": categorical}.items():
        for each in names:
            if each not in frame:
                raise ValueError(f"`{option}` names the column {each!r}; {_suggest_name(each, list(frame.columns))}.")
    if name in drop:
        raise ValueError(f"The target {name!r} is among the columns to drop.")
    return name


def _find_target(frame: pd.DataFrame, target: str | int) -> str:
    """Return the name of the target, which the user gives by name or by position."""
    names = list(frame.columns)
    if isinstance(target, str) and target in names:
        return target
    try:
        position = int(target)
    except ValueError:
        raise ValueError(f"There is no column {target!r}; {_suggest_name(str(target), names)}.") from None
    if not -len(names) <= position < len(names):
        raise ValueError(f"There is no column {position}; there are {len(names)}, from 0 to {len(names) - 1}.")
    return str(names[position])


def _suggest_name(name: str, names: Sequence[Any]) -> str:
    """Name the column that the user probably meant, and list all columns."""
    plain = {str(each).casefold(): str(each) for each in names}
    near = get_close_matches(name.casefold(), plain, n=1, cutoff=0.7)
    known = f"{join_names(names, MOST_NAMED)}{f' ({len(names)} in all)' if len(names) > MOST_NAMED else ''}"
    return f"did you mean {plain[near[0]]!r}? There are {known}" if near else f"there are {known}"


def _details(notes: Sequence[Finding]) -> str:
    return " ".join(note.detail for note in notes)


def _leakage_findings(table: ModelTable) -> Iterator[Finding]:
    """Yield findings about columns that nearly determine the target alone, and about formulas of the target."""
    columns = find_leaks(table)
    if columns:
        yield Finding(FindingKind.MAY_LEAK, {"columns": columns, "target": table.target})
    for formula in find_formulas(table):
        yield Finding(FindingKind.TARGET_FORMULA, {**asdict(formula), "target": table.target})


def _select_useful_columns(
    frame: pd.DataFrame, target: str, categorical: set[str], notes: list[Finding]
) -> tuple[pd.DataFrame, dict[str, ColumnType]]:
    """Drop columns without information, with a note each; raise an error for those that need a decision."""
    kinds: dict[str, ColumnType] = {}
    for name, column in named_columns(frame):
        if name == target:
            continue
        kind = ColumnType.CATEGORY if name in categorical else infer_type(column)
        if kind is ColumnType.DATE:
            raise TableError(
                f"The column {name!r} holds dates. Turn it into numbers that may matter, such as days since the start, "
                "month or hour, or leave it out: ",
                Choice("drop", name),
                ".",
            )
        if kind is ColumnType.MIXED:
            raise_mixed_types(column, "say that it is a category", Choice("categorical", name))
        if kind is ColumnType.EMPTY:
            notes.append(Finding(FindingKind.COLUMN_EMPTY, {"columns": (name,)}))
        elif kind is ColumnType.NAME:
            notes.append(Finding(FindingKind.COLUMN_NAMES_ROWS, {"columns": (name,)}))
        elif kind is ColumnType.NUMBER and is_row_count(column):
            notes.append(Finding(FindingKind.COLUMN_NUMBERS_ROWS, {"columns": (name,)}))
        else:
            kinds[name] = kind
            if kind is ColumnType.CATEGORY and (levels := column.nunique()) > MOST_LEVELS:
                raise TableError(
                    f"The category {name!r} has {levels} levels, more than {MOST_LEVELS}. Join rare ones, or leave it "
                    "out: ",
                    Choice("drop", name),
                    ".",
                )
    if not kinds:
        raise ValueError(f"No column is left to explain {target!r} by. {_details(notes)}")
    return frame[[name for name in frame.columns if name in kinds or name == target]], kinds


def handle_missing(
    frame: pd.DataFrame, target: str, kinds: dict[str, ColumnType], missing: Missing, notes: list[Finding]
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Treat missing values by the option `missing`; return the table and new entries of the recipe, and add notes.

    With "mean", means are filled in for numbers and dates, and missing values of a category become a level.
    """
    counts = frame.isna().sum()
    counts = counts[counts > 0]
    if counts.empty:
        return frame, {}
    if missing == "refuse":
        more = f" ({len(counts):,} columns in all)" if len(counts) > MOST_NAMED else ""
        where = join_names([f"{name} ({count})" for name, count in counts.items()], MOST_NAMED) + more
        raise TableError(
            f"{int(frame.isna().any(axis=1).sum())} of {len(frame)} rows have missing values, in {where}. Use ",
            Choice("missing", "drop"),
            " to leave these rows out, or ",
            Choice("missing", "mean"),
            " to fill them in.",
        )
    kept = frame.dropna() if missing == "drop" else frame[frame[target].notna()].copy()
    if len(kept) < len(frame):
        notes.append(Finding(FindingKind.ROWS_LEFT_OUT, {"count": len(frame) - len(kept), "n_rows": len(frame)}))
    fills: dict[str, float | str] = {}
    own_level: list[str] = []
    if missing == "mean":
        filled: dict[str, pd.Series[Any]] = {}
        for name, kind in kinds.items():
            column, n_missing = kept[name], int(kept[name].isna().sum())
            if n_missing and kind is ColumnType.CATEGORY:
                notes.append(Finding(FindingKind.FILLED_WITH_LEVEL, {"count": n_missing, "column": name}))
                filled[name] = column.astype(object).where(column.notna(), MISSING_LEVEL)
                own_level.append(name)
            elif n_missing:
                notes.append(Finding(FindingKind.FILLED_WITH_MEAN, {"count": n_missing, "column": name}))
                filled[name] = column.fillna(column.mean())
                fills[name] = storable_fill(column.mean())
        kept = kept.assign(**filled)
    if len(kept) < 2:
        raise ValueError(f"Only {len(kept)} rows are left without missing values.")
    return kept, {"fills": fills, "own_level": own_level}
