"""Make the first screen of a page: which columns matter and how sure that is, how they act, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from gpsift._utils.text import percent_as_given
from gpsift.app.analysis import Analysis
from gpsift.app.analysis.cautions import LEAST_SLOPE, leaders
from gpsift.app.findings import Finding, FindingKind
from gpsift.app.html.model_summary import quality_sentence
from gpsift.app.html.text import align, count, join_tags, number, percent, tag, use_minus
from gpsift.decomposition.effects import Curve
from gpsift.relevance.ranking import LEVEL, Ranking

# The largest number of columns on the first screen.
MOST_COLUMNS = 6
# A smaller part of the largest score or limit cannot be seen, and is shown as 0.
LEAST_PART = 1e-3


@dataclass(frozen=True)
class ShownColumn:
    """A column of the first screen; `width` and `span` are in per cent of the largest score or limit."""

    name: str
    score: str
    width: float
    span: tuple[float, float] | None  # the lower limit of the interval, and its width
    interval: str
    sure: str
    is_sure: bool


@dataclass(frozen=True)
class EffectThumbnail:
    """The effect of a column as a small picture and a phrase."""

    name: str
    picture: Markup
    acts: str


@dataclass(frozen=True)
class FirstScreen:
    """The columns that matter most, how they act, and the number of used columns that are not shown."""

    columns: tuple[ShownColumn, ...]
    acting: tuple[EffectThumbnail, ...]
    n_others: int
    intervals_unsure: bool = False
    level: str = percent(LEVEL)

    @property
    def says_how_sure(self) -> bool:
        """True if a test, samples or intervals say how sure the order is."""
        return any(column.sure for column in self.columns)


def first_screen(analysis: Analysis) -> FirstScreen:
    """Return the first columns of the leading ranking with their effects; none if the model explains nothing."""
    if not analysis.model.quality.explains:
        return FirstScreen((), (), 0)
    ranking = analysis.shown
    every = [j for j in ranking.order.tolist() if ranking.scores[j] > 0 and ranking.is_used(j)]
    shown = every[:MOST_COLUMNS]
    columns = _columns(analysis, ranking, shown) if shown else ()
    effects = None if analysis.column_effects is None else analysis.column_effects.effects
    names = () if effects is None else [ranking.names[j] for j in shown if ranking.names[j] in effects.names]
    curves = [effects[name] for name in names]  # type: ignore[index]  # there are effects if there are names
    acting = tuple(
        EffectThumbnail(curve.name, picture, use_minus(curve.course.told))
        for curve, picture in zip(curves, thumbnails(curves), strict=True)
    )
    unsure = any(finding.kind is FindingKind.INTERVALS_UNSURE for finding in analysis.cautions)
    return FirstScreen(columns, acting, len(every) - len(shown), unsure)


def _columns(analysis: Analysis, ranking: Ranking, shown: list[int]) -> tuple[ShownColumn, ...]:
    scores = ranking.shown[shown]
    limits = np.empty((0, 2)) if ranking.draws is None else ranking.interval()[shown]
    largest = float(max(scores.max(), limits.max(initial=0.0)))
    columns = []
    for place, (j, text) in enumerate(zip(shown, align(scores), strict=True)):
        span, interval = None, ""
        if len(limits):
            low, high = (round(100.0 * float(limit) / largest, 2) for limit in limits[place])
            span = (low, round(high - low, 2))
            interval = " to ".join("0" if x < LEAST_PART * largest else number(x, 2) for x in limits[place])
        width = round(100.0 * float(scores[place]) / largest, 2)
        columns.append(ShownColumn(ranking.names[j], text, width, span, interval, *certainty(analysis, ranking, j)))
    return tuple(columns)


def certainty(analysis: Analysis, ranking: Ranking, j: int) -> tuple[str, bool]:
    """Return in words how sure it is that a column matters, by test, samples or intervals, and if that is enough."""
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


def answer_sentences(analysis: Analysis) -> list[Markup]:
    """Say in two sentences which columns matter most and how many are enough, or that the model explains nothing."""
    target = tag(analysis.target)
    if not analysis.model.quality.explains:
        return [
            Markup(
                "The model explains nothing of {}: rows that it has not seen are predicted no better than without any "
                "inputs, or not by more than fitting noise would give."
            ).format(target),
            Markup("The order of the columns below therefore says how this model reacts, and little about the data."),
        ]
    names, n_columns = leaders(analysis.leading), count(analysis.n_columns, "column")
    if not names:
        first = Markup("The prediction of {} reacts to none of the {}.").format(target, n_columns)
    else:
        verb = "matters" if len(names) == 1 else "matter"
        first = Markup("For {}, {} {} most among {}.").format(target, join_tags(names), verb, n_columns)
    return [first, Markup("{}, {}.").format(_selection_clause(analysis), quality_sentence(analysis))]


def sentence_on_test(analysis: Analysis) -> Markup:
    """Say what a test has shown, with its rate; empty without a test."""
    found = analysis.tested
    if found is None:
        return Markup("")
    n, rate = int(found.found.sum()), percent_as_given(found.rate)
    if n == 0:
        text = Markup("Tested column by column, none of {} is shown to matter given all others, at a rate of {}.")
        return text.format(count(found.n_features, "column"), rate)
    verb = "is" if n == 1 else "are"
    text = Markup(
        "Tested column by column, {} {} shown to matter given all others; of such columns at most {} are "
        "expected to be false."
    )
    return text.format(join_tags(found.discoveries, 8), verb, rate)


def _selection_clause(analysis: Analysis) -> Markup:
    path, names = analysis.path, analysis.selected
    if path is None:
        return Markup("How many are enough was not searched")
    if names is None:
        return Markup("No smaller model on the path predicts as well as the one with all {}").format(path.n_units)
    if not path.explains:
        return Markup("None of the {} is shown to help").format(path.n_units)
    if not names:
        return Markup("None of the {} is needed to predict as well as all of them do").format(path.n_units)
    if len(names) == path.n_units:
        return Markup("All {} are needed").format(path.n_units)
    verb = "is" if len(names) == 1 else "are"
    return Markup("{} of the {} {} enough ({})").format(len(names), path.n_units, verb, join_tags(names, 8))


# The power of the test for which advice about more rows is given.
CHANCE = 0.8
# Kinds of findings about columns that may not be known before the target.
LEAK_KINDS = (FindingKind.MAY_LEAK, FindingKind.TARGET_FORMULA)
# Numbers of rows are rounded to this many digits.
DIGITS = 2


def advice(analysis: Analysis) -> list[Markup]:
    """Return advice for what was found, the most urgent first."""
    leaks = [finding for finding in analysis.cautions if finding.kind in LEAK_KINDS]
    suspect = {name for finding in leaks for name in finding.data["columns"]}
    advised = [_leak_advice(analysis, finding) for finding in leaks]
    if not analysis.model.quality.explains:
        text = "<b>Do not act</b> on the order of the columns: look for other columns, or for more rows."
        advised.append(Markup(text))
    else:
        advised += _keep_advice(analysis, suspect)
    pairs = None if analysis.column_effects is None else analysis.column_effects.interactions
    if pairs is not None and pairs.found:
        text = '<b>Look at</b> {} with {}: what one does <a href="#together">depends on the other</a>.'
        advised.append(Markup(text).format(*map(tag, pairs.found[0])))
    copies = () if analysis.tested is None else analysis.tested.copies
    if copies:
        text = "<b>Keep one</b> of {}: they carry the same values."
        advised.append(Markup(text).format(join_tags(copies[0], 8)))
    else:
        together = [each for each in analysis.cautions if each.kind is FindingKind.COLUMNS_GO_TOGETHER]
        text = "<b>Do not choose</b> between {} and {} by their scores: each can stand in for the other."
        advised += [Markup(text).format(*map(tag, each.data["pairs"][0][:2])) for each in together]
    return [*advised, *_row_advice(analysis)]


def _leak_advice(analysis: Analysis, finding: Finding) -> Markup:
    names, target = list(finding.data["columns"]), tag(analysis.target)
    known = Markup("{} are" if len(names) > 1 else "{} is").format(join_tags(names))
    why: str | Markup = "alone nearly enough to tell it"
    if finding.kind is FindingKind.TARGET_FORMULA:
        why = Markup("{} = {}, up to rounding").format(target, finding.data["text"])
    return Markup("<b>Check</b> whether {} known before {}: {}.").format(known, target, why)


def _keep_advice(analysis: Analysis, suspect: set[str]) -> Iterator[Markup]:
    """Say which columns to keep; `suspect` may be known only with the target."""
    names, path = analysis.selected, analysis.path
    if path is None:
        shown = () if analysis.tested is None else analysis.tested.discoveries
        if shown:
            known = "It is" if len(shown) == 1 else "They are"
            yield Markup("<b>Keep</b> {}. {} shown to matter given all others.").format(join_tags(shown, 8), known)
        return
    if not names or not path.explains:
        return
    if len(names) == path.n_units:
        yield Markup("<b>Keep all</b> {}: without any of them predictions are worse.").format(path.n_units)
        return
    text = Markup("<b>{}</b> {}: a model of {} predicts about as well as one of all {}.")
    keep = "Only then keep" if suspect.intersection(names) else "Keep"
    yield text.format(keep, join_tags(names, 8), "it" if len(names) == 1 else "these", path.n_units)


def _row_advice(analysis: Analysis) -> Iterator[Markup]:
    """Advise how many more rows the test needs until the next column is shown to matter.

    Only columns that the model uses or nearly added are considered, because others may have no effect.
    """
    found, ranking = analysis.tested, analysis.leading
    if found is None or found.found.all():
        return
    columns = [ranking.names.index(name) for name in found.names]
    came_close = [ranking.slopes is not None and float(ranking.slopes[j]) >= LEAST_SLOPE for j in columns]
    may_act = [ranking.is_used(j) or close for j, close in zip(columns, came_close, strict=True)]
    needed = np.where(~found.found & may_act, found.rows_needed(analysis.n_rows, CHANCE), np.inf)
    j = int(np.argmin(needed))
    more = needed[j] - analysis.n_rows
    if not np.isfinite(more) or more < 1:
        return
    text = Markup(
        "<b>Collect</b> about {} like these: {} would then be shown to matter with a chance of {}, if its effect is as "
        "strong as it seems here. <small>Its statistic in the test, {}, grows with the root of the rows.</small>"
    )
    rows = round(more, DIGITS - 1 - int(np.floor(np.log10(more))))
    yield text.format(count(int(rows), "more row"), tag(found.names[j]), percent(CHANCE), number(found.z[j]))


WIDTH, HEIGHT = 120, 44
# The margin of a small picture, for the width of lines.
EDGE = 4


def thumbnails(curves: Sequence[Curve]) -> list[Markup]:
    """Draw a small picture of each curve, all with one vertical axis, as SVG without a script."""
    points = [np.append(curve.mean, curve.band[np.isfinite(curve.band)]) for curve in curves]
    low, high = (float(which(np.concatenate(points))) for which in (np.min, np.max)) if points else (0.0, 1.0)
    return [_picture(curve, low, (high - low) or 1.0) for curve in curves]


def _picture(curve: Curve, low: float, span: float) -> Markup:
    x = EDGE + (WIDTH - 2 * EDGE) * (curve.x - curve.x[0]) / (float(np.ptp(curve.x)) or 1.0)

    def to_pixels(values: np.ndarray) -> np.ndarray:
        return HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * (values - low) / span

    mean = to_pixels(curve.mean)
    lower, upper = to_pixels(curve.band.T)
    has_band = bool(np.isfinite(curve.band).all())
    parts = [Markup('<path class="zero" d="M0 {:z.1f}H{}"/>').format(float(to_pixels(np.zeros(1))[0]), WIDTH)]
    if curve.labels:
        if has_band:
            bars = "".join(f"M{at:z.1f} {a:z.1f}V{b:z.1f}" for at, a, b in zip(x, lower, upper, strict=True))
            parts.append(Markup('<path class="curve" d="{}"/>').format(bars))
        dot = Markup('<circle class="dot" cx="{:z.1f}" cy="{:z.1f}" r="3"/>')
        parts += [dot.format(*at) for at in zip(x, mean, strict=True)]
    else:
        if has_band:
            around = _svg_path(np.append(x, x[::-1]), np.append(lower, upper[::-1]))
            parts.append(Markup('<path class="band" d="{}Z"/>').format(around))
        parts.append(Markup('<path class="curve" d="{}"/>').format(_svg_path(x, mean)))
    size = Markup('viewBox="0 0 {} {}"').format(WIDTH, HEIGHT)
    return Markup('<svg class="thumb" {} aria-hidden="true" focusable="false">{}</svg>').format(
        size, Markup("").join(parts)
    )


def _svg_path(x: np.ndarray, y: np.ndarray) -> str:
    return "M" + "L".join(f"{at:z.1f} {height:z.1f}" for at, height in zip(x, y, strict=True))
