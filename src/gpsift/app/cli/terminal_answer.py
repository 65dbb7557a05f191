"""Print answers as sentences and tables; a table drops columns until it fits the width of the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gpsift._utils.text import NOT_USED, SHARE, meaning, percent, percent_as_given, shorten
from gpsift.app.analysis import Analysis
from gpsift.app.analysis.analysis import NO_PAIR, describe_selection
from gpsift.app.analysis.rows import Explanation
from gpsift.app.analysis.run import AnalysisPlan, ColumnTest
from gpsift.app.analysis.saved_model import SavedModelRanking
from gpsift.app.cli.options import ADVICE
from gpsift.app.cli.terminal import MOST_ROWS_SHOWN, new_table, print_first_that_fits, print_table
from gpsift.app.findings import Finding, FindingKind, group_by_title
from gpsift.decomposition.effects import Curve, Effects
from gpsift.decomposition.interactions import Interactions
from gpsift.decomposition.sobol import VarianceShares
from gpsift.relevance.ranking import LEVEL

if TYPE_CHECKING:
    from gpsift.app.analysis.compare import Comparison
    from gpsift.relevance.ranking import Ranking
    from gpsift.selection.path import Path
    from gpsift.selection.power_analysis import Power
    from gpsift.selection.stability import Stability

BAR_WIDTH = 8
MOST_ODDITIES = 10
INTERVAL = f"{percent(LEVEL)} interval"
# Parts of the table of rankings in the order in which they are dropped.
DROPPED_FIRST = ("bar", "shares", "effects", "others", "score", "interval")

# A column of a table: its heading, and a function that returns the cell for the index of a feature.
TableColumn = tuple[str, Callable[[int], str]]


def show_saved_ranking(answer: SavedModelRanking, console: Console) -> None:
    """Print the ranking of a saved model, and the steps of cleaning the table of its rows."""
    where = "" if answer.table is None else f" of {answer.table}"
    console.print(f"{escape(answer.model)}, {answer.n_rows} rows{escape(where)}.")
    _show_rankings(answer.shown_rankings, console, answer.leading.hidden_note)
    print_cautions(answer.cautions, console)


def show_ranking(analysis: Analysis, console: Console) -> None:
    """Print the columns in their order with all measures and, if submodels were searched, how many are enough."""
    show_model(analysis, console)
    _show_rankings(analysis.shown_rankings, console, analysis.leading.hidden_note)
    odd = [finding for finding in analysis.odd_columns if finding.kind is not FindingKind.CAME_CLOSE]
    for finding in odd[:MOST_ODDITIES]:
        console.print(f"[bold]{escape(shorten(finding.data['column']))}[/bold]: {escape(finding.detail)}")
    if analysis.path is not None:
        _show_path(analysis.path, console)
        suggestion = analysis.path.suggestion
        assert suggestion is not None
        chosen = analysis.selected
        answer = "No size qualifies" if chosen is None else f"Enough: {', '.join(map(shorten, chosen)) or 'no column'}"
        reason = suggestion.reason.replace("+-", "±")
        console.print(f"[bold]{escape(answer)}[/bold]: {escape(reason)}.")
    if analysis.stability is not None:
        _show_stability(analysis.stability, console)
    print_cautions(analysis.cautions, console)


def show_stability(analysis: Analysis, console: Console) -> None:
    """Print how often each column is among the first."""
    show_model(analysis, console)
    assert analysis.stability is not None
    _show_stability(analysis.stability, console)
    print_cautions(analysis.cautions, console)


def show_discoveries(answer: ColumnTest, console: Console) -> None:
    """Print which columns matter at a rate, and how sure that is of each."""
    found = answer.found
    print_data(answer, console)
    console.print(f"[bold]{escape(found.told.replace('feature', 'column'))}[/bold]")
    rows = [
        {
            "": "*" if found.found[j] else "",
            "column": escape(shorten(found.names[j])),
            "z": "–" if found.z[j] == -np.inf else f"{found.z[j]:z.2f}",
            "p-value": f"{found.p[j]:.2g}",
            "q-value": f"{found.q[j]:.2g}",
        }
        for j in found.order[:MOST_ROWS_SHOWN]
    ]
    print_table(console, [["", "column", "z", "p-value", "q-value"], ["", "column", "p-value", "q-value"]], rows)
    _print_rest(found.n_features, console)
    console.print(
        "[dim]A column matters if the target depends on it given all others. p-value: the chance of so large an effect "
        "on rows that the models had not seen if it did not; q-value: the smallest rate at which it is named.[/dim]"
    )
    if not found.found.all():
        console.print(
            "[dim]How many rows would show more: gpsift power, on a model that gpsift rank --save has kept.[/dim]"
        )
    print_cautions(answer.cautions, console)


def show_comparison(answer: Comparison, console: Console) -> None:
    """Print both scores of each column, its ranks, and whether the change is clear."""
    console.print(f"{escape(answer.labels[0])} (first) and {escape(answer.labels[1])} (second), by {answer.measure}.")
    for sentence in answer.sentences:
        console.print(escape(sentence.replace("feature", "column")))
    tables = []
    for with_intervals in (answer.has_intervals, False):
        table = new_table(["", "column", "first", "second", "change", "place"])
        for j in answer.order[:MOST_ROWS_SHOWN].tolist():
            scores = [answer.score_text(which, j) for which in (0, 1)]
            if with_intervals:
                limits = answer.intervals[:, j]
                scores = [
                    f"{score} ({low:.2g} to {high:.2g})" for score, (low, high) in zip(scores, limits, strict=True)
                ]
            place = f"{answer.ranks[0, j]} → {answer.ranks[1, j]}"
            name = escape(shorten(answer.names[j]))
            table.add_row("*" if answer.is_clear[j] else "", name, *scores, f"{answer.change[j]:+z.3g}", place)
        tables.append(table)
    print_first_that_fits(console, tables)
    _print_rest(answer.n_features, console)
    if answer.has_intervals:
        console.print("[dim]*: the intervals of the two scores do not overlap.[/dim]")


def _print_rest(n: int, console: Console) -> None:
    """Print how many of n columns a table leaves out."""
    if n > MOST_ROWS_SHOWN:
        console.print(f"     ... and {n - MOST_ROWS_SHOWN} more\n")


def show_power(power: Power, source: str, console: Console) -> None:
    """Print how often columns are found in studies of several sizes, and how many rows they need."""
    console.print(
        f"{escape(source)}: fitted to {power.n_rows} rows. Columns as found at a rate of "
        f"{percent_as_given(power.rate)}, in {power.n_studies} studies of each size that the model made up."
    )
    headings = [f"{size} rows" for size in power.sizes]
    rows = []
    for j in power.order[:MOST_ROWS_SHOWN]:
        needed = f"{power.needed[j]:z.0f}"
        if not power.used[j]:
            needed = NOT_USED
        elif np.isinf(power.needed[j]):
            needed = f"> {power.sizes[-1]}"
        else:
            needed = f"{'at most' if power.needed[j] <= power.sizes[0] else 'about'} {needed}"
        shares = dict(zip(headings, map(percent, power.shares[:, j]), strict=True))
        rows.append({"column": escape(shorten(power.names[j])), **shares, "needed": needed})
    n = len(headings)
    print_table(console, [["column", *headings[first:], "needed"] for first in (0, n - 1, n)], rows)
    console.print(
        f"[dim]needed: rows with which a column is found in {percent_as_given(power.chance)} of studies, if its effect "
        "is what the model says.[/dim]"
    )


def print_data(answer: Analysis | ColumnTest | AnalysisPlan, console: Console) -> None:
    """Print the source of the rows, their number, and the target."""
    columns = "column" if answer.n_columns == 1 else "columns"
    console.print(
        f"{escape(answer.source)}: {answer.n_rows} rows, {answer.n_columns:,} {columns} to explain "
        f"[bold]{escape(answer.target)}[/bold] ({answer.task})."
    )


def show_model(analysis: Analysis, console: Console) -> None:
    """Print the source of the rows, and how well the model predicts."""
    quality = analysis.model.quality
    print_data(analysis, console)
    explained = f"explains {round(100 * quality.loo_r2)} % of the variance; " if analysis.task == "regression" else ""
    where = "above" if quality.elpd_diff >= 0 else "below"
    console.print(
        f"Leaving out one row at a time, the model {explained}{'its' if explained else 'has a'} log predictive density "
        f"{'is ' if explained else ''}{abs(quality.elpd_diff):z.0f} ± {quality.diff_se:z.0f} {where} that of a model "
        "without inputs."
    )
    if analysis.switched_on is not None:
        console.print(escape(describe_selection(analysis.switched_on)))


def _show_rankings(rankings: Mapping[str, Ranking], console: Console, rest: Sequence[str]) -> None:
    """Print one table with as many parts as fit; `rest` is a line about columns that are not in it."""
    name, leading = next(iter(rankings.items()))
    parts = _optional_parts(rankings)
    keeps = [set(parts).difference(DROPPED_FIRST[:n]) for n in range(len(DROPPED_FIRST) + 1)]
    beside = ([cells for part in parts if part in kept for cells in parts[part]] for kept in keeps)
    kept = keeps[print_first_that_fits(console, [_ranking_table(name, leading, each) for each in beside])]
    for line in rest:
        console.print(f"     {line}\n")
    units = f"{meaning(leading.measure)}, {leading.units.replace('feature', 'column')}"
    if "shares" in kept and leading.terms:
        units += ", beside it how much of that moves mean and variance of the prediction"
    if "effects" in kept and parts["effects"]:
        units += f"; {SHARE}: of variance, each score by VAR as a part of their sum"
    console.print(f"[dim]{escape(name)}: {escape(units)}.[/dim]")
    if leading.draws is not None:
        console.print(
            f"[dim]strength: what {escape(name)} would be if the function were known; it lies in the interval with a "
            f"probability of {percent(LEVEL)}.[/dim]"
        )
    if leading.close:
        next_ones = ", ".join(f"{shorten(column)} ({slope:z.1f})" for column, slope in leading.close.items())
        console.print(
            f"[dim]Next would be {escape(next_ones)}: in brackets the slope of the log evidence as the column enters, "
            "in standard deviations under noise.[/dim]"
        )


def _optional_parts(rankings: Mapping[str, Ranking]) -> dict[str, list[TableColumn]]:
    """Return the columns that may follow the score of the leading measure, by part."""
    (name, leading), *others = rankings.items()
    values = leading.shown
    largest = float(values.max()) or 1.0
    parts: dict[str, list[TableColumn]] = {
        "bar": [("", lambda j: "█" * max(0, round(BAR_WIDTH * values[j] / largest)))],
    }
    if leading.draws is not None:
        low, high = leading.interval().T
        parts["interval"] = [(INTERVAL, lambda j: f"{low[j]:.3g} to {high[j]:.3g}")]
        parts["score"] = [(name, lambda j: f"{leading.scores[j]:.3g}")]
    parts["shares"] = [(part, lambda j, share=share: percent(share[j])) for part, share in leading.shares.items()]  # type: ignore[misc]
    parts["effects"] = [_variance_share(each, leading) for each in rankings.values() if each.effect_shares is not None]
    parts["others"] = [_other_scores(label, ranking, leading) for label, ranking in others]
    return parts


def _variance_share(ranking: Ranking, leading: Ranking) -> TableColumn:
    assert ranking.effect_shares is not None
    shares = dict(zip(ranking.names, ranking.effect_shares, strict=True))
    return SHARE, lambda j: percent(shares[leading.names[j]])


def _other_scores(label: str, ranking: Ranking, leading: Ranking) -> TableColumn:
    index = {name: j for j, name in enumerate(ranking.names)}
    same = [index[name] for name in leading.names]
    scores, ranks = ranking.scores[same], ranking.ranks[same]
    if label == "VAR":
        return "√VAR", lambda j: f"{scores[j] ** 0.5:.3g}"
    return f"{label}, rank", lambda j: f"{scores[j]:.2g}, {ranks[j]}"


def _ranking_table(name: str, leading: Ranking, beside: list[TableColumn]) -> Table:
    values = leading.shown
    table = new_table(["", "column", name if leading.draws is None else "strength"])
    for heading, _ in beside:
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for position, j in enumerate(leading.order[:MOST_ROWS_SHOWN], start=1):
        is_used = leading.is_used(int(j))
        cells = [cell(int(j)) if is_used or heading == INTERVAL else "" for heading, cell in beside]
        score = f"{values[j]:.3g}" if is_used else NOT_USED
        table.add_row(str(position), escape(shorten(leading.names[j])), score, *cells)
    if len(leading.names) > MOST_ROWS_SHOWN:
        table.add_row("", f"... and {len(leading.names) - MOST_ROWS_SHOWN} more")
    return table


def _show_path(path: Path, console: Console) -> None:
    console.print(f"Submodels, {escape(path.scheme)}; elpd beside that of the model with all columns.")
    metric = next(iter(path.metrics))
    rows = [
        {
            "size": str(size),
            "added": escape(shorten(path.names[path.order[size - 1]] if size else "no column")),
            "elpd": f"{path.elpd[k]:z.1f}",
            "difference": f"{path.diff[k]:z.1f} ± {path.diff_se[k]:z.1f}",
            metric: f"{path.metrics[metric][k]:.4g}",
        }
        for k, size in enumerate(path.sizes)
    ]
    chosen = None if path.suggestion is None else path.suggestion.size
    bold = next((k for k, size in enumerate(path.sizes) if size == chosen), None)
    kept = (["elpd", "difference", metric], ["elpd", "difference"], ["difference"])
    print_table(console, [["size", "added", *each] for each in kept], rows, texts=("added",), bold=bold)


def _show_stability(found: Stability, console: Console) -> None:
    console.print(f"{len(found.scores)} random samples of {found.n_rows} rows:")
    firsts = [k for k in (1, 3, 5, 10) if k == 1 or k < len(found.names)]
    shares = {"first" if k == 1 else f"in first {k}": found.in_first(k) for k in firsts}
    ranks = found.mean_ranks
    rows = [
        {
            "column": escape(shorten(found.names[j])),
            "mean rank": f"{ranks[j]:z.1f}",
            **{heading: percent(share[j]) for heading, share in shares.items()},
        }
        for j in found.order[: min(MOST_ROWS_SHOWN, found.n_shown)]
    ]
    kept = [list(shares)[:n] for n in range(len(firsts), -1, -1)]
    print_table(console, [["column", "mean rank", *each] for each in kept], rows)
    for line in found.hidden_note:
        console.print(f"{line}\n")


def print_cautions(cautions: Iterable[Finding], console: Console) -> None:
    """Print findings that a reader should know, with the option that helps."""
    for title, text in group_by_title(cautions, ADVICE):
        console.print(f"[yellow]{escape(title)}.[/yellow] {escape(text)}")


# Choices of headings for the table of effects; the first one that fits the terminal is used.
EFFECTS_HEADINGS = (
    ("column", "acts", "lowest", "highest", "range"),
    ("column", "acts", "lowest", "highest"),
    ("column", "acts", "range"),
    ("column", "acts"),
)


def show_effects(found: Effects, predicted: str, console: Console) -> None:
    """Print how each column changes the prediction, the most relevant first; `predicted` names the prediction."""
    if not found.curves:
        console.print("No column that the model uses has a curve of its own, so there is nothing to draw.")
        return
    console.print(
        f"Averaged over the rows, [bold]{escape(predicted)}[/bold] is {found.average:.4g}. Each column moves it, the "
        "others as they are:"
    )
    rows = [_curve_cells(curve) for curve in found.curves[:MOST_ROWS_SHOWN]]
    kept = print_table(console, EFFECTS_HEADINGS, rows, texts=("column", "acts"))
    _print_rest(len(found), console)
    explained = "acts: up or down along the column, as far as that is clear."
    if "lowest" in kept:
        explained += " lowest, highest: beside the average, and at which value."
    if "range" in kept:
        band = "" if found.band.startswith("none") else ", ± one standard deviation"
        explained += f" range: from the lowest point to the highest{band}."
    console.print(f"[dim]{explained}[/dim]")
    beyond = [shorten(curve.name) for curve in found if curve.leaves_the_data]
    if beyond:
        curves, go = ("The curve", "goes") if len(beyond) == 1 else ("Curves", "go")
        text = f"{curves} of {', '.join(beyond)} {go} where nine rows of ten could not be."
        console.print(f"[yellow]Beyond the data.[/yellow] {escape(text)}")


def _curve_cells(curve: Curve) -> dict[str, str]:
    course = curve.course
    lowest, highest = (
        f"{curve.mean[place]:+z.3g} at {escape(shorten(curve.at(place), 14))}"
        for place in (course.lowest, course.highest)
    )
    error = f" ± {course.span_sd:.2g}" if course.span_sd >= 0 else ""
    return {
        "column": escape(shorten(curve.name)),
        "acts": escape(course.told),
        "lowest": lowest,
        "highest": highest,
        "range": f"{course.span:.3g}{error}",
    }


def show_interactions(found: Interactions, shares: VarianceShares, console: Console) -> None:
    """Print which columns act together, and how much of the variance is due to each."""
    console.print(f"[bold]{escape(found.told if found.found else NO_PAIR)}[/bold]")
    if found.found:
        table = new_table(["column", "with", "share", "evidence"], texts=("column", "with"))
        for pair in found.found[:MOST_ROWS_SHOWN]:
            at = tuple(found.names.index(name) for name in pair)
            names = (escape(shorten(name)) for name in pair)
            table.add_row(*names, percent(found.share[at], 1), f"{found.evidence[at]:.3g}")
        console.print(table)
        console.print(
            "[dim]share: of the variance of the function, what needs both columns. evidence: that beside what the data "
            f"have not decided; pairs with less than {found.least_evidence:g} are not named.[/dim]\n"
        )
    console.print(escape(shares.told.replace("feature", "column")))
    rows = [
        {
            "column": escape(shorten(shares.names[j])),
            "share": percent(shares.shapley[j], 1),
            "alone": percent(shares.first[j], 1),
            "in all": percent(shares.total[j], 1),
        }
        for j in shares.order[:MOST_ROWS_SHOWN]
        if shares.total[j] > 0
    ]
    print_table(console, [["column", "share", "alone", "in all"], ["column", "share"]], rows)
    console.print(
        "[dim]share: of the variance of the function, with what columns do together divided among them. alone: by the "
        f"column's own curve. in all: everything in which it has a part. The function is that of {shares.mean_of}, and "
        "columns are taken as varying by themselves.[/dim]"
    )


# Choices of headings for the table of an explanation; those without cells are left out.
ROW_HEADINGS = (
    ("column", "value", "adds", "here", "average", "moves mean", "moves variance"),
    ("column", "value", "adds", "here", "average"),
    ("column", "adds", "here", "average"),
    ("column", "adds"),
)


def show_explanation(analysis: Analysis, local: Explanation, what: str, rows: pd.DataFrame, console: Console) -> None:
    """Print the prediction at some rows, what each column adds to it, and how strongly it reacts to each."""
    console.print(f"{escape(what)}: {escape(_prediction_sentence(analysis, local))}.")
    attribution, is_single = local.attribution, local.n_rows == 1
    cells: dict[str, Callable[[int], str]] = {}
    if attribution is not None:
        target = analysis.target if attribution.mean_of == "the target" else attribution.mean_of
        here = float(attribution.prediction.mean())
        text = f"; the columns add {here - attribution.average:+z.4g}, which makes {here:.4g}."
        console.print(escape(f"On average {target} is {attribution.average:.4g}{text}"))
        means, sd = attribution.values.mean(axis=0), attribution.sd[0]
        cells["adds"] = lambda j: f"{means[j]:+z.3g}" + (f" ± {sd[j]:.2g}" if is_single else "")
    cells["here"] = lambda j: f"{local.scores[j]:.3g}"
    cells["average"] = lambda j: f"{local.average[j]:.3g}"
    for heading, shares in (("moves mean", local.moves_mean), ("moves variance", local.moves_variance)):
        if shares is not None:
            cells[heading] = lambda j, shares=shares: percent(shares[j])  # type: ignore[misc]
    lines = []
    for j in local.shown_order[:MOST_ROWS_SHOWN].tolist():
        line = {"column": escape(shorten(local.names[j])), "value": escape(_value(rows[local.names[j]]))}
        found = {heading: cell(j) for heading, cell in cells.items()}
        lines.append(line | (found if local.used[j] else {next(iter(cells)): NOT_USED}))
    known = ("column", "value", *cells)
    choices = [[each for each in kept if each in known] for kept in ROW_HEADINGS if "adds" in cells or "here" in kept]
    kept = print_table(console, choices, lines, texts=("column", "value"))
    explained = []
    if "adds" in kept:
        how_sure = "± one posterior standard deviation" if is_single else "on average over these rows"
        explained.append(f"adds: to the average, {how_sure}.")
    if "here" in kept:
        these = "this row" if is_single else "these rows"
        explained.append(f"here, average: the strength of reaction (KL) at {these}, and on average over all rows.")
    console.print(f"[dim]{' '.join(explained)}[/dim]")


def _prediction_sentence(analysis: Analysis, local: Explanation) -> str:
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
