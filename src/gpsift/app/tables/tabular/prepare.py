"""From a table to inputs and target, as it is: what would need a decision is refused, with advice."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, Literal, get_args

import pandas as pd

from gpsift._utils.text import listed
from gpsift.app.findings import Finding, FindingKind
from gpsift.app.tables.tabular.encode import TASKS, Prepared, Task, encoded, named_columns, refuse_mixed
from gpsift.app.tables.tabular.errors import Choice, TableError
from gpsift.app.tables.tabular.kinds import Kind, counts_rows, kind_of

Missing = Literal["refuse", "drop", "mean"]
MISSINGS: tuple[str, ...] = get_args(Missing)
MOST_LEVELS = 30
MISSING_LEVEL = "(missing)"
# Names of columns in a message.
SHOWN = 12


def prepare(
    frame: pd.DataFrame,
    target: str | int,
    *,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    task: Literal["auto"] | Task = "auto",
    missing: Missing = "refuse",
) -> Prepared:
    """Make a table fit for a model.

    Parameters
    ----------
    frame : data frame
    target : str or int
        The column to explain, by name or by position from 0.
    drop : sequence of str
        Columns to leave out.
    categorical : sequence of str
        Columns of numbers that are codes of a category. Columns of text are categories anyway.
    task : {"auto", "regression", "classification", "counts"}
        By default classification for text and for two different values, regression otherwise.
    missing : {"refuse", "drop", "mean"}
        What to do with missing values: refuse the table and list them, drop their rows, or put the mean of the column
        there (for a category a level of its own). Rows without target are dropped either way.
    """
    if task not in ("auto", *TASKS):
        raise ValueError(f"`task` must be auto, {', '.join(TASKS)}, got {task!r}.")
    if missing not in MISSINGS:
        raise ValueError(f"`missing` must be one of {', '.join(MISSINGS)}, got {missing!r}.")
    name = target_name(frame, target)
    refuse_unknown(frame, "drop", drop)
    refuse_unknown(frame, "categorical", categorical)
    if name in drop:
        raise ValueError(f"The target {name!r} is among the columns to drop.")
    notes: list[Finding] = []
    if frame[name].isna().all():
        raise ValueError(f"The target {name!r} holds nothing.")
    used = frame.drop(columns=list(drop))
    used, kinds = _useful_columns(used, name, set(categorical), notes)
    used = without_holes(used, name, kinds, missing, notes)
    return encoded(used, name, kinds, task, notes)


def target_name(frame: pd.DataFrame, target: str | int) -> str:
    """The name of the column that was asked for, by name or position."""
    names = list(frame.columns)
    if isinstance(target, str) and target in names:
        return target
    try:
        place = int(target)
    except ValueError:
        raise ValueError(f"There is no column {target!r}; {_meant(str(target), names)}.") from None
    if not -len(names) <= place < len(names):
        raise ValueError(f"There is no column {place}; there are {len(names)}, from 0 to {len(names) - 1}.")
    return str(names[place])


def refuse_unknown(frame: pd.DataFrame, option: str, names: Sequence[str]) -> None:
    """Refuse names of columns that are not there."""
    for name in names:
        if name not in frame:
            raise ValueError(f"`{option}` names the column {name!r}; {_meant(name, list(frame.columns))}.")


def _useful_columns(
    frame: pd.DataFrame, target: str, categorical: set[str], notes: list[Finding]
) -> tuple[pd.DataFrame, dict[str, Kind]]:
    """Without columns that say nothing; refuses those that nobody can use as they are."""
    kinds: dict[str, Kind] = {}
    for name, column in named_columns(frame):
        if name == target:
            continue
        kind = Kind.CATEGORY if name in categorical else kind_of(column)
        if kind is Kind.DATE:
            raise TableError(
                f"The column {name!r} holds dates. Turn it into numbers that may matter, such as days since the start, "
                "month or hour, or leave it out: ",
                Choice("drop", name),
                ".",
            )
        if kind is Kind.MIXED:
            refuse_mixed(column, "say that it is a category", Choice("categorical", name))
        if kind is Kind.EMPTY:
            notes.append(Finding(FindingKind.COLUMN_EMPTY, {"columns": (name,)}))
        elif kind is Kind.NAME:
            notes.append(Finding(FindingKind.COLUMN_NAMES_ROWS, {"columns": (name,)}))
        elif kind is Kind.NUMBER and counts_rows(column):
            notes.append(Finding(FindingKind.COLUMN_NUMBERS_ROWS, {"columns": (name,)}))
        else:
            kinds[name] = kind
            if kind is Kind.CATEGORY and (levels := column.nunique()) > MOST_LEVELS:
                raise TableError(
                    f"The category {name!r} has {levels} levels, more than {MOST_LEVELS}. Join rare ones, or leave it "
                    "out: ",
                    Choice("drop", name),
                    ".",
                )
    if not kinds:
        raise ValueError(f"No column is left to explain {target!r} by. {' '.join(note.detail for note in notes)}")
    return frame[[name for name in frame.columns if name in kinds or name == target]], kinds


def without_holes(
    frame: pd.DataFrame, target: str, kinds: dict[str, Kind], missing: Missing, notes: list[Finding]
) -> pd.DataFrame:
    """A table without missing values, as the user has said what to do with them; what was done is noted."""
    holes = frame.isna().sum()
    holes = holes[holes > 0]
    if holes.empty:
        return frame
    if missing == "refuse":
        more = f" ({len(holes):,} columns in all)" if len(holes) > SHOWN else ""
        where = listed([f"{name} ({count})" for name, count in holes.items()], SHOWN) + more
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
    if missing == "mean":
        kept = _filled(kept, kinds, notes)
    if len(kept) < 2:
        raise ValueError(f"Only {len(kept)} rows are left without missing values.")
    return kept


def _filled(frame: pd.DataFrame, kinds: dict[str, Kind], notes: list[Finding]) -> pd.DataFrame:
    """Means in place of missing numbers, a level of their own in place of missing categories."""
    counts = frame[list(kinds)].isna().sum()
    filled: dict[str, pd.Series[Any]] = {}
    for name, column in named_columns(frame[list(counts[counts > 0].index)]):
        data = {"count": int(counts[name]), "column": name}
        if kinds[name] in (Kind.NUMBER, Kind.DATE):
            filled[name] = column.fillna(column.mean())
            notes.append(Finding(FindingKind.FILLED_WITH_MEAN, data))
        else:
            filled[name] = column.astype(object).where(column.notna(), MISSING_LEVEL)
            notes.append(Finding(FindingKind.FILLED_WITH_LEVEL, data))
    return frame.assign(**filled)


def _meant(name: str, names: Sequence[Any]) -> str:
    """The column that was probably meant, and all of them."""
    plain = {str(each).casefold(): str(each) for each in names}
    near = get_close_matches(name.casefold(), plain, n=1, cutoff=0.7)
    known = f"{listed(names, SHOWN)}{f' ({len(names)} in all)' if len(names) > SHOWN else ''}"
    return f"did you mean {plain[near[0]]!r}? There are {known}" if near else f"there are {known}"
