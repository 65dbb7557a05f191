"""The relevance table: a line for each column of the data, and what is odd about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpsift.page.words import aligned, number, ordinal, percent

if TYPE_CHECKING:
    from gpsift.analysis.record import Analysis
    from gpsift.results import Ranking

# ARD disagrees clearly: relative scores differ by this factor, places by this many and by this share of all places, for
# a column that matters to one of the rankings.
DISAGREE_FACTOR = 2.0
DISAGREE_PLACES = 2
DISAGREE_SHARE = 0.2
MATTERS = 0.1
# A column matters for few rows: its largest pointwise score is this multiple of its mean (of a thousand values of |z|,
# z normal, it is about 4), and at that row it matters at least so much as the leading column does on average.
UNEVEN = 5.0
UNEVEN_MATTERS = 1.0
LEVEL = 0.9
MOST_FIRST = 5
# So many reasons stand below the table; the others can be read by pointing at a flag.
MOST_REASONS = 10


@dataclass(frozen=True)
class Cell:
    """A number of the table: what is shown, and what it is sorted by (None: always last)."""

    text: str
    value: float | None


@dataclass(frozen=True)
class Head:
    """A heading: its words, and an explanation for whoever points at it."""

    text: str
    title: str


@dataclass(frozen=True)
class Flag:
    """Something odd about a column: in two words beside its name, and in a sentence below the table."""

    badge: str
    reason: str


@dataclass(frozen=True)
class Column:
    """A line of the table: a column of the data."""

    name: str
    rank: int
    score: Cell
    bars: tuple[tuple[str, float], ...]
    cells: tuple[Cell, ...]
    flags: tuple[Flag, ...]


@dataclass(frozen=True)
class RelevanceTable:
    """Headings after the first three (rank, column, score), and lines in the order of the leading ranking."""

    score: Head
    heads: tuple[Head, ...]
    units: str
    columns: tuple[Column, ...]
    uneven: tuple[str, ...]

    @property
    def flagged(self) -> list[Column]:
        """The first columns with something odd about them."""
        return [column for column in self.columns if column.flags][:MOST_REASONS]


def relevance_table(analysis: Analysis) -> RelevanceTable:
    """Everything that the rankings say of each column, side by side."""
    leading, label = analysis.leading, next(iter(analysis.rankings))
    parts = [*_shares(leading), *_draws(analysis), *_others(analysis), *_extremes(leading)]
    notes = disagreements(analysis)
    uneven = matter_for_few(leading)
    for name in uneven:
        j = leading.names.index(name)
        assert leading.pointwise is not None
        ratio = leading.pointwise[:, j].max() / leading.scores[j]
        flag = Flag("few rows", f"it matters for few rows: its largest value is {ratio:.0f} times its mean.")
        notes.setdefault(name, []).append(flag)
    largest = float(leading.scores.max()) or 1.0
    scores = _cells(leading.scores)
    columns = tuple(
        Column(
            name=leading.names[j],
            rank=place,
            score=scores[j],
            bars=tuple(
                (term, round(100 * float(leading.scores[j] / largest * share[j]), 2))
                for term, share in (leading.shares or {"mean": np.ones_like(leading.scores)}).items()
            ),
            cells=tuple(cells[j] for _, cells in parts),
            flags=tuple(notes.get(leading.names[j], ())),
        )
        for place, j in enumerate(leading.order, start=1)
    )
    return RelevanceTable(
        score=Head(label, f"Score by {leading.measure}, {column_units(leading)}"),
        heads=tuple(head for head, _ in parts),
        units=column_units(leading),
        columns=columns,
        uneven=tuple(uneven),
    )


def disagreements(analysis: Analysis) -> dict[str, list[Flag]]:
    """Columns that ARD places clearly apart from all other rankings, with one line why."""
    if "ARD" not in analysis.rankings or len(analysis.rankings) < 2:
        return {}
    ard = analysis.rankings["ARD"]
    others = {label: ranking for label, ranking in analysis.rankings.items() if label != "ARD"}
    apart = max(DISAGREE_PLACES, DISAGREE_SHARE * len(ard.names))
    notes: dict[str, list[Flag]] = {}
    for name in set(ard.names) & set(analysis.leading.names):
        by_ard, place = _relative(ard, name), _place(ard, name)
        found = [(_relative(each, name, root=label == "VAR"), _place(each, name)) for label, each in others.items()]
        places = " and ".join(f"{label} {ordinal(at)}" for label, (_, at) in zip(others, found, strict=True))
        above = all(by_ard > DISAGREE_FACTOR * r and place <= at - apart for r, at in found)
        below = all(r > DISAGREE_FACTOR * by_ard and place >= at + apart for r, at in found)
        if above and by_ard >= MATTERS:
            why = "a short length-scale with a small effect: the function bends along it, but does not move far."
        elif below and max(r for r, _ in found) >= MATTERS:
            why = "a long length-scale with a strong, nearly straight effect."
        else:
            continue
        notes[name] = [Flag("ARD disagrees", f"ARD places it {ordinal(place)}, {places}: {why}")]
    return notes


def matter_for_few(ranking: Ranking) -> list[str]:
    """Columns whose largest pointwise score is far above their mean, and not small beside the others."""
    if ranking.pointwise is None:
        return []
    largest, mean = ranking.pointwise.max(axis=0), ranking.pointwise.mean(axis=0)
    few = (largest > UNEVEN * mean) & (largest > UNEVEN_MATTERS * mean.max())
    return [ranking.names[j] for j in ranking.order if few[j]]


def first_size(analysis: Analysis) -> int:
    """The k of "among the first k": the suggested size where there is one, else at most five."""
    p = len(analysis.leading.names)
    selected = analysis.selected
    return min(p - 1, len(selected)) or 1 if selected else max(1, min(MOST_FIRST, p // 2))


def column_units(ranking: Ranking) -> str:
    """The units of the scores, in the words of the page: a feature is a column of the user's table."""
    return ranking.units.replace("feature", "column")


