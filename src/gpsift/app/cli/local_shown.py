"""What moves the prediction of some rows, as a table in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gpsift._utils.words import NOT_USED, percent
from gpsift.app.analysis import Analysis
from gpsift.app.analysis.rows import Explanation
from gpsift.app.cli.terminal import MOST_ROWS_SHOWN, new_table, print_first_that_fits, shortened

# What is left where there is little room, as far as it is known.
KEPT = (
    ("value", "adds", "here", "average", "moves mean", "moves variance"),
    ("value", "adds", "here", "average"),
    ("adds", "here", "average"),
    ("adds",),
)


def show_local(analysis: Analysis, local: Explanation, what: str, rows: pd.DataFrame, console: Console) -> None:
    """What is predicted at some rows, what each column adds to that, and how strongly the prediction reacts."""
    console.print(f"{escape(what)}: {escape(_predicted(analysis, local))}.")
    if local.attribution is not None:
        console.print(escape(_sum_told(analysis, local)))
    cells = _cells(local, rows)
    choices = [[heading for heading in kept if heading in cells] for kept in KEPT if "adds" in cells or "here" in kept]
    kept = choices[print_first_that_fits(console, [_table(local, cells, kept) for kept in choices])]
    console.print(f"[dim]{_told(local, kept)}[/dim]")


def _cells(local: Explanation, rows: pd.DataFrame) -> dict[str, Callable[[int], str]]:
    """What is known of a column, by its heading."""
    cells: dict[str, Callable[[int], str]] = {"value": lambda j: escape(_value(rows[local.names[j]]))}
    if local.attribution is not None:
        cells["adds"] = lambda j: _adds(local, j)
    cells["here"] = lambda j: f"{local.scores[j]:.3g}"
    cells["average"] = lambda j: f"{local.average[j]:.3g}"
    for heading, shares in (("moves mean", local.moves_mean), ("moves variance", local.moves_variance)):
        if shares is not None:
            cells[heading] = lambda j, shares=shares: percent(shares[j])  # type: ignore[misc]
    return cells


def _table(local: Explanation, cells: dict[str, Callable[[int], str]], kept: Sequence[str]) -> Table:
    table = new_table(["column", *kept], texts=("column", "value"))
    scored = [heading for heading in kept if heading != "value"]
    for j in local.shown_order[:MOST_ROWS_SHOWN]:
        values = [cells["value"](int(j))] if "value" in kept else []
        found = [cells[heading](int(j)) for heading in scored] if local.used[j] else [NOT_USED]
        table.add_row(escape(shortened(local.names[j])), *values, *found)
    return table


def _adds(local: Explanation, j: int) -> str:
    """What a column adds; of one row with its standard deviation."""
    assert local.attribution is not None
    mean, sd = local.attribution.values[:, j].mean(), local.attribution.sd[0, j]
    return f"{mean:+z.3g} ± {sd:.2g}" if local.n_rows == 1 else f"{mean:+z.3g}"


def _sum_told(analysis: Analysis, local: Explanation) -> str:
    """How the average and what columns add make the prediction."""
    assert local.attribution is not None
    apart = local.attribution
    what = analysis.target if apart.mean_of == "the target" else apart.mean_of
    here = float(apart.prediction.mean())
    added = f"{here - apart.average:+z.4g}"
    return f"On average {what} is {apart.average:.4g}; the columns add {added}, which makes {here:.4g}."


def _told(local: Explanation, kept: Sequence[str]) -> str:
    """What the headings mean."""
    these = "this row" if local.n_rows == 1 else "these rows"
    how_sure = "± one posterior standard deviation" if local.n_rows == 1 else "on average over these rows"
    adds = [f"adds: to the average, {how_sure}."] if "adds" in kept else []
    reaction = f"here, average: the strength of reaction (KL) at {these}, and on average over all rows."
    return " ".join([*adds, *([reaction] if "here" in kept else [])])


def _predicted(analysis: Analysis, local: Explanation) -> str:
    if analysis.classes:
        p = analysis.class_probabilities(local.prediction)
        seen = np.bincount(local.observed.astype(int), minlength=len(analysis.classes)) / local.n_rows
        predicted = _shares(analysis.classes, p.mean(axis=0))
        if local.n_rows == 1:
            return f"predicted {predicted}; observed {analysis.classes[int(local.observed[0])]}"
        return f"predicted on average {predicted}; observed {_shares(analysis.classes, seen)}"
    if local.n_rows == 1:
        return f"predicted {local.prediction[0]:.4g} ± {local.sd[0]:.2g}, observed {local.observed[0]:.4g}"
    return f"predicted on average {local.prediction.mean():.4g}, observed {local.observed.mean():.4g}"


def _shares(labels: tuple[str, ...], shares: np.ndarray) -> str:
    return ", ".join(f"{label} {percent(share)}" for label, share in zip(labels, shares, strict=True))


def _value(column: pd.Series) -> str:
    if len(column) == 1:
        value = column.iloc[0]
        return f"{value:.4g}" if isinstance(value, int | float | np.number) else str(value)
    if pd.api.types.is_numeric_dtype(column):
        return f"mean {column.mean():.4g}"
    return f"mostly {column.mode().iloc[0]}"
