"""From a table, or from the record of an analysis, to one HTML file."""

from __future__ import annotations

import os
from collections.abc import Hashable
from datetime import datetime
from pathlib import Path
from typing import Any

from gpsift._utils.parallel import Work
from gpsift._utils.words import meaning
from gpsift.app.analysis import Analysis, analyse
from gpsift.app.analysis.intervals import with_intervals
from gpsift.app.analysis.record import Shape
from gpsift.app.analysis.rows import rows_of
from gpsift.app.analysis.shape import with_shape
from gpsift.app.analysis.tested import with_test
from gpsift.app.findings import told
from gpsift.app.html import acting
from gpsift.app.html.advice import advice
from gpsift.app.html.answer import answer, tested
from gpsift.app.html.first import first_screen
from gpsift.app.html.render import rendered, written
from gpsift.app.html.rows import payload
from gpsift.app.html.sheet import data_lines, quality_lines
from gpsift.app.html.table import relevance_table


def report(
    data: Any,
    target: str | int,
    path: str | os.PathLike[str],
    *,
    intervals: bool | None = None,
    effects: bool | None = None,
    test: bool | None = None,
    **options: Any,
) -> Analysis:
    """Analyse a table and write the page.

    Parameters
    ----------
    data, target
        As in `analyse`: a data frame or a file, and the column to explain.
    path : path
        Where the page goes.
    intervals : bool, optional
        Whether scores have intervals, for the time of a fit or two; by default where that is less than about half a
        minute.
    effects : bool, optional
        Whether the page shows how columns act; by default where that takes less than about a quarter of a minute.
    test : bool, optional
        Whether every column is tested, with an error rate, as by `discover`; by default where that takes less than
        about a quarter of a minute.
    **options
        Of `analyse`.

    Returns
    -------
    Analysis
        What the page shows.
    """
    work = options.get("work", Work())
    analysis = with_intervals(analyse(data, target, **options), intervals, work)
    analysis = with_shape(with_test(analysis, test, work), effects, work)
    write_page(analysis, path)
    return analysis


def write_page(analysis: Analysis, path: str | os.PathLike[str]) -> Path:
    """Write the page of an analysis, one HTML file that needs nothing else, and say where it is.

    The file appears whole or not at all: it is written under another name in the same folder and then renamed. An
    existing file is replaced.
    """
    return written(page_text(analysis), path)


def page_text(analysis: Analysis, *, now: datetime | None = None) -> str:
    """The page as text, with the date `now`, by default this moment."""
    from gpsift.app.html import figures  # and with it Bokeh, which takes a while to load

    rows = rows_of(analysis)
    items = {}
    if rows is not None:
        items["strips"] = figures.pointwise_strips(rows, "figure-strips", meaning(analysis.leading.measure))
    shown = _acting(analysis)
    items |= shown.pop("items")
    if analysis.path is not None:
        items["curve"] = figures.elpd_curve(analysis.path, "figure-curve")
    if analysis.stability is not None:
        items["ranks"] = figures.rank_strips(analysis.stability, "figure-ranks")
    return rendered(
        "page.html",
        {"figures": items, "rows": None if rows is None else payload(analysis, rows)},
        now=now,
        answered=analysis,
        analysis=analysis,
        answer=answer(analysis),
        tested=tested(analysis),
        first=first_screen(analysis),
        todo=advice(analysis),
        still=False,
        data_lines=data_lines(analysis),
        quality_lines=quality_lines(analysis),
        table=relevance_table(analysis),
        **shown,
        rows=rows,
        strips=min(figures.MOST_STRIPS, 0 if rows is None else len(rows.names)),
        most_strips=figures.MOST_STRIPS,
        sizes=[] if analysis.path is None else analysis.path.to_frame().to_dict("records"),
        stability=_stability_lines(analysis),
        n_first=analysis.n_first,
        cautions=told(analysis.cautions),
        versions=analysis.leading.details.get("versions", {}),
    )


def _acting(analysis: Analysis) -> dict[str, Any]:
    """How columns act, for the templates; its items are pictures by their names."""
    from gpsift.app.html import effect_figures as figures

    shape = analysis.shape or Shape()
    effects, pairs, shares = shape.effects, shape.interactions, shape.variance_shares
    surface = None if pairs is None else pairs.strongest_surface
    panels = [] if effects is None else acting.panels(effects, figures.MOST_PANELS)
    items = {}
    if effects is not None:
        ids = [panel.id for panel in panels]
        items = dict(zip(ids, figures.curve_panels(effects, ids), strict=True))
    if pairs is not None and pairs.found:
        items["pairs"] = figures.pair_matrix(pairs, "figure-pairs")
    if surface is not None:
        items["surface"] = figures.pair_surface(surface, "figure-surface")
    return {
        "items": items,
        "effects": effects,
        "panels": panels,
        "beyond": [] if effects is None else acting.beyond(effects, len(panels)),
        "interactions": pairs,
        "pairs_told": "" if pairs is None else acting.pairs_told(pairs),
        "surface": surface,
        "shares": shares,
        "parts": [] if shares is None else acting.parts(shares),
        "function_of": acting.function_of(analysis.target, pairs or shares),
    }


def _stability_lines(analysis: Analysis) -> list[dict[Hashable, Any]]:
    """A line for each column, the best mean rank first."""
    found = analysis.stability
    if found is None:
        return []
    lines = found.to_frame().assign(in_first=found.in_first(analysis.n_first)[found.order])
    return lines[: found.n_shown].to_dict("records")
