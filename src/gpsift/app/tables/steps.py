"""The steps of cleaning a table: functions such as `drop_empty` find the steps that mend one kind of fault.

Each takes a `CleaningState`, the table as earlier steps leave it, and yields `CleaningStep`s: a kind and a count for
the reader, a `change` of the table, and new entries of the recipe for new rows. `clean.py` has their order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from gpsift._utils.recipe import CleaningRecipe
from gpsift._utils.text import join_names
from gpsift.app.findings import Finding, FindingKind, group_by_title
from gpsift.app.tables.columns import (
    DATED,
    LEAST_ROWS_OF_NAMES,
    date_features,
    date_order,
    parse_date_numbers,
    parse_date_texts,
    parse_number_texts,
    raise_if_constant,
)

# A category has at most this many levels. The commonest stay; the last one joins all others.
MOST_LEVELS = 30
KEPT_LEVELS = MOST_LEVELS - 1
# A level needs this many rows to stay.
FEWEST_ROWS_OF_A_LEVEL = 5
# A category is dropped if its rare levels have more than this share of the rows.
LARGEST_JOINED_SHARE = 0.5
OTHER = "(other)"
MISSING_LEVEL = "(missing)"
# Texts name the rows if more than this share of them differ. Prose has at least this many words on average.
MOST_DIFFERENT = 0.5
WORDS_OF_PROSE = 4
IDENTIFIER = re.compile(
    r"(unnamed.*|column 1|row\W?names?|row|obs|observation|index|case|record|serial|seq|sequence|sample|key|uuid"
    r"|(.*[\W_])?(id|no|nr|num|number)\.?|.*[a-z]ID)",
)
# Rows with missing values are dropped if they are at most this share. A column with a larger share of missing values
# gets an indicator column. The target does not enter this decision, so that tests of the columns stay valid.
FEW_MISSING = 0.05
# A column is dropped if more than this share is missing.
MOST_MISSING = 0.9


@dataclass(frozen=True)
class Choice:
    """An option of `clean` or `prepare`, with a value that would solve a problem."""

    option: str
    value: str

    def __str__(self) -> str:
        return f"{self.option}={[self.value] if self.option in ('drop', 'categorical') else self.value!r}"


class TableError(ValueError):
    """A table cannot be used as it is. The message names remedies as Python arguments, or as `render` writes them."""

    def __init__(self, *parts: str | Choice):
        super().__init__("".join(map(str, parts)))
        self._parts = parts

    def render(self, write: Callable[[Choice], str]) -> str:
        """Return the message with each remedy as `write` formats it."""
        return "".join(write(part) if isinstance(part, Choice) else part for part in self._parts)


@dataclass(frozen=True, eq=False)
class CleaningStep:
    """One change of a table. A step of reading a file has no `change`, because the table has been read already."""

    kind: FindingKind
    columns: tuple[str, ...] = ()  # none for a step about rows or lines
    count: int = 0  # of the columns, rows, lines or cells concerned
    detail: Mapping[str, Any] = field(default_factory=dict)  # further data for the sentence about the step
    change: Callable[[pd.DataFrame], pd.DataFrame] = field(default=lambda frame: frame, repr=False)
    learned: Mapping[str, Any] = field(default_factory=dict)  # new entries of the recipe, by its fields

    @property
    def finding(self) -> Finding:
        """The step as a finding, which puts it into words."""
        return Finding(self.kind, {"columns": self.columns, "count": self.count, **self.detail})


@dataclass(frozen=True, eq=False)
class RawTable:
    """A table as it was read from a file, with the steps of reading it."""

    frame: pd.DataFrame
    steps: tuple[CleaningStep, ...] = ()


@dataclass(frozen=True, eq=False)
class CleaningState:
    """A table that is being cleaned: floats, dates and objects, with the steps so far and the recipe that they make."""

    frame: pd.DataFrame
    target: str
    codes: frozenset[str] = frozenset()  # columns of numbers that the user calls categories
    missing: str = "auto"  # the treatment of missing values, chosen by the user
    steps: tuple[CleaningStep, ...] = ()
    recipe: CleaningRecipe = CleaningRecipe()

    @property
    def inputs(self) -> list[str]:
        """All columns but the target."""
        return [name for name in self.frame.columns if name != self.target]

    def texts(self, *, with_target: bool = False) -> Iterator[tuple[str, pd.Series[Any]]]:
        """Yield the columns of objects, with their names."""
        for name in self.frame.columns if with_target else self.inputs:
            column = self.frame[name]
            if column.dtype == object:
                yield name, column

    def numbers(self) -> list[str]:
        """Return the names of the inputs that are numbers."""
        return [name for name in self.inputs if types.is_float_dtype(self.frame[name])]

    def apply(self, finders: Sequence[Callable[[CleaningState], Iterator[CleaningStep]]]) -> CleaningState:
        """Apply the steps that the functions find, each to the table that earlier steps leave."""
        state = self
        for find in finders:
            for step in find(state):
                state = replace(
                    state,
                    frame=step.change(state.frame),
                    steps=(*state.steps, step),
                    recipe=extend_recipe(state.recipe, **step.learned),
                )
        return state


def raise_if_strict(steps: Sequence[CleaningStep]) -> None:
    """Raise an error that lists the steps, if there are any."""
    if steps:
        ((_, text),) = group_by_title(step.finding for step in steps)
        raise TableError("Something would have to be done with the table, and `strict` refuses that: ", text)


def extend_recipe(recipe: CleaningRecipe, **learned: Any) -> CleaningRecipe:
    """Return the recipe with further entries in its mappings and tuples."""
    fields: dict[str, Any] = {}
    for name, new in learned.items():
        old = getattr(recipe, name)
        fields[name] = {**old, **new} if isinstance(old, Mapping) else (*old, *new)
    return replace(recipe, **fields)


def storable_fill(value: float | pd.Timestamp) -> float | str:
    """Return a fill value as a recipe stores it: a number, or a date as text."""
    return str(value) if isinstance(value, pd.Timestamp) else float(value)


def fill(frame: pd.DataFrame, fills: Mapping[str, float | str]) -> dict[str, pd.Series[Any]]:
    """Return columns with their missing values replaced by the fill values of a recipe."""
    return {
        name: frame[name].fillna(pd.Timestamp(value) if isinstance(value, str) else value)
        for name, value in fills.items()
    }


def drop_columns(kind: FindingKind, names: Sequence[str], **detail: Any) -> Iterator[CleaningStep]:
    """Yield the step that drops some columns, if there are any."""
    if names:
        yield CleaningStep(kind, tuple(names), len(names), detail, lambda frame: frame.drop(columns=list(names)))


def drop_rows(kind: FindingKind, dropped: np.ndarray) -> Iterator[CleaningStep]:
    """Yield the step that drops some rows, (n,) booleans."""
    if dropped.any():
        yield CleaningStep(kind, (), int(dropped.sum()), {"n_rows": len(dropped)}, lambda frame: frame[~dropped])


def set_columns(
    kind: FindingKind,
    columns: Mapping[str, pd.Series[Any]],
    detail: Mapping[str, Any],
    count: int | None = None,
    **learned: Any,
) -> Iterator[CleaningStep]:
    """Yield the step that sets some columns to new values, or adds them, if there are any."""
    if columns:
        n = len(columns) if count is None else count
        yield CleaningStep(kind, tuple(columns), n, detail, lambda frame: frame.assign(**columns), learned)


def fill_level(column: pd.Series[Any]) -> Iterator[CleaningStep]:
    """Yield the step that makes missing values of a category a level, if there are any."""
    name, is_missing = str(column.name), column.isna()
    if is_missing.any():
        columns, count = {name: column.mask(is_missing, MISSING_LEVEL)}, int(is_missing.sum())
        yield from set_columns(FindingKind.FILLED_WITH_LEVEL, columns, {"column": name}, count, own_level=(name,))


def drop_empty(state: CleaningState) -> Iterator[CleaningStep]:
    """Drop columns without any value."""
    is_empty = state.frame[state.inputs].isna().all()
    yield from drop_columns(FindingKind.COLUMN_EMPTY, list(is_empty.index[is_empty]))


def parse_numbers(state: CleaningState) -> Iterator[CleaningStep]:
    """Read columns of texts as numbers where most texts are numbers; the other texts become missing values."""
    by_notation: dict[tuple[str, ...], dict[str, pd.Series[Any]]] = {}
    for name, column in state.texts(with_target=True):
        reading = None if name in state.codes else parse_number_texts(column)
        if reading is None:
            continue
        texts, is_present = column.astype(str), column.notna()
        numbers = column.map(lambda cell, values=reading.values: values.get(str(cell), np.nan)).astype(float)
        unusual = {
            FindingKind.LIMITS_READ: texts.isin(reading.limits) & is_present,
            FindingKind.TEXTS_EMPTIED: is_present & numbers.isna(),
        }
        is_usual = True
        for kind, cells in unusual.items():
            if cells.any():
                is_usual = False
                yield from set_columns(kind, {name: numbers}, {"text": texts[cells].iloc[0]}, int(cells.sum()))
        if reading.notations or is_usual:
            by_notation.setdefault(reading.notations, {})[name] = numbers
    for how, columns in by_notation.items():
        yield from set_columns(FindingKind.NUMBERS_READ, columns, {"how": join_names(how, None) or "plain ones"})


def clear_infinite(state: CleaningState) -> Iterator[CleaningStep]:
    """Turn infinite numbers into missing values: they come from a division by zero or an overflow."""
    numbers = state.frame.select_dtypes("float")
    counts = np.isinf(numbers).sum()
    columns = {name: numbers[name].where(~np.isinf(numbers[name])) for name in counts.index[counts > 0]}
    yield from set_columns(FindingKind.INFINITE_EMPTIED, columns, {}, int(counts.sum()))


def drop_rows_without_target(state: CleaningState) -> Iterator[CleaningStep]:
    """Drop rows whose target is missing."""
    raise_if_constant(state.frame[state.target])
    if state.missing != "refuse":
        yield from drop_rows(FindingKind.ROWS_WITHOUT_TARGET, state.frame[state.target].isna().to_numpy())


def parse_dates(state: CleaningState) -> Iterator[CleaningStep]:
    """Read dates that are written as texts, or as numbers such as 20240131."""
    texts = {name: column for name, column in state.texts() if name not in state.codes}
    dates = {name: read for name, column in texts.items() if (read := parse_date_texts(column)) is not None}
    for first in ("day", "month", ""):
        columns = {name: read for name, read in dates.items() if date_order(texts[name]) == first}
        yield from set_columns(FindingKind.DATES_READ, columns, {"how": f", the {first} first" if first else ""})
    numbers = [state.frame[name] for name in state.numbers() if DATED.search(name)]
    columns = {str(column.name): read for column in numbers if (read := parse_date_numbers(column)) is not None}
    yield from set_columns(FindingKind.DATES_READ, columns, {"how": ""})


def drop_identifiers(state: CleaningState) -> Iterator[CleaningStep]:
    """Drop columns that name or number the rows, and free text: they say nothing about other rows."""
    many = {name: column for name, column in state.texts() if name not in state.codes and _differs_by_row(column)}
    prose = [
        name
        for name, column in many.items()
        if column.dropna().map(lambda cell: len(str(cell).split())).mean() >= WORDS_OF_PROSE
    ]
    yield from drop_columns(FindingKind.COLUMN_NAMES_ROWS, [name for name in many if name not in prose])
    yield from drop_columns(FindingKind.COLUMN_FREE_TEXT, prose)
    numbers = [name for name in state.numbers() if _numbers_rows(state.frame[name])]
    yield from drop_columns(FindingKind.COLUMN_NUMBERS_ROWS, numbers)


def _differs_by_row(column: pd.Series[Any]) -> bool:
    """Return whether nearly every row has another text."""
    present = column.dropna()
    n, n_levels = len(present), present.astype(str).nunique()
    differs = n_levels == n or (n_levels > MOST_LEVELS and n_levels > MOST_DIFFERENT * n)
    return n >= LEAST_ROWS_OF_NAMES and differs


def _numbers_rows(column: pd.Series[Any]) -> bool:
    """Return whether a column has the name of an identifier and whole numbers that all differ."""
    name = str(column.name).strip()
    if len(column) < LEAST_ROWS_OF_NAMES or not any(map(IDENTIFIER.fullmatch, (name, name.lower()))):
        return False
    values = column.dropna().to_numpy()
    return len(values) > 0 and bool(np.all(values == np.floor(values))) and len(np.unique(values)) == len(values)


def drop_nearly_empty(state: CleaningState) -> Iterator[CleaningStep]:
    """Drop columns with nearly all values missing."""
    if state.missing == "auto":
        share = state.frame[state.inputs].isna().mean()
        names = list(share.index[share > MOST_MISSING])
        yield from drop_columns(FindingKind.COLUMN_NEARLY_EMPTY, names, most=MOST_MISSING)


def limit_levels(state: CleaningState) -> Iterator[CleaningStep]:
    """Join the rare levels of categories with too many levels; drop the column if they have most of the rows."""
    joined, counts, kept_levels, rare = {}, {}, {}, []
    for name, column in state.texts():
        if column.nunique() <= MOST_LEVELS:
            continue
        rows = column.value_counts()
        kept = list(rows.index[rows >= FEWEST_ROWS_OF_A_LEVEL][:KEPT_LEVELS])
        if column.isin(kept).sum() < (1 - LARGEST_JOINED_SHARE) * column.notna().sum():
            rare.append(name)
            continue
        joined[name] = column.where(column.isin(kept) | column.isna(), OTHER)
        counts[name] = int(column.nunique() - len(kept))
        kept_levels[name] = tuple(sorted(set(map(str, kept)) - {OTHER}))
    yield from drop_columns(FindingKind.COLUMN_MANY_LEVELS, rare, most=MOST_LEVELS)
    detail = {"joined": counts, "level": OTHER}
    yield from set_columns(FindingKind.LEVELS_JOINED, joined, detail, sum(counts.values()), levels=kept_levels)


def fill_missing(state: CleaningState) -> Iterator[CleaningStep]:
    """Drop rows with missing values if they are few; otherwise fill in medians, or give categories a level for them."""
    if state.missing != "auto":
        return
    frame = state.frame
    is_missing = frame[state.inputs].isna()
    share = is_missing.mean()
    in_few = is_missing[share.index[(share > 0) & (share <= FEW_MISSING)]].any(axis=1).to_numpy()
    if in_few.mean() <= FEW_MISSING:
        yield from drop_rows(FindingKind.ROWS_LEFT_OUT, in_few)
        frame = frame[~in_few]
    counts = frame[state.inputs].isna().sum()
    incomplete = [str(name) for name in counts.index[counts > 0]]
    numbers = [name for name in incomplete if frame[name].dtype != object]
    fills = {name: storable_fill(frame[name].median()) for name in numbers}
    count = int(counts[numbers].sum())
    yield from set_columns(FindingKind.FILLED_WITH_MEDIAN, fill(frame, fills), {}, count, fills=fills)
    # An indicator is 1 where a value is missing. Columns with missing values in the same rows share one.
    marked = [name for name in numbers if share[name] > FEW_MISSING]
    patterns: dict[bytes, str] = {}
    for name in marked:
        patterns.setdefault(frame[name].isna().to_numpy().tobytes(), name)
    indicators, sources = {}, {}
    for name in patterns.values():
        new = f"{name} missing"
        while new in frame:
            new += "'"
        indicators[new] = frame[name].isna().astype(float)
        sources[new] = name
    yield from set_columns(FindingKind.MISSING_MARKED, indicators, {"of": marked, "marks": sources}, marks=sources)
    for name in (name for name in incomplete if name not in numbers):
        yield from fill_level(frame[name])


def drop_constant(state: CleaningState) -> Iterator[CleaningStep]:
    """Drop columns with the same value in every row."""
    names = []
    for name in state.inputs:
        column = state.frame[name]
        values = column.to_numpy()
        if len(values) and not column.isna().any() and (values == values[0]).all():
            names.append(name)
    yield from drop_columns(FindingKind.COLUMN_CONSTANT, names)


def drop_repeated(state: CleaningState) -> Iterator[CleaningStep]:
    """Drop columns that repeat another one; of categories, the names of the levels may differ."""
    first: dict[tuple[str, bytes], str] = {}
    same = {}
    for name in state.inputs:
        column = state.frame[name]
        if column.dtype == object:
            content = ("category", pd.factorize(column)[0].tobytes())
        else:
            content = (str(column.dtype), column.to_numpy().tobytes())
        if content in first:
            same[name] = first[content]
        first.setdefault(content, name)
    yield from drop_columns(FindingKind.COLUMN_REPEATED, list(same), same=same)


def note_date_features(state: CleaningState) -> Iterator[CleaningStep]:
    """Note which features encode each date. The column itself stays until the table is encoded."""
    dates = {name: state.frame[name] for name in state.inputs if types.is_datetime64_any_dtype(state.frame[name])}
    parts = {
        name: [part.rpartition(": ")[2] for part in date_features(column.dropna())] for name, column in dates.items()
    }
    if parts:
        yield CleaningStep(FindingKind.DATES_TAKEN_APART, tuple(parts), len(parts), {"parts": parts})
