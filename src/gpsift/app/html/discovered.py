"""The page of a test: which columns matter, at what rate of false discoveries."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import numpy as np
from markupsafe import Markup

from gpsift._utils.words import percent_as_given
from gpsift.app.analysis.run import ColumnTest
from gpsift.app.findings import group_by_title
from gpsift.app.html.render import rendered, written
from gpsift.app.html.sheet import TASKS, Line
from gpsift.app.html.words import count, listed, signed, tag
from gpsift.selection.conditional_test.discoveries import Discoveries


def write_discovered(answer: ColumnTest, path: str | os.PathLike[str]) -> Path:
    """Write the page of a test, one HTML file that needs nothing else, and say where it is."""
    return written(discovered_text(answer), path)


def discovered_text(answer: ColumnTest, *, now: datetime | None = None) -> str:
    """The page as text, with the date `now`, by default this moment."""
    from gpsift.app.html import figures  # and with it Bokeh, which takes a while to load

    found = answer.found
    return rendered(
        "discovered.html",
        {"figures": {"tests": figures.p_values(found, "figure-tests")}, "rows": None},
        now=now,
        answered=answer,
        found=found,
        sentences=sentences(answer),
        lines=sheet_lines(answer),
        columns=table(found),
        shown=min(figures.MOST_STRIPS, found.n_features),
        cautions=group_by_title(answer.cautions),
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
