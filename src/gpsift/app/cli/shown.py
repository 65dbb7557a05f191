"""Answers as tables in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gpsift._utils.words import NOT_USED, SHARE, meaning, percent, percent_as_given
from gpsift.app.analysis.switched import switching_told
from gpsift.app.cli.advice import ADVICE
from gpsift.app.cli.terminal import MOST_ROWS_SHOWN, new_table, print_first_that_fits, shortened
from gpsift.app.findings import Finding, FindingKind, told
from gpsift.relevance.ranking import LEVEL

if TYPE_CHECKING:
    from gpsift.app.analysis import Analysis
    from gpsift.app.analysis.discovered import Discovered
    from gpsift.app.analysis.planned import PlannedAnalysis
    from gpsift.app.analysis.ranked_again import RankedAgain
    from gpsift.relevance.ranking import Ranking
    from gpsift.selection.power.record_power import Power
    from gpsift.selection.record_path import Path
    from gpsift.selection.record_stability import Stability

BAR_WIDTH = 8
MOST_ODDITIES = 10
INTERVAL = f"{percent(LEVEL)} interval"
# What goes first where there is little room.
LEAST_NEEDED = ("bar", "shares", "effects", "others", "interval")

# A column of a table: its heading, and its cell for each feature by number.
Cells = tuple[str, Callable[[int], str]]


def show_ranked_again(answer: RankedAgain, console: Console) -> None:
    """The ranking of a saved model, and what was done with the table of its rows."""
    where = "" if answer.table is None else f" of {answer.table}"
    console.print(f"{escape(answer.model)}, {answer.n_rows} rows{escape(where)}.")
    _show_rankings(answer.told, console, answer.leading.hidden_note)
    say_cautions(answer.cautions, console)


def show_ranking(analysis: Analysis, console: Console) -> None:
    """The columns in their order, one measure beside the other; where that was asked, how many are enough."""
    show_model(analysis, console)
    _show_rankings(analysis.told, console, analysis.leading.hidden_note)
    _say_oddities(analysis, console)
    if analysis.path is not None:
        _show_path(analysis.path, console)
        suggestion = analysis.path.suggestion
        assert suggestion is not None
        chosen = analysis.selected
        answer = (
            "No size qualifies" if chosen is None else f"Enough: {', '.join(map(shortened, chosen)) or 'no column'}"
        )
        reason = suggestion.reason.replace("+-", "±")
        console.print(f"[bold]{escape(answer)}[/bold]: {escape(reason)}.")
    if analysis.stability is not None:
        _show_stability(analysis.stability, console)
    say_cautions(analysis.cautions, console)


def show_stability(analysis: Analysis, console: Console) -> None:
    """How often each column is among the first."""
    show_model(analysis, console)
    assert analysis.stability is not None
    _show_stability(analysis.stability, console)
    say_cautions(analysis.cautions, console)


def show_discovered(answer: Discovered, console: Console) -> None:
    """Which columns matter at a rate, and how sure that is of each."""
    found = answer.found
    say_table(answer, console)
    console.print(f"[bold]{escape(found.told.replace('feature', 'column'))}[/bold]")
    tables = []
    for with_z in (True, False):
        table = new_table(["", "column", *(["z"] if with_z else []), "p-value", "q-value"])
        for j in found.order[:MOST_ROWS_SHOWN]:
            name, z = escape(shortened(found.names[j])), "–" if found.z[j] == -np.inf else f"{found.z[j]:z.2f}"
            cells = [*([z] if with_z else []), f"{found.p[j]:.2g}", f"{found.q[j]:.2g}"]
            table.add_row("*" if found.found[j] else "", name, *cells)
        tables.append(table)
    print_first_that_fits(console, tables)
    if found.n_features > MOST_ROWS_SHOWN:
        console.print(f"     ... and {found.n_features - MOST_ROWS_SHOWN} more\n")
    console.print(
        "[dim]A column matters if the target depends on it given all others. p-value: the chance of so large an effect "
        "on rows that the models had not seen if it did not; q-value: the smallest rate at which it is named.[/dim]"
    )
    if not found.found.all():
        console.print(
            "[dim]How many rows would show more: gpsift power, on a model that gpsift rank --save has kept.[/dim]"
        )
    say_cautions(answer.cautions, console)


def show_power(power: Power, source: str, console: Console) -> None:
    """How often columns are found in studies of several sizes, and how many rows they need."""
    console.print(
        f"{escape(source)}: fitted to {power.n_rows} rows. Columns as found at a rate of "
        f"{percent_as_given(power.rate)}, in {power.n_studies} studies of each size that the model made up."
    )
    headings = [f"{size} rows" for size in power.sizes]
    tables = []
    for first in (0, len(headings) - 1, len(headings)):
        table = new_table(["column", *headings[first:], "needed"])
        for j in power.order[:MOST_ROWS_SHOWN]:
            shares = [percent(share) for share in power.shares[first:, j]]
            table.add_row(escape(shortened(power.names[j])), *shares, _needed(power, int(j)))
        tables.append(table)
    print_first_that_fits(console, tables)
    console.print(
        f"[dim]needed: rows with which a column is found in {percent_as_given(power.chance)} of studies, if its effect "
        "is what the model says.[/dim]"
    )


def _needed(power: Power, j: int) -> str:
    if not power.used[j]:
        return NOT_USED
    if np.isinf(power.needed[j]):
        return f"> {power.sizes[-1]}"
    at_most = "at most " if power.needed[j] <= power.sizes[0] else "about "
    return f"{at_most}{power.needed[j]:z.0f}"


def say_table(answer: Analysis | Discovered | PlannedAnalysis, console: Console) -> None:
    """Where the rows came from, how many they are, and what is explained."""
    columns = "column" if answer.n_columns == 1 else "columns"
    console.print(
        f"{escape(answer.source)}: {answer.n_rows} rows, {answer.n_columns:,} {columns} to explain "
        f"[bold]{escape(answer.target)}[/bold] ({answer.task})."
    )


def show_model(analysis: Analysis, console: Console) -> None:
    """Which table it was, and how well the model predicts."""
    quality = analysis.model.quality
    say_table(analysis, console)
    explained = f"explains {round(100 * quality.loo_r2)} % of the variance; " if analysis.task == "regression" else ""
    where = "above" if quality.elpd_diff >= 0 else "below"
    console.print(
        f"Leaving out one row at a time, the model {explained}{'its' if explained else 'has a'} log predictive density "
        f"{'is ' if explained else ''}{abs(quality.elpd_diff):z.0f} ± {quality.diff_se:z.0f} {where} that of a model "
        "without inputs."
    )
    if analysis.switched_on is not None:
        console.print(escape(switching_told(analysis.switched_on)))


def _show_rankings(rankings: Mapping[str, Ranking], console: Console, rest: Sequence[str]) -> None:
    """One table, with as much in it as the terminal has room for; `rest` is a line for the columns not in it."""
    name, leading = next(iter(rankings.items()))
    parts = _parts_of(rankings)
    keeps = [set(parts).difference(LEAST_NEEDED[:n]) for n in range(len(LEAST_NEEDED) + 1)]
    beside = ([cells for part in parts if part in kept for cells in parts[part]] for kept in keeps)
    kept = keeps[print_first_that_fits(console, [_ranking_table(name, leading, each) for each in beside])]
    for line in rest:
        console.print(f"     {line}\n")
    split = ", beside it how much of that moves mean and variance of the prediction"
    split = split if "shares" in kept and leading.terms else ""
    share = f"; {SHARE}: of variance, each score by VAR as a part of their sum"
    share = share if "effects" in kept and parts["effects"] else ""
    units = f"{meaning(leading.measure)}, {leading.units.replace('feature', 'column')}"
    console.print(f"[dim]{escape(name)}: {escape(units)}{split}{share}.[/dim]")
    if leading.close:
        next_ones = ", ".join(f"{shortened(column)} ({slope:z.1f})" for column, slope in leading.close.items())
        console.print(
            f"[dim]Next would be {escape(next_ones)}: in brackets the slope of the log evidence as the column enters, "
            "in standard deviations under noise.[/dim]"
        )


def _parts_of(rankings: Mapping[str, Ranking]) -> dict[str, list[Cells]]:
    """What can stand beside the score of the leading measure."""
    (_, leading), *others = rankings.items()
    largest = float(leading.scores.max()) or 1.0
    parts: dict[str, list[Cells]] = {
        "bar": [("", lambda j: "█" * max(0, round(BAR_WIDTH * leading.scores[j] / largest)))],
        "shares": [(part, lambda j, share=share: percent(share[j])) for part, share in leading.shares.items()],  # type: ignore[misc]
    }
    if leading.draws is not None:
        low, high = leading.interval().T
        parts["interval"] = [(INTERVAL, lambda j: f"{low[j]:.3g} to {high[j]:.3g}")]
    parts["effects"] = [_share(each, leading) for each in rankings.values() if each.effect_shares is not None]
    parts["others"] = [_beside(label, ranking, leading) for label, ranking in others]
    return parts


def _share(ranking: Ranking, leading: Ranking) -> Cells:
    assert ranking.effect_shares is not None
    shares = dict(zip(ranking.names, ranking.effect_shares, strict=True))
    return SHARE, lambda j: percent(shares[leading.names[j]])


def _beside(label: str, ranking: Ranking, leading: Ranking) -> Cells:
    place = {name: j for j, name in enumerate(ranking.names)}
    places = [place[name] for name in leading.names]
    scores, ranks = ranking.scores[places], ranking.ranks[places]
    if label == "VAR":
        return "√VAR", lambda j: f"{scores[j] ** 0.5:.3g}"
    return f"{label}, rank", lambda j: f"{scores[j]:.2g}, {ranks[j]}"


def _ranking_table(name: str, leading: Ranking, beside: list[Cells]) -> Table:
    table = new_table(["", "column", name])
    for heading, _ in beside:
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for position, j in enumerate(leading.order[:MOST_ROWS_SHOWN], start=1):
        is_used = leading.is_used(int(j))
        cells = [cell(int(j)) if is_used or heading == INTERVAL else "" for heading, cell in beside]
        score = f"{leading.scores[j]:.3g}" if is_used else NOT_USED
        table.add_row(str(position), escape(shortened(leading.names[j])), score, *cells)
    if len(leading.names) > MOST_ROWS_SHOWN:
        table.add_row("", f"... and {len(leading.names) - MOST_ROWS_SHOWN} more")
    return table


def _show_path(path: Path, console: Console) -> None:
    console.print(f"Submodels, {escape(path.scheme)}; elpd beside that of the model with all columns.")
    metric = next(iter(path.metrics))
    chosen = None if path.suggestion is None else path.suggestion.size
    columns: dict[str, Callable[[int], str]] = {
        "elpd": lambda k: f"{path.elpd[k]:z.1f}",
        "difference": lambda k: f"{path.diff[k]:z.1f} ± {path.diff_se[k]:z.1f}",
        metric: lambda k: f"{path.metrics[metric][k]:.4g}",
    }
    tables = []
    for kept in (["elpd", "difference", metric], ["elpd", "difference"], ["difference"]):
        table = new_table(["size", "added", *kept], texts=("added",))
        for place, size in enumerate(path.sizes):
            added = path.names[path.order[size - 1]] if size else "no column"
            cells = [columns[heading](place) for heading in kept]
            table.add_row(str(size), escape(shortened(added)), *cells, style="bold" if size == chosen else None)
        tables.append(table)
    print_first_that_fits(console, tables)


def _show_stability(found: Stability, console: Console) -> None:
    console.print(f"{len(found.scores)} random samples of {found.n_rows} rows:")
    firsts = [k for k in (1, 3, 5, 10) if k == 1 or k < len(found.names)]
    print_first_that_fits(console, [_stability_table(found, firsts[:n]) for n in range(len(firsts), -1, -1)])
    for line in found.hidden_note:
        console.print(f"{line}\n")


def _stability_table(found: Stability, firsts: list[int]) -> Table:
    table = new_table(["column", "mean rank", *("first" if k == 1 else f"in first {k}" for k in firsts)])
    ranks = found.mean_ranks
    shares = [found.in_first(k) for k in firsts]
    for j in found.order[: min(MOST_ROWS_SHOWN, found.n_shown)]:
        table.add_row(escape(shortened(found.names[j])), f"{ranks[j]:z.1f}", *(percent(share[j]) for share in shares))
    return table


def _say_oddities(analysis: Analysis, console: Console) -> None:
    odd = [finding for finding in analysis.odd_columns if finding.kind is not FindingKind.CAME_CLOSE]
    for finding in odd[:MOST_ODDITIES]:
        console.print(f"[bold]{escape(shortened(finding.data['column']))}[/bold]: {escape(finding.detail)}")


def say_cautions(cautions: Iterable[Finding], console: Console) -> None:
    """What a reader should know, with what to type about it."""
    for title, text in told(cautions, ADVICE):
        console.print(f"[yellow]{escape(title)}.[/yellow] {escape(text)}")
