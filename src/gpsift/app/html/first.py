"""The first screen: which columns matter and how sure that is, how they act, what to do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from gpsift.app.analysis import Analysis
from gpsift.app.findings import FindingKind
from gpsift.app.html.thumbnails import thumbnails
from gpsift.app.html.words import aligned, number, percent, signed
from gpsift.relevance.ranking import LEVEL, Ranking

# Columns on the first screen, at most.
MOST_COLUMNS = 6
# Of the largest score or limit; less than this part of it cannot be seen, and is shown as nothing.
LEAST_PART = 1e-3


@dataclass(frozen=True)
class Shown:
    """A column of the first screen; widths and places are parts of the largest, in per cent."""

    name: str
    score: str
    width: float
    span: tuple[float, float] | None  # where the interval begins, and how wide it is
    interval: str
    sure: str
    is_sure: bool


@dataclass(frozen=True)
class Acting:
    """How a column acts: a small picture and words."""

    name: str
    picture: Markup
    acts: str


@dataclass(frozen=True)
class FirstScreen:
    """The columns that matter most, how they act, and how many of those that are used are not there."""

    columns: tuple[Shown, ...]
    acting: tuple[Acting, ...]
    n_others: int
    intervals_unsure: bool = False
    level: str = percent(LEVEL)

    @property
    def says_how_sure(self) -> bool:
        """Whether a test, samples or intervals were there to ask."""
        return any(column.sure for column in self.columns)


def first_screen(analysis: Analysis) -> FirstScreen:
    """The first columns of the leading ranking that matter, and what is known of them; none of a model that fails."""
    if not analysis.model.quality.explains:
        return FirstScreen((), (), 0)
    ranking = analysis.leading_told
    every = [j for j in ranking.order.tolist() if ranking.scores[j] > 0 and ranking.is_used(j)]
    shown = every[:MOST_COLUMNS]
    columns = _columns(analysis, ranking, shown)
    acting = _acting(analysis, [ranking.names[j] for j in shown])
    unsure = any(finding.kind is FindingKind.INTERVALS_UNSURE for finding in analysis.cautions)
    return FirstScreen(columns, acting, len(every) - len(shown), unsure)


def _columns(analysis: Analysis, ranking: Ranking, shown: list[int]) -> tuple[Shown, ...]:
    if not shown:
        return ()
    limits = None if ranking.draws is None else ranking.interval()[shown]
    scores = ranking.scores[shown]
    largest = float(max(scores.max(), 0.0 if limits is None else limits.max()))
    sure = [sureness(analysis, ranking, j) for j in shown]
    return tuple(
        Shown(
            name=ranking.names[j],
            score=text,
            width=_part(scores[place], largest),
            span=None if limits is None else _span(limits[place], largest),
            interval="" if limits is None else " to ".join(_limit(limit, largest) for limit in limits[place]),
            sure=sure[place][0],
            is_sure=sure[place][1],
        )
        for place, (j, text) in enumerate(zip(shown, aligned(scores), strict=True))
    )


def sureness(analysis: Analysis, ranking: Ranking, j: int) -> tuple[str, bool]:
    """How sure it is that a column matters, in words, and whether that is a yes; by the best that is known of it."""
    name, k = ranking.names[j], analysis.n_first
    if analysis.tested is not None and name in analysis.tested.names:
        found = bool(analysis.tested.found[analysis.tested.names.index(name)])
        return ("shown to matter" if found else "not shown to matter", found)
    if analysis.stability is not None and name in analysis.stability.names:
        share = float(analysis.stability.in_first(k)[analysis.stability.names.index(name)])
        return f"among the first {k} in {percent(share)} of samples", share > LEVEL
    if ranking.draws is not None:
        share = float(ranking.in_first_probability(k)[j])
        return f"among the first {k} with {percent(share)}", share > LEVEL
    return "", False


def _acting(analysis: Analysis, names: list[str]) -> tuple[Acting, ...]:
    effects = None if analysis.shape is None else analysis.shape.effects
    if effects is None:
        return ()
    curves = [effects[name] for name in names if name in effects.names]
    pictures = thumbnails(curves)
    return tuple(
        Acting(curve.name, picture, signed(curve.course.told)) for curve, picture in zip(curves, pictures, strict=True)
    )


def _limit(value: float, largest: float) -> str:
    """A limit of an interval; what is nothing beside the largest is 0, without an exponent."""
    return "0" if value < LEAST_PART * largest else number(value, 2)


def _part(value: float, largest: float) -> float:
    return round(100.0 * float(value) / largest, 2)


def _span(limits: np.ndarray, largest: float) -> tuple[float, float]:
    low, high = (_part(limit, largest) for limit in limits)
    return low, round(high - low, 2)
