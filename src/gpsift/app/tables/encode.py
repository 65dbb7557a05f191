"""Encode a table without missing values as a `ModelTable`: numbers, indicators, features of dates, and a target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NoReturn, get_args

import numpy as np
import pandas as pd

from gpsift._utils.recipe import CleaningRecipe
from gpsift.app.findings import Finding
from gpsift.app.tables.columns import (
    ColumnType,
    date_features,
    infer_type,
    raise_if_constant,
    texts_among_numbers,
    value_text,
)
from gpsift.app.tables.steps import Choice, TableError

Task = Literal["regression", "classification", "counts"]
TASKS: tuple[str, ...] = get_args(Task)
MOST_CLASSES = 20


@dataclass(frozen=True, eq=False)
class ModelTable:
    """Inputs and target for a model, with all that is known of their columns."""

    target: str
    task: Task
    rows: pd.DataFrame  # the rows that are used, as the user has them
    X: pd.DataFrame  # numbers only, categories as indicators
    y: np.ndarray  # classes are coded 0, 1, ...
    classes: tuple[str, ...] = ()
    groups: dict[str, list[str]] = field(default_factory=dict)  # columns of `X`, by category or date
    notes: tuple[Finding, ...] = ()  # what was done to the table
    dates: tuple[str, ...] = ()
    recipe: CleaningRecipe = CleaningRecipe()  # by which new rows are brought into the form of `X`

    @property
    def categories(self) -> list[str]:
        """The names of the categories among the groups."""
        return [name for name in self.groups if name not in self.dates]

    @property
    def user_column(self) -> dict[str, str]:
        """The user's column for each column of `X`."""
        own = {str(name): str(name) for name in self.X}
        return own | {column: name for name, members in self.groups.items() for column in members}

    @property
    def columns(self) -> list[str]:
        """The user's columns, in the order of `X`."""
        return list(dict.fromkeys(self.user_column.values()))

    def take(self, positions: np.ndarray) -> ModelTable:
        """Return the table with the rows at these positions."""
        return replace(self, rows=self.rows.iloc[positions], X=self.X.iloc[positions], y=self.y[positions])


def encode(
    frame: pd.DataFrame,
    target: str,
    kinds: Mapping[str, ColumnType],
    task: Literal["auto"] | Task = "auto",
    notes: Iterable[Finding] = (),
) -> ModelTable:
    """Encode a table without missing values, whose columns are numbers, categories and dates."""
    inputs = frame.drop(columns=target)
    X, groups = _encode_inputs(inputs, kinds)
    y, classes, found_task = _encode_target(frame[target], task)
    dates = tuple(name for name in kinds if kinds[name] is ColumnType.DATE)
    shown = frame.assign(**{name: _format_dates(frame[name]) for name in dates})
    return ModelTable(target, found_task, shown, X, y, classes, groups, tuple(notes), dates)


def _encode_inputs(inputs: pd.DataFrame, kinds: Mapping[str, ColumnType]) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """Encode categories as indicators such as "colour=red" and dates as features such as "day: month"."""
    if all(kind is ColumnType.NUMBER for kind in kinds.values()):
        return pd.DataFrame(inputs.to_numpy(dtype=float), inputs.index, list(kinds)), {}
    columns: dict[str, np.ndarray] = {}
    groups: dict[str, list[str]] = {}
    for name, column in named_columns(inputs):
        if kinds[name] is ColumnType.NUMBER:
            columns[name] = column.to_numpy(dtype=float)
            continue
        if kinds[name] is ColumnType.DATE:
            made = date_features(column)
        else:  # two levels get one indicator, more get one each
            codes, levels = pd.factorize(column.astype(str), sort=True)
            coded = [len(levels) - 1] if len(levels) <= 2 else range(len(levels))
            made = {f"{name}={levels[code]}": (codes == code).astype(float) for code in coded}
        groups[name] = []
        for feature, values in made.items():
            unique = feature
            while unique in columns or unique in inputs:
                unique += "'"
            groups[name].append(unique)
            columns[unique] = values
    return pd.DataFrame(columns, index=inputs.index), groups


def _format_dates(column: pd.Series[Any]) -> pd.Series[Any]:
    """Write dates as texts that sort by time."""
    is_day = bool((column == column.dt.normalize()).all())
    return column.dt.strftime("%Y-%m-%d" if is_day else "%Y-%m-%d %H:%M:%S")


def named_columns(frame: pd.DataFrame) -> Iterator[tuple[str, pd.Series[Any]]]:
    """Yield the columns of a frame, with their names as texts."""
    return ((str(name), column) for name, column in frame.items())


def raise_mixed_types(column: pd.Series[Any], otherwise: str, remedy: Choice) -> NoReturn:
    """Raise an error for a column with texts among numbers, with examples and two remedies."""
    texts = texts_among_numbers(column.dropna().astype(str))
    examples = " and ".join(map(repr, list(dict.fromkeys(texts))[:2]))
    raise TableError(
        f"The column {column.name!r} holds numbers, but in {len(texts)} of {len(column)} rows texts such as "
        f"{examples}. Correct or empty these cells, or {otherwise}: ",
        remedy,
        ".",
    )


def _encode_target(column: pd.Series[Any], task: Literal["auto"] | Task) -> tuple[np.ndarray, tuple[str, ...], Task]:
    kind = infer_type(column)
    if kind is ColumnType.MIXED and task != "classification":
        raise_mixed_types(column, "say that they are classes", Choice("task", "classification"))
    if kind is ColumnType.DATE:
        raise ValueError(
            f"The target {column.name!r} holds dates. Turn it into a number, such as days since the start."
        )
    is_number = kind is ColumnType.NUMBER
    n_values = column.nunique()
    raise_if_constant(column)
    if task == "auto":
        task = "classification" if not is_number or n_values == 2 else "regression"
    if task == "classification":
        if n_values > MOST_CLASSES:
            raise TableError(
                f"The target {column.name!r} has {n_values} different values, more than {MOST_CLASSES} classes. ",
                *(["Is it a number? Use ", Choice("task", "regression"), "."] if is_number else ["Join rare ones."]),
            )
        codes, labels = pd.factorize(column, sort=True)
        return codes.astype(float), tuple(value_text(label) for label in labels), "classification"
    if not is_number:
        example = column.dropna().iloc[0]
        raise ValueError(f"The target {column.name!r} holds text such as {example!r}; {task} needs numbers.")
    y = column.to_numpy(dtype=float)
    if task == "counts" and (np.any(y < 0) or np.any(y != np.floor(y))):
        raise ValueError(
            f"The target {column.name!r} has values that are no counts, such as {y[(y < 0) | (y != np.floor(y))][0]:g}."
        )
    return y, (), task
