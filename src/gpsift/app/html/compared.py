"""The page of a comparison: what changed between two answers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from gpsift.app.analysis.compare import Comparison
from gpsift.app.html.render import rendered, written
from gpsift.app.html.words import limits, number, signed
from gpsift.relevance.rank import versions


@dataclass(frozen=True)
class Head:
    """What the frame of a page says: whence, and how to have the same again."""

    source: str
    target: str
    command: str | None
    seed: int
    seconds: float = 0.0


def write_compared(
    answer: Comparison, path: str | os.PathLike[str], *, command: str | None = None, seed: int = 0
) -> Path:
    """Write the page of a comparison, one HTML file that needs nothing else, and say where it is."""
    return written(compared_text(answer, command=command, seed=seed), path)


def compared_text(answer: Comparison, *, command: str | None = None, seed: int = 0, now: datetime | None = None) -> str:
    """The page as text, with the date `now`, by default this moment."""
    from gpsift.app.html import comparison_figure as figures  # and with it Bokeh, which takes a while to load

    both = " and ".join(answer.labels)
    return rendered(
        "compared.html",
        {"figures": {"pairs": figures.pairs_of_scores(answer, "figure-pairs")}, "rows": None},
        now=now,
        answered=Head(both, both, command, seed),
        answer=answer,
        sentences=[sentence.replace("feature", "column") for sentence in answer.sentences],
        lines=lines(answer),
        shown=min(figures.MOST_PAIRS, answer.n_features),
        versions=versions(),
    )


def lines(answer: Comparison) -> list[dict[str, object]]:
    """A line for each column that both have."""
    return [
        {
            "name": answer.names[j],
            "scores": [(answer.score_text(which, j), float(answer.scores[which, j])) for which in (0, 1)],
            "intervals": [_interval(answer, which, j) for which in (0, 1)],
            "limits": [limits(*answer.intervals[which, j]) for which in (0, 1)] if answer.has_intervals else [],
            "change": float(answer.change[j]),
            "change_text": signed(f"{answer.change[j]:+z.3g}"),
            "ranks": answer.ranks[:, j].tolist(),
            "places": int(answer.places[j]),
            "is_clear": bool(answer.is_clear[j]),
        }
        for j in answer.order.tolist()
    ]


def _interval(answer: Comparison, which: int, j: int) -> str:
    low, high = answer.intervals[which, j]
    return f"{number(low)} to {number(high)}" if answer.has_intervals else ""