def _relative(ranking: Ranking, name: str, *, root: bool = False) -> float:
    score, largest = ranking.scores[ranking.names.index(name)], ranking.scores.max()
    relative = float(score / largest) if largest > 0 else 0.0
    return float(np.sqrt(relative)) if root else relative


def _place(ranking: Ranking, name: str) -> int:
    return int(ranking.ranks[ranking.names.index(name)])


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


def _draws(analysis: Analysis) -> list[tuple[Head, list[Cell]]]:
    """Interval and probability of a place among the first, over the draws of the hyperparameters."""
    leading = analysis.leading
    if leading.draws is None:
        return []
    k = first_size(analysis)
    chances = leading.rank_probability[:, :k].sum(axis=1)
    spans = [Cell(f"{number(low)} – {number(high)}", float(high - low)) for low, high in leading.interval(LEVEL)]
    return [
        (
            Head(f"{percent(LEVEL)} interval", "Of the score, over the draws of the hyperparameters; sorts by width"),
            spans,
        ),
        (
            Head(f"P(rank ≤ {k})", f"Share of the draws in which it is among the first {k}"),
            [_share(c) for c in chances],
        ),
    ]


def _others(analysis: Analysis) -> list[tuple[Head, list[Cell]]]:
    """The other rankings by name, the root of VAR so that it compares with the others, and the places of ARD."""
    names = analysis.leading.names
    parts = []
    for label, ranking in list(analysis.rankings.items())[1:]:
        known = {name: j for j, name in enumerate(ranking.names)}
        scores = np.array([ranking.scores[known[name]] if name in known else np.nan for name in names])
        if label == "VAR":
            units = column_units(ranking).replace("in squared units", "in units")
            parts.append((Head("√VAR", f"Root of {ranking.measure}, {units}"), _cells(np.sqrt(scores))))
            continue
        title = f"Score by {ranking.measure}, {column_units(ranking)}"
        if label == "ARD":
            title = "Inverse length-scale, per standard deviation of the column"
        places = [Cell(str(_place(ranking, n)), _place(ranking, n)) if n in known else Cell("–", None) for n in names]
        parts.append((Head(label, title), _cells(scores)))
        parts.append((Head(f"{label} rank", f"Place by {ranking.measure}"), places))
    return parts


def _extremes(ranking: Ranking) -> list[tuple[Head, list[Cell]]]:
    if ranking.pointwise is None:
        return []
    largest, mean = ranking.pointwise.max(axis=0), ranking.pointwise.mean(axis=0)
    ratios = np.divide(largest, mean, out=np.full_like(mean, np.nan), where=mean > 0)
    cells = [Cell(f"{ratio:.1f} ×", float(ratio)) if np.isfinite(ratio) else Cell("–", None) for ratio in ratios]
    return [(Head("max / mean", "Largest score at a row beside the mean over all rows"), cells)]
