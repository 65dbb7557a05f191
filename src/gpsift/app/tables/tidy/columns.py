"""Columns that say nothing: empty ones, those that are always the same, and those that repeat another one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd

from gpsift.app.findings import FindingKind
from gpsift.app.tables.tabular import Step
from gpsift.app.tables.tidy.changes import without_columns
from gpsift.app.tables.tidy.draft import Draft


def left_out(kind: FindingKind, names: list[str], **detail: Any) -> Iterator[Step]:
    """The step that leaves columns out, if there are some."""
    if names:
        yield Step(kind, tuple(names), len(names), detail, partial(without_columns, names=frozenset(names)))


def empty(draft: Draft) -> Iterator[Step]:
    """Columns without any value."""
    is_empty = draft.frame[draft.inputs].isna().all()
    yield from left_out(FindingKind.COLUMN_EMPTY, list(is_empty.index[is_empty]))


def constant(draft: Draft) -> Iterator[Step]:
    """Columns that are the same in every row."""
    same = [name for name in draft.inputs if _is_constant(draft.frame[name])]
    yield from left_out(FindingKind.COLUMN_CONSTANT, same)


def repeated(draft: Draft) -> Iterator[Step]:
    """Columns that hold what another one does; of texts, also under other names for the same levels."""
    first: dict[tuple[str, bytes], str] = {}
    same = {}
    for name in draft.inputs:
        key = _content(draft.frame[name])
        if key in first:
            same[name] = first[key]
        first.setdefault(key, name)
    yield from left_out(FindingKind.COLUMN_REPEATED, list(same), same=same)


def _is_constant(column: pd.Series[Any]) -> bool:
    values = column.to_numpy()
    return len(values) > 0 and not column.isna().any() and bool((values == values[0]).all())


def _content(column: pd.Series[Any]) -> tuple[str, bytes]:
    if column.dtype != object:
        return str(column.dtype), column.to_numpy().tobytes()
    codes, _ = pd.factorize(column)
    return "category", codes.tobytes()
