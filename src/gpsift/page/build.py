"""From a table, or from the record of an analysis, to one HTML file."""

from __future__ import annotations

import os
from collections.abc import Hashable
from datetime import datetime
from pathlib import Path
from typing import Any

from gpsift.analysis import Analysis, analyse
from gpsift.analysis.rows import rows_of
from gpsift.atomic import written_whole
from gpsift.findings import told
from gpsift.page.answer import answer
from gpsift.page.embed import bokeh_script, own, policy, script_data
from gpsift.page.rows import payload
from gpsift.page.sheet import data_lines, quality_lines
from gpsift.page.table import relevance_table
from gpsift.page.words import count, listed, number, percent, sentence, shortened, signed, tag
from gpsift.words import meaning

# A table with more columns than this opens with the first of them only.
SHORT_TABLE = 25


def report(data: Any, target: str | int, path: str | os.PathLike[str], **options: Any) -> Analysis:
    """Analyse a table and write the page.

    Parameters
    ----------
    data, target
        As in `analyse`: a data frame or a file, and the column to explain.
    path : path
        Where the page goes.
    **options
        Of `analyse`.

    Returns
    -------
    Analysis
        What the page shows.
    """
    analysis = analyse(data, target, **options)
    write_page(analysis, path)
    return analysis


def write_page(analysis: Analysis, path: str | os.PathLike[str]) -> Path:
    """Write the page of an analysis, one HTML file that needs nothing else, and say where it is.

    The file appears whole or not at all: it is written under another name in the same folder and then renamed. An
    existing file is replaced.
    """
    text = page_text(analysis)
    with written_whole(path) as part:
        part.write_text(text, encoding="utf-8", newline="\n")
    return Path(path)


def page_text(analysis: Analysis, *, now: datetime | None = None) -> str:
    """The page as text, with the date `now`, by default this moment."""
    # Both are needed by pages only, and Bokeh takes a while to load.
    import jinja2

    from gpsift.page import figures

    rows = rows_of(analysis)
    items = {}
    if rows is not None:
        items["strips"] = figures.pointwise_strips(rows, "figure-strips", meaning(analysis.leading.measure))
    if analysis.path is not None:
        items["curve"] = figures.elpd_curve(analysis.path, "figure-curve")
    if analysis.stability is not None:
        items["ranks"] = figures.rank_strips(analysis.stability, "figure-ranks")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("gpsift.page"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(
        number=number, percent=percent, tag=tag, listed=listed, sentence=sentence, signed=signed, shortened=shortened
    )
    scripts = [bokeh_script(), own("page.js")]
    return environment.get_template("page.html").render(
        analysis=analysis,
        answer=answer(analysis),
        data_lines=data_lines(analysis),
        quality_lines=quality_lines(analysis),
        table=relevance_table(analysis),
        short_table=SHORT_TABLE,
        rows=rows,
        strips=min(figures.MOST_STRIPS, 0 if rows is None else len(rows.names)),
        most_strips=figures.MOST_STRIPS,
        ramp=figures.RAMP,
        sizes=[] if analysis.path is None else analysis.path.to_frame().to_dict("records"),
        stability=_stability_lines(analysis),
        first=analysis.n_first,
        cautions=told(analysis.cautions),
        count=count,
        now=(now or datetime.now().astimezone()).strftime("%d %B %Y, %H:%M"),
        versions=analysis.leading.details.get("versions", {}),
        data=script_data({"figures": items, "rows": None if rows is None else payload(analysis, rows)}),
        style=own("page.css"),
        scripts=scripts,
        policy=policy(scripts),
    )


def _stability_lines(analysis: Analysis) -> list[dict[Hashable, Any]]:
    """A line for each column, the best mean rank first."""
    found = analysis.stability
    if found is None:
        return []
    lines = found.to_frame().assign(in_first=found.in_first(analysis.n_first)[found.order])
    return lines[: found.n_told].to_dict("records")
