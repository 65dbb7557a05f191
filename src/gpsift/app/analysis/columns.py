"""What is odd about single columns: where ARD disagrees with everybody else, and what matters for few rows only."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gpsift.app.findings import Finding, FindingKind
from gpsift.relevance.ranking import Ranking

# A column leads with the first if its score is at least this share of the first one's.
LEADS = 0.5
MOST_LEADERS = 4
# ARD disagrees clearly: relative scores differ by this factor, places by this many and by this share of all places, for
# a column that matters to one of the rankings.
DISAGREE_FACTOR = 2.0
DISAGREE_PLACES = 2
DISAGREE_SHARE = 0.2
MATTERS = 0.1
# A column matters for few rows: its largest pointwise score is this multiple of its mean (of a thousand values of |z|,
# z normal, it is about 4), and at that row it matters at least as much as the leading column does on average.
UNEVEN = 5.0
UNEVEN_MATTERS = 1.0
# A column that the model does not use came close if the slope of the log evidence as it enters is that many standard
# deviations under noise.
LEAST_SLOPE = 2.0


def leaders(ranking: Ranking) -> list[str]:
    """The columns at the top of a ranking, at most four; none where every score is 0."""
    top = ranking.scores.max()
    leading = [j for j in ranking.order if top > 0 and ranking.scores[j] >= LEADS * top]
    return [ranking.names[j] for j in leading[:MOST_LEADERS]]


def odd_columns(rankings: Mapping[str, Ranking]) -> tuple[Finding, ...]:
    """All findings about single columns, in the order of the leading ranking."""
    leading = next(iter(rankings.values()))
    found = [*disagreements(rankings), *matter_for_few(leading), *came_close(leading)]
    places = {name: place for place, name in enumerate(leading.names[j] for j in leading.order)}
    return tuple(sorted(found, key=lambda finding: places[finding.data["column"]]))


def disagreements(rankings: Mapping[str, Ranking]) -> list[Finding]:
    """Columns that ARD places clearly apart from all other rankings."""
    if "ARD" not in rankings or len(rankings) < 2:
        return []
    ard, leading = rankings["ARD"], next(iter(rankings.values()))
    others = {label: ranking for label, ranking in rankings.items() if label != "ARD"}
    apart = max(DISAGREE_PLACES, DISAGREE_SHARE * len(ard.names))
    relative = {label: _relative(each, root=label == "VAR") for label, each in rankings.items()}
    ranks = {label: dict(zip(each.names, each.ranks.tolist(), strict=True)) for label, each in rankings.items()}
    found = []
    for name in [name for name in leading.names if name in ranks["ARD"]]:
        by_ard, place = relative["ARD"][name], ranks["ARD"][name]
        places = {label: ranks[label][name] for label in others}
        shares = {label: relative[label][name] for label in others}
        above = all(by_ard > DISAGREE_FACTOR * shares[label] and place <= places[label] - apart for label in others)
        below = all(shares[label] > DISAGREE_FACTOR * by_ard and place >= places[label] + apart for label in others)
        if (above and by_ard >= MATTERS) or (below and max(shares.values()) >= MATTERS):
            data = {"column": name, "place": place, "others": places, "above": above}
            found.append(Finding(FindingKind.ARD_DISAGREES, data))
    return found


def matter_for_few(ranking: Ranking) -> list[Finding]:
    """Columns whose largest pointwise score is far above their mean, and not small beside the others."""
    if ranking.pointwise is None:
        return []
    largest, mean = ranking.pointwise.max(axis=0), ranking.pointwise.mean(axis=0)
    few = (largest > UNEVEN * mean) & (largest > UNEVEN_MATTERS * mean.max())
    return [
        Finding(
            FindingKind.MATTERS_FOR_FEW_ROWS,
            {"column": ranking.names[j], "ratio": float(largest[j] / ranking.scores[j])},
        )
        for j in ranking.order
        if few[j]
    ]


def came_close(ranking: Ranking) -> list[Finding]:
    """Columns that are not used, but would be switched on next, and of which noise alone would not say so."""
    return [
        Finding(FindingKind.CAME_CLOSE, {"column": name, "slope": slope})
        for name, slope in ranking.close.items()
        if slope >= LEAST_SLOPE
    ]


def _relative(ranking: Ranking, *, root: bool) -> dict[str, float]:
    """Scores beside the largest, by column; of a squared measure their roots."""
    largest = ranking.scores.max()
    relative = ranking.scores / largest if largest > 0 else np.zeros_like(ranking.scores)
    return dict(zip(ranking.names, (np.sqrt(relative) if root else relative).tolist(), strict=True))
