"""Write the pages of a test with an error rate, of a comparison of two answers, and of a saved model's ranking."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
from markupsafe import Markup

from gpsift._utils.text import percent_as_given
from gpsift.app.analysis.compare import Comparison
from gpsift.app.analysis.run import ColumnTest
from gpsift.app.analysis.saved_model import SavedModelRanking
from gpsift.app.findings import group_by_title
from gpsift.app.html.model_summary import TASKS, Line
from gpsift.app.html.render import render, write_html
from gpsift.app.html.table import relevance_table
from gpsift.app.html.text import count, join_tags, limits, number, tag, use_minus
from gpsift.relevance.rank import versions
from gpsift.selection.conditional_test.discover import Discoveries


def write_discoveries(answer: ColumnTest, path: str | os.PathLike[str]) -> Path:
    """Write the page of a test, one HTML file that needs nothing else, and return its path."""
    return write_html(discoveries_text(answer), path)


def discoveries_text(answer: ColumnTest, *, now: datetime | None = None) -> str:
    """Return the page as text, with the date `now`, by default this moment."""
    from gpsift.app.html import charts  # imports Bokeh, which takes a while to load

    found = answer.found
    return render(
        "discovered.html",
        {"figures": {"tests": charts.p_values(found, "figure-tests")}, "rows": None},
        now=now,
        answered=answer,
        found=found,
        sentences=discovery_sentences(answer),
        lines=test_summary_lines(answer),
        columns=p_value_lines(found),
        shown=min(charts.MOST_STRIPS, found.n_features),
        cautions=group_by_title(answer.cautions),
        versions=found.details.get("versions", {}),
    )


def discovery_sentences(answer: ColumnTest) -> list[Markup]:
    """Say how many columns matter at which rate, that the others may matter too, and which columns are copies."""
    found, target = answer.found, tag(answer.target)
    n, rate = int(found.found.sum()), percent_as_given(found.rate)
    share = f"{n} of {count(found.n_features, 'column')}"
    if n == 0:
        first = Markup("None of {} is shown to matter for {}, at a rate of {}.")
        lines = [first.format(count(found.n_features, "column"), target, rate)]
    else:
        verb = "matters" if n == 1 else "matter"
        first = Markup("{} {} for {}, with at most {} of them expected to be false: {}.")
        lines = [first.format(share, verb, target, rate, join_tags(found.discoveries))]
    if n < found.n_features:
        small = "an effect that is too small for {} may be there."
        others = Markup(f"The others are not shown to matter: {small}" if n else small[:1].upper() + small[1:])
        lines.append(others.format(count(answer.n_rows, "row")))
    copied = Markup("{} carry the same values and cannot be told apart.")
    return [*lines, *(copied.format(join_tags(names)) for names in found.copies)]


def test_summary_lines(answer: ColumnTest) -> list[Line]:
    """Return the lines of the summary of data and test."""
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


def p_value_lines(found: Discoveries) -> list[dict[str, object]]:
    """Return a line of the table for each tested column, in the order of their evidence."""
    lines = []
    for place, j in enumerate(found.order, start=1):
        z = None if found.z[j] == -np.inf else float(found.z[j])
        lines.append(
            {
                "place": place,
                "name": found.names[j],
                "found": bool(found.found[j]),
                "z": z,
                "z_text": "–" if z is None else use_minus(f"{z:z.2f}"),
                "p": float(found.p[j]),
                "q": float(found.q[j]),
                "conditional": found.conditionals[j],
                "explained": None if found.explained is None else float(found.explained[j]),
                "calibration": None if found.calibration is None else float(found.calibration[j]),
            }
        )
    return lines


@dataclass(frozen=True)
class PageHead:
    """Source, target and command of an answer, for the head and foot of its page."""

    source: str
    target: str
    command: str | None
    seed: int
    seconds: float = 0.0


def write_comparison(
    answer: Comparison, path: str | os.PathLike[str], *, command: str | None = None, seed: int = 0
) -> Path:
    """Write the page of a comparison, one HTML file that needs nothing else, and return its path."""
    return write_html(comparison_text(answer, command=command, seed=seed), path)


def comparison_text(
    answer: Comparison, *, command: str | None = None, seed: int = 0, now: datetime | None = None
) -> str:
    """Return the page as text, with the date `now`, by default this moment."""
    from gpsift.app.html import charts  # imports Bokeh, which takes a while to load

    both = " and ".join(answer.labels)
    return render(
        "compared.html",
        {"figures": {"pairs": charts.pairs_of_scores(answer, "figure-pairs")}, "rows": None},
        now=now,
        answered=PageHead(both, both, command, seed),
        answer=answer,
        sentences=[sentence.replace("feature", "column") for sentence in answer.sentences],
        lines=score_lines(answer),
        shown=min(charts.MOST_PAIRS, answer.n_features),
        versions=versions(),
    )


def score_lines(answer: Comparison) -> list[dict[str, object]]:
    """Return a line of the table for each column that both answers have."""
    found = []
    for j in answer.order.tolist():
        intervals = list(answer.intervals[:, j]) if answer.has_intervals else []
        found.append(
            {
                "name": answer.names[j],
                "scores": [(answer.score_text(which, j), float(answer.scores[which, j])) for which in (0, 1)],
                "intervals": [f"{number(low)} to {number(high)}" for low, high in intervals],
                "limits": [limits(low, high) for low, high in intervals],
                "change": float(answer.change[j]),
                "change_text": use_minus(f"{answer.change[j]:+z.3g}"),
                "ranks": answer.ranks[:, j].tolist(),
                "places": int(answer.places[j]),
                "is_clear": bool(answer.is_clear[j]),
            }
        )
    return found


def write_saved_ranking(answer: SavedModelRanking, path: str | os.PathLike[str]) -> Path:
    """Write the page of a saved model's ranking, one HTML file that needs nothing else, and return its path."""
    return write_html(saved_ranking_text(answer), path)


def saved_ranking_text(answer: SavedModelRanking, *, now: datetime | None = None) -> str:
    """Return the page as text, with the date `now`, by default this moment."""
    return render(
        "saved_ranking.html",
        {"figures": {}, "rows": None},
        now=now,
        answered=answer,
        analysis=answer,
        table=relevance_table(answer),
        still=False,
        cautions=group_by_title(answer.cautions),
        versions=answer.leading.details.get("versions", {}),
    )
