"""The page of a test: which columns matter, at what rate of false discoveries."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
from markupsafe import Markup

from gpsift._utils.text import percent_as_given
from gpsift.app.analysis.discovered import Discovered
from gpsift.app.analysis.ranked_again import RankedAgain
from gpsift.app.analysis.record_comparison import Comparison
from gpsift.app.findings import told
from gpsift.app.html.model_summary import TASKS, Line
from gpsift.app.html.render import rendered, written
from gpsift.app.html.table import relevance_table
from gpsift.app.html.text import count, limits, listed, number, signed, tag
from gpsift.relevance.rank import versions
from gpsift.selection.conditional_test.discoveries import Discoveries


def write_discovered(answer: ColumnTest, path: str | os.PathLike[str]) -> Path:
    """Write the page of a test, one HTML file that needs nothing else, and say where it is."""
    return written(discovered_text(answer), path)


def discovered_text(answer: ColumnTest, *, now: datetime | None = None) -> str:
    """The page as text, with the date `now`, by default this moment."""
    from gpsift.app.html import charts  # and with it Bokeh, which takes a while to load

    found = answer.found
    return rendered(
        "discovered.html",
        {"figures": {"tests": charts.p_values(found, "figure-tests")}, "rows": None},
        now=now,
        answered=answer,
        found=found,
        sentences=sentences(answer),
        lines=sheet_lines(answer),
        columns=table(found),
        shown=min(charts.MOST_STRIPS, found.n_features),
        cautions=told(answer.cautions),
        versions=found.details.get("versions", {}),
    )


def sentences(answer: ColumnTest) -> list[Markup]:
    """What was found: how many columns matter and at what rate, that the others may matter, and what is one thing."""
    found, target = answer.found, tag(answer.target)
    n, rate = int(found.found.sum()), percent_as_given(found.rate)
    of = f"{n} of {count(found.n_features, 'column')}"
    if n == 0:
        first = Markup("None of {} is shown to matter for {}, at a rate of {}.")
        lines = [first.format(count(found.n_features, "column"), target, rate)]
    else:
        verb = "matters" if n == 1 else "matter"
        first = Markup("{} {} for {}, with at most {} of them expected to be false: {}.")
        lines = [first.format(of, verb, target, rate, listed(found.discoveries))]
    if n < found.n_features:
        small = "an effect that is too small for {} may be there."
        others = Markup(f"The others are not shown to matter: {small}" if n else small[:1].upper() + small[1:])
        lines.append(others.format(count(answer.n_rows, "row")))
    copied = Markup("{} carry the same values and cannot be told apart.")
    return [*lines, *(copied.format(listed(names)) for names in found.copies)]


def sheet_lines(answer: ColumnTest) -> list[Line]:
    """What was tested, and how."""
    found, details = answer.found, answer.found.details
    seen = "the rows before it" if details.get("in_order") else "the others"
    dependence = "however p-values depend on each other (Benjamini and Yekutieli)"
    usual = "expected share of false ones among the columns named (Benjamini and Hochberg)"
    return [
        Line("Source", answer.source),
        Line("Rows", f"{answer.n_rows:,}"),
        Line("Columns", f"{found.n_features:,}"),
        Line("Target", tag(answer.target), TASKS[answer.task]),
        Line("Rate", percent_as_given(found.rate), usual if found.price == 1.0 else dependence),
        Line("Parts of the rows", f"{details['folds']}", f"each was predicted by a model of {seen}"),
        Line("Divided", "once" if details["repeats"] == 1 else f"{details['repeats']} times"),
    ]


def table(found: Discoveries) -> list[dict[str, object]]:
    """A line for each column, the surest first."""
    lines = []
    for place, j in enumerate(found.order, start=1):
        z = None if found.z[j] == -np.inf else float(found.z[j])
        lines.append(
            {
                "place": place,
                "name": found.names[j],
                "found": bool(found.found[j]),
                "z": z,
                "z_text": "–" if z is None else signed(f"{z:z.2f}"),
                "p": float(found.p[j]),
                "q": float(found.q[j]),
                "conditional": found.conditionals[j],
                "explained": None if found.explained is None else float(found.explained[j]),
                "calibration": None if found.calibration is None else float(found.calibration[j]),
            }
        )
    return lines


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
    from gpsift.app.html import charts  # and with it Bokeh, which takes a while to load

    both = " and ".join(answer.labels)
    return rendered(
        "compared.html",
        {"figures": {"pairs": charts.pairs_of_scores(answer, "figure-pairs")}, "rows": None},
        now=now,
        answered=Head(both, both, command, seed),
        answer=answer,
        sentences=[sentence.replace("feature", "column") for sentence in answer.sentences],
        lines=lines(answer),
        shown=min(charts.MOST_PAIRS, answer.n_features),
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


def write_ranked_again(answer: RankedAgain, path: str | os.PathLike[str]) -> Path:
    """Write the page, one HTML file that needs nothing else, and say where it is."""
    return written(ranked_again_text(answer), path)


def ranked_again_text(answer: RankedAgain, *, now: datetime | None = None) -> str:
    """The page as text, with the date `now`, by default this moment."""
    return rendered(
        "ranked_again.html",
        {"figures": {}, "rows": None},
        now=now,
        answered=answer,
        analysis=answer,
        table=relevance_table(answer),
        still=False,
        cautions=told(answer.cautions),
        versions=answer.leading.details.get("versions", {}),
    )
