"""Answers as tables in the terminal."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gpsift.analysis import Analysis
from gpsift.analysis.local import Local
from gpsift.results import Ranking

BAR_WIDTH = 8
MOST_ROWS_SHOWN = 40
LONGEST_NAME = 40


def show_ranking(analysis: Analysis, console: Console) -> None:
    """The columns in their order, one measure beside the other."""
    _say_what(analysis, console)
    console.print(_ranking_table(analysis.rankings))
    _say_cautions(analysis, console)


def show_one_ranking(ranking: Ranking, what: str, console: Console) -> None:
    """A ranking by itself."""
    console.print(f"{escape(what)}.")
    console.print(_ranking_table({ranking.measure.split("(")[0]: ranking}))


def show_selection(analysis: Analysis, console: Console) -> None:
    """The same, and how many are enough."""
    _say_what(analysis, console)
    console.print(_ranking_table(analysis.rankings))
    if analysis.path is not None:
        console.print(_path_table(analysis))
        suggestion = analysis.path.suggestion
        assert suggestion is not None
        chosen = analysis.selected
        answer = (
            "No size qualifies" if chosen is None else f"Enough: {', '.join(map(_short, chosen)) or 'no column at all'}"
        )
        console.print(f"[bold]{escape(answer)}[/bold]: {escape(suggestion.reason)}.")
    if analysis.stability is not None:
        console.print(_stability_table(analysis))
    _say_cautions(analysis, console)


def show_stability(analysis: Analysis, console: Console) -> None:
    """How often each column is among the first."""
    _say_what(analysis, console)
    console.print(_stability_table(analysis))
    _say_cautions(analysis, console)


def show_local(analysis: Analysis, local: Local, what: str, rows: pd.DataFrame, console: Console) -> None:
    """What moves the prediction of some rows."""
    if local.n_rows == 1:
        console.print(f"{escape(what)}: {escape(_predicted(analysis, local))}")
    table = Table(title=f"What moves the prediction of {escape(what)}")
    for heading in ("column", "value", "here", "average", "moves the mean", "moves the variance"):
        table.add_column(heading, justify="left" if heading in ("column", "value") else "right")
    for j in local.order[:MOST_ROWS_SHOWN]:
        parts = (
            ("", "")
            if local.moves_mean is None or local.moves_variance is None
            else (
                f"{100 * local.moves_mean[j]:.0f} %",
                f"{100 * local.moves_variance[j]:.0f} %",
            )
        )
        table.add_row(
            escape(_short(local.names[j])),
            escape(_value(rows[local.names[j]])),
            f"{local.scores[j]:.3g}",
            f"{local.average[j]:.3g}",
            *parts,
        )
    console.print(table)


def _predicted(analysis: Analysis, local: Local) -> str:
    if analysis.classes:
        p = np.atleast_2d(local.prediction)
        p = np.column_stack([1.0 - p.ravel(), p.ravel()])[0] if p.shape[1] == 1 else p[0]
        shown = ", ".join(f"{label} {value:.0%}" for label, value in zip(analysis.classes, p, strict=True))
        return f"predicted {shown}; observed {analysis.classes[int(local.observed[0])]}"
    return f"predicted {local.prediction[0]:.4g} ± {local.sd[0]:.2g}, observed {local.observed[0]:.4g}"


def _say_what(analysis: Analysis, console: Console) -> None:
    quality = analysis.model.quality
    n_columns = len(analysis.leading.names)
    console.print(
        f"{escape(analysis.source)}: {len(analysis.y)} rows, {n_columns} columns to explain "
        f"[bold]{escape(analysis.target)}[/bold] ({analysis.task})."
    )
    explained = (
        f"explains {100 * quality.loo_r2:.0f} % of the variance; its" if analysis.task == "regression" else "has a"
    )
    tail = "log predictive density" if analysis.task == "regression" else "log predictive density that is"
    verb = "is" if analysis.task == "regression" else ""
    console.print(
        f"Leaving out one row at a time, the model {explained} {tail} {verb} {quality.elpd_diff:.0f} ± "
        f"{quality.diff_se:.0f} above that of a model without inputs.".replace("  ", " ")
    )


def _ranking_table(rankings: Mapping[str, Ranking]) -> Table:
    name, leading = next(iter(rankings.items()))
    split = (
        " Beside it how much of it moves the mean of the prediction, and how much its variance."
        if leading.terms
        else ""
    )
    table = Table(caption=escape(f"{name} {leading.units}.{split}"))
    table.add_column("rank", justify="right")
    table.add_column("column", min_width=min(LONGEST_NAME, max(map(len, leading.names))))
    table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, width=BAR_WIDTH)
    parts = leading.shares
    for part in parts:
        table.add_column(part, justify="right")
    if leading.draws is not None:
        table.add_column("95 % interval", justify="right")
    others = {key: ranking for key, ranking in rankings.items() if key != name}
    for key in others:
        table.add_column({"VAR": "√VAR", "ARD": "ARD, rank"}.get(key, key), justify="right")
    largest = float(leading.scores.max()) or 1.0
    interval = None if leading.draws is None else leading.interval()
    for position, j in enumerate(leading.order[:MOST_ROWS_SHOWN], start=1):
        cells = [
            str(position),
            escape(_short(leading.names[j])),
            f"{leading.scores[j]:.3g}",
            "█" * max(0, round(BAR_WIDTH * leading.scores[j] / largest)),
            *(f"{100 * share[j]:.0f} %" for share in parts.values()),
        ]
        if interval is not None:
            cells.append(f"{interval[j, 0]:.3g} to {interval[j, 1]:.3g}")
        for key, ranking in others.items():
            k = ranking.names.index(leading.names[j])
            score = ranking.scores[k] ** 0.5 if key == "VAR" else ranking.scores[k]
            cells.append(f"{score:.2g}, {ranking.ranks[k]}" if key == "ARD" else f"{score:.3g}")
        table.add_row(*cells)
    if len(leading.names) > MOST_ROWS_SHOWN:
        table.add_row("", f"... and {len(leading.names) - MOST_ROWS_SHOWN} more")
    return table


def _path_table(analysis: Analysis) -> Table:
    path = analysis.path
    assert path is not None
    metric = next(iter(path.metrics))
    table = Table(title=f"Submodels, {path.scheme}", caption="elpd against the model with all columns.")
    for heading in ("size", "added", "elpd", "difference", metric):
        table.add_column(heading, justify="left" if heading == "added" else "right")
    chosen = None if path.suggestion is None else path.suggestion.size
    for place, size in enumerate(path.sizes):
        added = path.names[path.order[size - 1]] if size else "no column"
        table.add_row(
            str(size),
            escape(_short(added)),
            f"{path.elpd[place]:.1f}",
            f"{path.diff[place]:.1f} ± {path.diff_se[place]:.1f}",
            f"{path.metrics[metric][place]:.4g}",
            style="bold" if size == chosen else None,
        )
    return table


def _stability_table(analysis: Analysis) -> Table:
    found = analysis.stability
    assert found is not None
    table = Table(title=f"{len(found.scores)} random samples of {found.n_rows} rows")
    table.add_column("column")
    table.add_column("mean rank", justify="right")
    firsts = [k for k in (1, 3, 5, 10) if k <= len(found.names)]
    for k in firsts:
        table.add_column("first" if k == 1 else f"in the first {k}", justify="right")
    ranks = found.ranks.mean(axis=0)
    shares = [found.in_first(k) for k in firsts]
    for j in np.argsort(ranks, kind="stable")[:MOST_ROWS_SHOWN]:
        table.add_row(
            escape(_short(found.names[j])), f"{ranks[j]:.1f}", *(f"{100 * share[j]:.0f} %" for share in shares)
        )
    return table


def _say_cautions(analysis: Analysis, console: Console) -> None:
    for caution in analysis.cautions:
        console.print(f"[yellow]{escape(caution.title)}.[/yellow] {escape(caution.detail)}")


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def _value(column: pd.Series) -> str:
    if len(column) == 1:
        value = column.iloc[0]
        return f"{value:.4g}" if isinstance(value, int | float | np.number) else str(value)
    if pd.api.types.is_numeric_dtype(column):
        return f"mean {column.mean():.4g}"
    return f"mostly {column.mode().iloc[0]}"
