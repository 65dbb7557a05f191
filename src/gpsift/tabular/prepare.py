"""From a table to inputs and target: kinds of columns, categories as indicators, missing values, the task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Literal, NoReturn, get_args

import numpy as np
import pandas as pd

from gpsift.findings import Finding, FindingKind
from gpsift.tabular.errors import Choice, TableError
from gpsift.tabular.kinds import Kind, counts_rows, kind_of, not_numbers
from gpsift.words import listed

Task = Literal["regression", "classification", "counts"]
TASKS: tuple[str, ...] = get_args(Task)
Missing = Literal["refuse", "drop", "mean"]
MISSINGS: tuple[str, ...] = get_args(Missing)
MOST_LEVELS = 30
MOST_CLASSES = 20
MISSING_LEVEL = "(missing)"
# Names of columns in a message.
SHOWN = 12


@dataclass(frozen=True, eq=False)
class Prepared:
    """A table that a model can be fitted to."""

    target: str
    task: Task
    rows: pd.DataFrame  # those that are used, as they came
    X: pd.DataFrame  # numbers only, categories as indicators
    y: np.ndarray  # classes are coded 0, 1, ...
    classes: tuple[str, ...] = ()
    groups: dict[str, list[str]] = field(default_factory=dict)  # the indicators of each category
    notes: tuple[Finding, ...] = ()  # what was done to the table

    @property
    def owner(self) -> dict[str, str]:
        """The user's column that each column of `X` stands for."""
        own = {str(name): str(name) for name in self.X}
        return own | {column: name for name, members in self.groups.items() for column in members}

    @property
    def columns(self) -> list[str]:
        """The user's columns, in the order of `X`."""
        return list(dict.fromkeys(self.owner.values()))

    def take(self, places: np.ndarray) -> Prepared:
        """The same with some of the rows."""
        return replace(self, rows=self.rows.iloc[places], X=self.X.iloc[places], y=self.y[places])


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
    name = _target_name(frame, target)
    _refuse_unknown(frame, "drop", drop)
    _refuse_unknown(frame, "categorical", categorical)
    if name in drop:
        raise ValueError(f"The target {name!r} is among the columns to drop.")
    notes: list[Finding] = []
    if frame[name].isna().all():
        raise ValueError(f"The target {name!r} holds nothing.")
    used = frame.drop(columns=list(drop))
    used, kinds = _useful_columns(used, name, set(categorical), notes)
    used = _without_holes(used, name, kinds, missing, notes)
    inputs = used.drop(columns=name)
    X, groups = _indicators(inputs, kinds)
    y, classes, found_task = _read_target(used[name], task)
    return Prepared(name, found_task, used, X, y, classes, groups, tuple(notes))


def _target_name(frame: pd.DataFrame, target: str | int) -> str:
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


def _refuse_unknown(frame: pd.DataFrame, option: str, names: Sequence[str]) -> None:
    for name in names:
        if name not in frame:
            raise ValueError(f"`{option}` names the column {name!r}; {_meant(name, list(frame.columns))}.")


def _useful_columns(
    frame: pd.DataFrame, target: str, categorical: set[str], notes: list[Finding]
) -> tuple[pd.DataFrame, dict[str, Kind]]:
    """Without columns that say nothing; refuses those that nobody can use as they are."""
    kinds: dict[str, Kind] = {}
    for name, column in _named_columns(frame):
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
            _refuse_mixed(column, "say that it is a category", Choice("categorical", name))
        if kind is Kind.EMPTY:
            notes.append(Finding(FindingKind.COLUMN_EMPTY, {"column": name}))
        elif kind is Kind.NAME:
            notes.append(Finding(FindingKind.COLUMN_NAMES_ROWS, {"column": name}))
        elif kind is Kind.NUMBER and counts_rows(column):
            notes.append(Finding(FindingKind.COLUMN_NUMBERS_ROWS, {"column": name}))
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


def _refuse_mixed(column: pd.Series[Any], otherwise: str, remedy: Choice) -> NoReturn:
    texts = not_numbers(column.dropna().astype(str))
    examples = " and ".join(map(repr, list(dict.fromkeys(texts))[:2]))
    raise TableError(
        f"The column {column.name!r} holds numbers, but in {len(texts)} of {len(column)} rows texts such as "
        f"{examples}. Correct or empty these cells, or {otherwise}: ",
        remedy,
        ".",
    )


