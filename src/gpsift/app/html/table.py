"""The relevance table of a page: a line for each column of the data, with flags for what is odd about it."""

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

# The largest number of reasons below the table; the others appear where a reader points at a flag.
MOST_REASONS = 10
# The meaning of a score of the leading measure.
SAYS = {
    "KL": "how strongly the prediction reacts to a column",
    "VAR": "how much the predicted mean varies with a column while the others stay",
}


@dataclass(frozen=True)
class Cell:
    """A cell of the table: its text, and the value by which it is sorted (None: always last).

    A download keeps the value, or, where it is given, `kept`: values by what is added to the heading.
    """

    text: str
    value: float | None
    kept: Mapping[str, float | None] | None = None


@dataclass(frozen=True)
class Head:
    """A heading: its text, and an explanation for readers who point at it."""

    text: str
    title: str


# A heading, and the cells below it in the order of the ranking's columns.
Part = tuple[Head, list[Cell]]


@dataclass(frozen=True)
class Column:
    """A line of the table: a column of the data."""

    name: str
    rank: int
    score: Cell
    bars: tuple[tuple[str, float], ...]
    cells: tuple[Cell, ...]
    flags: tuple[Finding, ...]


@dataclass(frozen=True)
class RelevanceTable:
    """The table: headings after the first three (rank, column, score), and lines in the order of the first ranking."""

    score: Head
    heads: tuple[Head, ...]
    says: str
    units: str
    columns: tuple[Column, ...]
    uneven: tuple[str, ...]
    rest: tuple[str, ...] = ()  # lines about columns that have no line of their own

    @property
    def has_shares(self) -> bool:
        """Whether the table has shares of variance."""
        return any(head.text == SHARE for head in self.heads)

    @property
    def terms(self) -> list[str]:
        """The measures in the headings that the glossary explains."""
        heads = [self.score.text, *(head.text.removeprefix("√") for head in self.heads)]
        return [word for word in heads if word in TERMS]

    @property
    def flagged(self) -> list[Column]:
        """The first used columns with flags."""
        return [column for column in self.columns if column.flags and column.score.text != NOT_USED][:MOST_REASONS]


def relevance_table(analysis: Analysis | SavedModelRanking) -> RelevanceTable:
    """Put all that the rankings say of each column side by side."""
    label, leading = next(iter(analysis.shown_rankings.items()))
    draws = list(_draws(analysis))
    of_all = [head for head, _ in draws]  # a column that is not used may have a score all the same
    parts = [*_moments(leading), *draws, *_other_rankings(analysis), *_unevenness(leading)]
    odd: dict[str, list[Finding]] = {}
    for each in analysis.odd_columns:
        odd.setdefault(each.data["column"], []).append(each)
    uneven = [each.data["column"] for each in analysis.odd_columns if each.kind is FindingKind.MATTERS_FOR_FEW_ROWS]
    largest = float(leading.scores.max()) or 1.0
    scores = _cells(leading.scores)
    columns = tuple(
        Column(
            name=leading.names[j],
            rank=place,
            score=scores[j] if leading.is_used(j) else Cell(NOT_USED, 0.0),
            bars=tuple(
                (term, round(100 * float(leading.scores[j] / largest * share[j]), 2))
                for term, share in (leading.shares or {"mean": np.ones_like(leading.scores)}).items()
            ),
            cells=tuple(cells[j] if leading.is_used(j) or head in of_all else Cell("–", None) for head, cells in parts),
            flags=tuple(odd.get(leading.names[j], ())),
        )
        for place, j in enumerate(leading.order.tolist(), start=1)
    )
    return RelevanceTable(
        score=Head(label, f"{meaning(leading.measure).capitalize()} by {leading.measure}, {column_units(leading)}"),
        heads=tuple(head for head, _ in parts),
        says=SAYS.get(label, "how relevant a column is"),
        units=column_units(leading),
        columns=columns,
        uneven=tuple(uneven),
        rest=analysis.leading.hidden_note,
    )


def column_units(ranking: Ranking) -> str:
    """Return the units of the scores, with "column" for "feature", as everywhere in a page."""
    return ranking.units.replace("feature", "column")


def _cells(values: np.ndarray) -> list[Cell]:
    texts = align(values)
    return [Cell(text, float(v) if np.isfinite(v) else None) for text, v in zip(texts, values, strict=True)]


def _share(value: float) -> Cell:
    return Cell(percent(value), float(value))


def _moments(ranking: Ranking) -> Iterator[Part]:
    titles = {
        "mean": "Share of the squared score that moves the predicted mean",
        "variance": "Share of the squared score that moves the predicted variance",
    }
    for term, share in ranking.shares.items():
        yield Head(f"moves {term}", titles.get(term, term)), [_share(value) for value in share]


def _draws(analysis: Analysis | SavedModelRanking) -> Iterator[Part]:
    """Yield interval and probability of a place among the first, over the draws of the hyperparameters."""
    leading, k = analysis.shown, analysis.n_first
    if leading.draws is None:
        return
    width = Head(f"{percent(LEVEL)} interval", "Of the score, over the draws of the hyperparameters; sorts by width")
    yield width, [Cell(f"{number(a)} – {number(b)}", float(b - a), limits(a, b)) for a, b in leading.interval()]
    chance = Head(f"P(rank ≤ {k})", f"Share of the draws in which it is among the first {k}")
    yield chance, [_share(value) for value in leading.in_first_probability(k)]


def _other_rankings(analysis: Analysis | SavedModelRanking) -> Iterator[Part]:
    """Yield the share of variance, where scores are variances, and then scores and ranks of the other rankings.

    Of VAR it is the root, which has the units of the others.
    """
    names = analysis.shown.names
    for ranking in analysis.shown_rankings.values():
        if ranking.effect_shares is not None:
            shares = dict(zip(ranking.names, ranking.effect_shares, strict=True))
            head = Head(SHARE, f"Share of variance: the score by {ranking.measure} as a part of the sum of all")
            yield head, [_share(shares[name]) if name in shares else Cell("–", None) for name in names]
    for label, ranking in list(analysis.shown_rankings.items())[1:]:
        known = {name: j for j, name in enumerate(ranking.names)}
        scores = np.array([ranking.scores[known[name]] if name in known else np.nan for name in names])
        if label == "VAR":
            units = column_units(ranking).replace("in squared units", "in units")
            yield Head("√VAR", f"Root of {ranking.measure}, {units}"), _cells(np.sqrt(scores))
            continue
        title = f"Score by {ranking.measure}, {column_units(ranking)}"
        if label == "ARD":
            title = "Inverse length-scale, per standard deviation of the column"
        yield Head(label, title), _cells(scores)
        ranks = ranking.ranks.tolist()
        places = [Cell(str(ranks[known[n]]), ranks[known[n]]) if n in known else Cell("–", None) for n in names]
        yield Head(f"{label} rank", f"Place by {ranking.measure}"), places


def _unevenness(ranking: Ranking) -> Iterator[Part]:
    ratios = ranking.unevenness
    if ratios is not None:
        head = Head("max / mean", "Largest score at a row beside the mean over all rows")
        yield head, [Cell(f"{x:z.1f} ×", float(x)) if np.isfinite(x) else Cell("–", None) for x in ratios]
