"""What to do, in sentences that were computed: where nothing was found there is none."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from markupsafe import Markup

from gpsift.app.analysis import Analysis
from gpsift.app.analysis.cautions import LEAST_SLOPE
from gpsift.app.findings import FindingKind
from gpsift.app.html.words import count, listed, number, percent, tag
from gpsift.relevance.ranking import Ranking

# With which a column should be found.
CHANCE = 0.8
# Columns that these name should be known before the target.
GIVEN_AWAY = (FindingKind.MAY_LEAK, FindingKind.TARGET_FORMULA)
# Numbers of rows are said with this many digits.
DIGITS = 2


def advice(analysis: Analysis) -> list[Markup]:
    """What the answer suggests, the most pressing first."""
    return [*_suspects(analysis), *_kept(analysis), *_pair(analysis), *_twins(analysis), *_rows(analysis)]


def _suspects(analysis: Analysis) -> Iterator[Markup]:
    target = tag(analysis.target)
    for finding in analysis.cautions:
        if finding.kind not in GIVEN_AWAY:
            continue
        names = list(finding.data["columns"])
        known = Markup("{} is").format(tag(names[0])) if len(names) == 1 else Markup("{} are").format(listed(names))
        text = Markup("<b>Check</b> whether {} known before {}: {}.")
        is_alone = finding.kind is FindingKind.MAY_LEAK
        formula = Markup("{} = {}, up to rounding").format(target, finding.data.get("text", ""))
        yield text.format(known, target, "alone nearly enough to tell it" if is_alone else formula)
    if not analysis.model.quality.explains:
        yield Markup("<b>Do not act</b> on the order of the columns: look for other columns, or for more rows.")


def _kept(analysis: Analysis) -> Iterator[Markup]:
    names, path = analysis.selected, analysis.path
    if not analysis.model.quality.explains:
        return
    if path is None:
        shown = () if analysis.tested is None else analysis.tested.discoveries
        if shown:
            known = "It is" if len(shown) == 1 else "They are"
            yield Markup("<b>Keep</b> {}. {} shown to matter given all others.").format(listed(shown, 8), known)
        return
    if not names or not path.explains:
        return
    if len(names) == path.n_units:
        yield Markup("<b>Keep all</b> {}: without any of them predictions are worse.").format(path.n_units)
        return
    text = Markup("<b>{}</b> {}: a model of {} predicts about as well as one of all {}.")
    keep = "Only then keep" if _suspected(analysis).intersection(names) else "Keep"
    yield text.format(keep, listed(names, 8), "it" if len(names) == 1 else "these", path.n_units)


def _suspected(analysis: Analysis) -> set[str]:
    """The columns that may be known only with the target."""
    return {name for finding in analysis.cautions if finding.kind in GIVEN_AWAY for name in finding.data["columns"]}


def _pair(analysis: Analysis) -> Iterator[Markup]:
    pairs = None if analysis.column_effects is None else analysis.column_effects.interactions
    if pairs is not None and pairs.found:
        first, second = pairs.found[0]
        text = Markup('<b>Look at</b> {} with {}: what one does <a href="#together">depends on the other</a>.')
        yield text.format(tag(first), tag(second))


def _twins(analysis: Analysis) -> Iterator[Markup]:
    copies = () if analysis.tested is None else analysis.tested.copies
    for names in copies[:1]:
        yield Markup("<b>Keep one</b> of {}: they carry the same values.").format(listed(names, 8))
    if copies:
        return
    for finding in analysis.cautions:
        if finding.kind is FindingKind.COLUMNS_GO_TOGETHER:
            first, second, _ = finding.data["pairs"][0]
            text = Markup("<b>Do not choose</b> between {} and {} by their scores: each can stand in for the other.")
            yield text.format(tag(first), tag(second))


def _rows(analysis: Analysis) -> Iterator[Markup]:
    """How many more rows would show the strongest column that is not shown to matter, where its effect can be seen."""
    found = analysis.tested
    if found is None or found.found.all():
        return
    may_act = [_may_act(analysis.leading, name) for name in found.names]
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


def _may_act(ranking: Ranking, name: str) -> bool:
    """Whether the model uses a column, or came close to it."""
    j = ranking.names.index(name)
    return ranking.is_used(j) or (ranking.slopes is not None and float(ranking.slopes[j]) >= LEAST_SLOPE)
