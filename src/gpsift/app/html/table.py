"""The relevance table: a line for each column of the data, and what is odd about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gpsift._utils.words import NOT_USED, SHARE, meaning
from gpsift.app.analysis import Analysis
from gpsift.app.analysis.ranked_again import RankedAgain
from gpsift.app.findings import Finding, FindingKind
from gpsift.app.html.glossary import TERMS
from gpsift.app.html.words import aligned, limits, number, percent
from gpsift.relevance.ranking import LEVEL, Ranking

# This many reasons stand below the table; the others can be read by pointing at a flag.
MOST_REASONS = 10
# What the score of the leading measure says.
SAYS = {
    "KL": "how strongly the prediction reacts to a column",
    "VAR": "how much the predicted mean varies with a column while the others stay",
}


@dataclass(frozen=True)
class Cell:
    """A number of the table: what is shown, what it is sorted by (None: always last), and what a download keeps.

    That is what it is sorted by, unless `kept` says otherwise: values by what is added to the heading.
    """

    text: str
    value: float | None
    kept: Mapping[str, float | None] | None = None


@dataclass(frozen=True)
class Head:
    """A heading: its words, and an explanation for whoever points at it."""

    text: str
    title: str


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
    """Headings after the first three (rank, column, score), and lines in the order of the leading ranking."""

    score: Head
    heads: tuple[Head, ...]
    says: str
    units: str
    columns: tuple[Column, ...]
    uneven: tuple[str, ...]
    rest: tuple[str, ...] = ()  # a line for columns that have none of their own

    @property
    def has_shares(self) -> bool:
        """Whether shares of variance are among its columns."""
        return any(head.text == SHARE for head in self.heads)

    @property
    def terms(self) -> list[str]:
        """The measures in its headings that can be asked about."""
        heads = [self.score.text, *(head.text.removeprefix("√") for head in self.heads)]
        return [word for word in heads if word in TERMS]

    @property
    def flagged(self) -> list[Column]:
        """The first columns that are used and have something odd about them."""
        return [column for column in self.columns if column.flags and column.score.text != NOT_USED][:MOST_REASONS]


def relevance_table(analysis: Analysis | RankedAgain) -> RelevanceTable:
    """Everything that the rankings say of each column, side by side."""
    label, leading = next(iter(analysis.told.items()))
    drawn = _draws(analysis)
    parts = [*_shares(leading), *drawn, *_effects(analysis), *_others(analysis), *_extremes(leading)]
    of_all = [head for head, _ in drawn]  # a column that is not used may have a score all the same
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
    """The units of the scores, in the words of the page: a feature is a column of the user's table."""
    return ranking.units.replace("feature", "column")


def _cells(values: np.ndarray) -> list[Cell]:
    texts = aligned(values)
    return [Cell(text, float(v) if np.isfinite(v) else None) for text, v in zip(texts, values, strict=True)]


def _share(value: float) -> Cell:
    return Cell(percent(value), float(value))


def _shares(ranking: Ranking) -> list[tuple[Head, list[Cell]]]:
    titles = {
        "mean": "Share of the squared score that moves the predicted mean",
        "variance": "Share of the squared score that moves the predicted variance",
    }
    return [
        (Head(f"moves {term}", titles.get(term, term)), [_share(value) for value in share])
        for term, share in ranking.shares.items()
    ]


def _draws(analysis: Analysis | RankedAgain) -> list[tuple[Head, list[Cell]]]:
    """Interval and probability of a place among the first, over the draws of the hyperparameters."""
    leading = analysis.leading_told
    if leading.draws is None:
        return []
    k = analysis.n_first
    width = Head(f"{percent(LEVEL)} interval", "Of the score, over the draws of the hyperparameters; sorts by width")
    spans = [
        Cell(f"{number(low)} – {number(high)}", float(high - low), limits(low, high))
        for low, high in leading.interval()
    ]
    chance = Head(f"P(rank ≤ {k})", f"Share of the draws in which it is among the first {k}")
    return [(width, spans), (chance, [_share(value) for value in leading.in_first_probability(k)])]


def _effects(analysis: Analysis | RankedAgain) -> list[tuple[Head, list[Cell]]]:
    """The share of variance of each column, by the ranking whose scores are variances."""
    names = analysis.leading_told.names
    parts = []
    for ranking in analysis.told.values():
        if ranking.effect_shares is not None:
            shares = dict(zip(ranking.names, ranking.effect_shares, strict=True))
            head = Head(SHARE, f"Share of variance: the score by {ranking.measure} as a part of the sum of all")
            parts.append((head, [_share(shares[name]) if name in shares else Cell("–", None) for name in names]))
    return parts


def _others(analysis: Analysis | RankedAgain) -> list[tuple[Head, list[Cell]]]:
    """The other rankings by name, the root of VAR so that it compares with the others, and the places of ARD."""
    names = analysis.leading_told.names
    parts = []
    for label, ranking in list(analysis.told.items())[1:]:
        known = {name: j for j, name in enumerate(ranking.names)}
        scores = np.array([ranking.scores[known[name]] if name in known else np.nan for name in names])
        if label == "VAR":
            units = column_units(ranking).replace("in squared units", "in units")
            parts.append((Head("√VAR", f"Root of {ranking.measure}, {units}"), _cells(np.sqrt(scores))))
            continue
        title = f"Score by {ranking.measure}, {column_units(ranking)}"
        if label == "ARD":
            title = "Inverse length-scale, per standard deviation of the column"
        ranks = ranking.ranks.tolist()
        places = [Cell(str(ranks[known[n]]), ranks[known[n]]) if n in known else Cell("–", None) for n in names]
        parts.append((Head(label, title), _cells(scores)))
        parts.append((Head(f"{label} rank", f"Place by {ranking.measure}"), places))
    return parts


def _extremes(ranking: Ranking) -> list[tuple[Head, list[Cell]]]:
    ratios = ranking.unevenness
    if ratios is None:
        return []
    cells = [Cell(f"{ratio:z.1f} ×", float(ratio)) if np.isfinite(ratio) else Cell("–", None) for ratio in ratios]
    return [(Head("max / mean", "Largest score at a row beside the mean over all rows"), cells)]
