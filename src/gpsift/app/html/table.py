"""Make the relevance table of a page: a line for each column of the data, with flags for findings about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from gpsift._utils.text import NOT_USED, SHARE, meaning
from gpsift.app.analysis import Analysis
from gpsift.app.analysis.saved_model import SavedModelRanking
from gpsift.app.findings import Finding, FindingKind
from gpsift.app.html.text import TERMS, align, limits, number, percent
from gpsift.relevance.ranking import LEVEL, Ranking

# The largest number of reasons below the table; the others are tooltips of the flags.
MOST_REASONS = 10
# The meaning of a score of the leading measure.
MEANINGS = {
    "KL": "how strongly the prediction reacts to a column",
    "VAR": "how much the predicted mean varies with a column while the others stay",
}


@dataclass(frozen=True)
class Cell:
    """A cell of the table: its text, and the value by which it is sorted (None: always last).

    A download has the value, or instead the values of `kept`, each under the heading with its name added.
    """

    text: str
    value: float | None
    kept: Mapping[str, float | None] | None = None


@dataclass(frozen=True)
class Heading:
    """A heading: its text, and the explanation in its tooltip."""

    text: str
    title: str


# One column of the table: a heading, and the cells below it in the order of the ranking's columns.
HeadedCells = tuple[Heading, list[Cell]]


@dataclass(frozen=True)
class TableLine:
    """A line of the table, for one column of the data."""

    name: str
    rank: int
    score: Cell
    bars: tuple[tuple[str, float], ...]
    cells: tuple[Cell, ...]
    flags: tuple[Finding, ...]


@dataclass(frozen=True)
class RelevanceTable:
    """The table: headings after the first three (rank, column, score), and lines in the order of the first ranking."""

    score: Heading
    heads: tuple[Heading, ...]
    says: str
    units: str
    columns: tuple[TableLine, ...]
    uneven: tuple[str, ...]
    rest: tuple[str, ...] = ()  # lines about columns that have no line of their own

    @property
    def has_shares(self) -> bool:
        """True if the table has shares of variance."""
        return any(head.text == SHARE for head in self.heads)

    @property
    def terms(self) -> list[str]:
        """The measures in the headings that the glossary explains."""
        heads = [self.score.text, *(head.text.removeprefix("√") for head in self.heads)]
        return [word for word in heads if word in TERMS]

    @property
    def flagged(self) -> list[TableLine]:
        """The first used columns with flags."""
        return [column for column in self.columns if column.flags and column.score.text != NOT_USED][:MOST_REASONS]


def relevance_table(analysis: Analysis | SavedModelRanking) -> RelevanceTable:
    """Make the table: a line for each column of the data, with its scores and ranks in all rankings."""
    label, leading = next(iter(analysis.shown_rankings.items()))
    intervals = list(_interval_cells(analysis))
    always = [head for head, _ in intervals]  # shown also for columns that are not used
    parts = [*_mean_and_variance_shares(leading), *intervals, *_other_rankings(analysis), *_unevenness_cells(leading)]
    odd: dict[str, list[Finding]] = {}
    for each in analysis.odd_columns:
        odd.setdefault(each.data["column"], []).append(each)
    uneven = [each.data["column"] for each in analysis.odd_columns if each.kind is FindingKind.MATTERS_FOR_FEW_ROWS]
    largest = float(leading.scores.max()) or 1.0
    scores = _cells(leading.scores)
    columns = tuple(
        TableLine(
            name=leading.names[j],
            rank=place,
            score=scores[j] if leading.is_used(j) else Cell(NOT_USED, 0.0),
            bars=tuple(
                (term, round(100 * float(leading.scores[j] / largest * share[j]), 2))
                for term, share in (leading.shares or {"mean": np.ones_like(leading.scores)}).items()
            ),
            cells=tuple(cells[j] if leading.is_used(j) or head in always else Cell("–", None) for head, cells in parts),
            flags=tuple(odd.get(leading.names[j], ())),
        )
        for place, j in enumerate(leading.order.tolist(), start=1)
    )
    return RelevanceTable(
        score=Heading(label, f"{meaning(leading.measure).capitalize()} by {leading.measure}, {column_units(leading)}"),
        heads=tuple(head for head, _ in parts),
        says=MEANINGS.get(label, "how relevant a column is"),
        units=column_units(leading),
        columns=columns,
        uneven=tuple(uneven),
        rest=analysis.leading.hidden_note,
    )


def column_units(ranking: Ranking) -> str:
    """Return the units of the scores, with "column" in place of "feature"."""
    return ranking.units.replace("feature", "column")


def _cells(values: np.ndarray) -> list[Cell]:
    texts = align(values)
    return [Cell(text, float(v) if np.isfinite(v) else None) for text, v in zip(texts, values, strict=True)]


def _share_cell(value: float) -> Cell:
    return Cell(percent(value), float(value))


def _mean_and_variance_shares(ranking: Ranking) -> Iterator[HeadedCells]:
    titles = {
        "mean": "Share of the squared score that moves the predicted mean",
        "variance": "Share of the squared score that moves the predicted variance",
    }
    for term, share in ranking.shares.items():
        yield Heading(f"moves {term}", titles.get(term, term)), [_share_cell(value) for value in share]


def _interval_cells(analysis: Analysis | SavedModelRanking) -> Iterator[HeadedCells]:
    """Yield strengths, their intervals, and probabilities of a rank among the first, from draws of the strengths."""
    leading, k = analysis.shown, analysis.n_first
    if leading.draws is None:
        return
    middle = Heading("strength", "What the score would be if the function were known: the median of its draws")
    yield middle, _cells(leading.strength)
    width = Heading(f"{percent(LEVEL)} interval", "Holds the strength with this probability; sorts by width")
    yield width, [Cell(f"{number(a)} – {number(b)}", float(b - a), limits(a, b)) for a, b in leading.interval()]
    chance = Heading(f"P(rank ≤ {k})", f"Share of the draws in which it is among the first {k}")
    yield chance, [_share_cell(value) for value in leading.in_first_probability(k)]


def _other_rankings(analysis: Analysis | SavedModelRanking) -> Iterator[HeadedCells]:
    """Yield shares of variance, if scores are variances, and then scores and ranks of the other rankings.

    Scores by VAR are shown as their roots, which have the units of the other scores.
    """
    names = analysis.shown.names
    for ranking in analysis.shown_rankings.values():
        if ranking.effect_shares is not None:
            shares = dict(zip(ranking.names, ranking.effect_shares, strict=True))
            head = Heading(SHARE, f"Share of variance: the score by {ranking.measure} as a part of the sum of all")
            yield head, [_share_cell(shares[name]) if name in shares else Cell("–", None) for name in names]
    for label, ranking in list(analysis.shown_rankings.items())[1:]:
        known = {name: j for j, name in enumerate(ranking.names)}
        scores = np.array([ranking.scores[known[name]] if name in known else np.nan for name in names])
        if label == "VAR":
            units = column_units(ranking).replace("in squared units", "in units")
            yield Heading("√VAR", f"Root of {ranking.measure}, {units}"), _cells(np.sqrt(scores))
            continue
        title = f"Score by {ranking.measure}, {column_units(ranking)}"
        if label == "ARD":
            title = "Inverse length-scale, per standard deviation of the column"
        yield Heading(label, title), _cells(scores)
        ranks = ranking.ranks.tolist()
        places = [Cell(str(ranks[known[n]]), ranks[known[n]]) if n in known else Cell("–", None) for n in names]
        yield Heading(f"{label} rank", f"Place by {ranking.measure}"), places


def _unevenness_cells(ranking: Ranking) -> Iterator[HeadedCells]:
    ratios = ranking.unevenness
    if ratios is not None:
        head = Heading("max / mean", "Largest score at a row beside the mean over all rows")
        yield head, [Cell(f"{x:z.1f} ×", float(x)) if np.isfinite(x) else Cell("–", None) for x in ratios]
