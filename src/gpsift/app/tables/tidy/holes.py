"""Missing values: rows without a target, columns that are nearly empty, rows to leave out, numbers to fill in."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from gpsift.app.findings import FindingKind
from gpsift.app.tables.tabular import Step
from gpsift.app.tables.tabular.encode import refuse_constant
from gpsift.app.tables.tabular.prepare import MISSING_LEVEL
from gpsift.app.tables.tidy.changes import replaced, with_rows
from gpsift.app.tables.tidy.columns import left_out
from gpsift.app.tables.tidy.draft import Draft

# Rows with holes are few up to this share of all, and are left out then. A column of which more than that is missing
# gets another one that says where: decided without a look at the target, so that tests of the columns stay honest.
FEW = 0.05
# A column of which more is missing says little.
MOST_MISSING = 0.9


def infinite(draft: Draft) -> Iterator[Step]:
    """Infinite numbers, which stand for a division by zero or an overflow."""
    numbers = draft.frame.select_dtypes("float")
    counts = np.isinf(numbers).sum()
    names = list(counts.index[counts > 0])
    if names:
        change = partial(replaced, columns={name: _finite(draft.frame[name]) for name in names})
        yield Step(FindingKind.INFINITE_EMPTIED, tuple(names), int(counts.sum()), {}, change)


def _finite(column: pd.Series[Any]) -> pd.Series[Any]:
    return column.where(np.isfinite(column) | column.isna())


def without_target(draft: Draft) -> Iterator[Step]:
    """Rows of which the target is missing."""
    kept = draft.frame[draft.target].notna().to_numpy()
    refuse_constant(draft.frame[draft.target])
    if not kept.all() and draft.missing != "refuse":
        detail = {"n_rows": len(kept)}
        yield Step(FindingKind.ROWS_WITHOUT_TARGET, (), int((~kept).sum()), detail, partial(with_rows, kept=kept))


def nearly_empty(draft: Draft) -> Iterator[Step]:
    """Columns with hardly any value."""
    if draft.missing == "auto":
        share = draft.frame[draft.inputs].isna().mean()
        names = list(share.index[share > MOST_MISSING])
        yield from left_out(FindingKind.COLUMN_NEARLY_EMPTY, names, most=MOST_MISSING)


def filled(draft: Draft) -> Iterator[Step]:
    """Holes where they are few by leaving rows out, elsewhere by medians and a level of their own."""
    if draft.missing != "auto":
        return
    holes = draft.frame[draft.inputs].isna()
    share = holes.mean()
    in_few = holes[share.index[(share > 0) & (share <= FEW)]].any(axis=1).to_numpy()
    frame = draft.frame
    if 0 < in_few.mean() <= FEW:
        detail = {"n_rows": len(frame)}
        yield Step(FindingKind.ROWS_LEFT_OUT, (), int(in_few.sum()), detail, partial(with_rows, kept=~in_few))
        frame = frame[~in_few]
    counts = frame[draft.inputs].isna().sum()
    with_holes = [str(name) for name in counts.index[counts > 0]]
    # Before the holes are filled in: where they were is known no longer afterwards.
    marked = {name: frame[name].isna() for name in with_holes if share[name] > FEW and frame[name].dtype != object}
    yield from _filled_in(frame, [name for name in with_holes if frame[name].dtype != object])
    yield from _with_marks(frame, marked)
    for name in (name for name in with_holes if frame[name].dtype == object):
        level = frame[name].where(frame[name].notna(), MISSING_LEVEL)
        change = partial(replaced, columns={name: level})
        yield Step(FindingKind.FILLED_WITH_LEVEL, (name,), int(counts[name]), {"column": name}, change)


def _filled_in(frame: pd.DataFrame, names: list[str]) -> Iterator[Step]:
    if names:
        count = int(frame[names].isna().sum().sum())
        columns = {name: frame[name].fillna(frame[name].median()) for name in names}
        yield Step(FindingKind.FILLED_WITH_MEDIAN, tuple(names), count, {}, partial(replaced, columns=columns))


def _with_marks(frame: pd.DataFrame, marked: dict[str, pd.Series[Any]]) -> Iterator[Step]:
    """One new column for all that are missing in the same rows."""
    patterns: dict[bytes, list[str]] = {}
    for name, is_missing in marked.items():
        patterns.setdefault(is_missing.to_numpy().tobytes(), []).append(name)
    columns, sources = {}, {}
    for names in patterns.values():
        new = f"{names[0]} missing"
        while new in frame:
            new += "'"
        columns[new] = marked[names[0]].astype(float)
        sources[new] = names[0]
    if columns:
        change = partial(replaced, columns=columns)
        yield Step(
            FindingKind.MISSING_MARKED, tuple(columns), len(columns), {"of": list(marked), "marks": sources}, change
        )