def _without_holes(
    frame: pd.DataFrame, target: str, kinds: dict[str, Kind], missing: Missing, notes: list[Finding]
) -> pd.DataFrame:
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
    for name, column in _named_columns(frame[list(counts[counts > 0].index)]):
        data = {"count": int(counts[name]), "column": name}
        if kinds[name] is Kind.NUMBER:
            filled[name] = column.fillna(column.mean())
            notes.append(Finding(FindingKind.FILLED_WITH_MEAN, data))
        else:
            filled[name] = column.astype(object).where(column.notna(), MISSING_LEVEL)
            notes.append(Finding(FindingKind.FILLED_WITH_LEVEL, data))
    return frame.assign(**filled)


def _indicators(inputs: pd.DataFrame, kinds: dict[str, Kind]) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """Numbers as they are, categories as indicators such as "colour=red": of two levels one, of more one for each."""
    columns: dict[str, np.ndarray] = {}
    groups: dict[str, list[str]] = {}
    if all(kind is Kind.NUMBER for kind in kinds.values()):
        return pd.DataFrame(inputs.to_numpy(dtype=float), inputs.index, list(kinds)), groups
    for name, column in _named_columns(inputs):
        if kinds[name] is Kind.NUMBER:
            columns[name] = column.to_numpy(dtype=float)
            continue
        codes, levels = pd.factorize(column.astype(str), sort=True)
        groups[name] = []
        for code in [len(levels) - 1] if len(levels) <= 2 else range(len(levels)):
            indicator = _free_name(f"{name}={levels[code]}", columns, inputs)
            groups[name].append(indicator)
            columns[indicator] = (codes == code).astype(float)
    return pd.DataFrame(columns, index=inputs.index), groups


def _named_columns(frame: pd.DataFrame) -> Iterator[tuple[str, pd.Series[Any]]]:
    """The columns of a frame whose names are text."""
    return ((str(name), column) for name, column in frame.items())


def _free_name(wanted: str, taken: dict[str, np.ndarray], inputs: pd.DataFrame) -> str:
    name = wanted
    while name in taken or name in inputs:
        name += "'"
    return name


def _read_target(column: pd.Series[Any], task: Literal["auto"] | Task) -> tuple[np.ndarray, tuple[str, ...], Task]:
    kind = kind_of(column)
    if kind is Kind.MIXED and task != "classification":
        _refuse_mixed(column, "say that they are classes", Choice("task", "classification"))
    if kind is Kind.DATE:
        raise ValueError(
            f"The target {column.name!r} holds dates. Turn it into a number, such as days since the start."
        )
    is_number = kind is Kind.NUMBER
    n_values = column.nunique()
    if n_values < 2:
        value = _label(column.iloc[0])
        raise ValueError(f"The target {column.name!r} is {value} in every row; there is nothing to explain.")
    if task == "auto":
        task = "classification" if not is_number or n_values == 2 else "regression"
    if task == "classification":
        if n_values > MOST_CLASSES:
            raise TableError(
                f"The target {column.name!r} has {n_values} different values, more than {MOST_CLASSES} classes. ",
                *(["Is it a number? Use ", Choice("task", "regression"), "."] if is_number else ["Join rare ones."]),
            )
        codes, labels = pd.factorize(column, sort=True)
        return codes.astype(float), tuple(_label(label) for label in labels), "classification"
    if not is_number:
        example = column.dropna().iloc[0]
        raise ValueError(f"The target {column.name!r} holds text such as {example!r}; {task} needs numbers.")
    y = column.to_numpy(dtype=float)
    if task == "counts" and (np.any(y < 0) or np.any(y != np.floor(y))):
        raise ValueError(
            f"The target {column.name!r} has values that are no counts, such as {y[(y < 0) | (y != np.floor(y))][0]:g}."
        )
    return y, (), task


def _label(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _meant(name: str, names: Sequence[Any]) -> str:
    """The column that was probably meant, and all of them."""
    plain = {str(each).casefold(): str(each) for each in names}
    near = get_close_matches(name.casefold(), plain, n=1, cutoff=0.7)
    known = f"{listed(names, SHOWN)}{f' ({len(names)} in all)' if len(names) > SHOWN else ''}"
    return f"did you mean {plain[near[0]]!r}? There are {known}" if near else f"there are {known}"
