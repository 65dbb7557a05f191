"""Write the page of an analysis to one HTML file, or make the frame that a notebook shows."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from gpsift._utils.parallel import Work
from gpsift._utils.text import meaning
from gpsift.app.analysis import Analysis, analyse
from gpsift.app.analysis.parts import add_effects, add_intervals, add_test
from gpsift.app.analysis.rows import RowDetails, row_details
from gpsift.app.findings import group_by_title
from gpsift.app.html.effects import effects_parts, function_of
from gpsift.app.html.model_summary import data_lines, quality_lines
from gpsift.app.html.render import fill_template, render, write_html
from gpsift.app.html.summary import advice, answer_sentences, first_screen, sentence_on_test
from gpsift.app.html.table import relevance_table
from gpsift.app.html.text import number, percent, shorten, use_minus, value_text


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
        A data frame or a file, and the column to explain, as in `analyse`.
    path : path
        The file of the page.
    intervals : bool, optional
        Whether scores have intervals, which takes as long as a fit or two; by default if that is less than about half
        a minute.
    effects : bool, optional
        Whether the page shows how columns act; by default if that takes less than about a quarter of a minute.
    test : bool, optional
        Whether every column is tested, with an error rate, as by `discover`; by default if that takes less than
        about a quarter of a minute.
    **options
        Options of `analyse`.

    Returns
    -------
    Analysis
        The analysis that the page shows.
    """
    work = options.get("work", Work())
    analysis = add_intervals(analyse(data, target, **options), intervals, work)
    analysis = add_effects(add_test(analysis, test, work), effects, work)
    write_page(analysis, path)
    return analysis


def write_page(analysis: Analysis, path: str | os.PathLike[str]) -> Path:
    """Write the page of an analysis, one HTML file that needs nothing else, and return its path.

    The file appears whole or not at all: it is written under another name in the same folder and then renamed. An
    existing file is replaced.
    """
    return write_html(page_text(analysis), path)


def page_text(analysis: Analysis, *, now: datetime | None = None) -> str:
    """Return the page as text, with the date `now`, by default this moment."""
    from gpsift.app.html import charts  # imports Bokeh, which takes a while to load

    rows = row_details(analysis)
    items = {}
    if rows is not None:
        items["strips"] = charts.pointwise_strips(rows, "figure-strips", meaning(analysis.leading.measure))
    effects = effects_parts(analysis)
    items |= effects.pop("items")
    if analysis.path is not None:
        items["curve"] = charts.elpd_curve(analysis.path, "figure-curve")
    samples = []
    if analysis.stability is not None:
        items["ranks"] = charts.rank_strips(analysis.stability, "figure-ranks")
        in_first = analysis.stability.in_first(analysis.n_first)[analysis.stability.order]
        lines = analysis.stability.to_frame().assign(in_first=in_first)
        samples = lines[: analysis.stability.n_shown].to_dict("records")
    return render(
        "page.html",
        {"figures": items, "rows": None if rows is None else payload(analysis, rows)},
        now=now,
        answered=analysis,
        **_first_screen(analysis),
        still=False,
        data_lines=data_lines(analysis),
        quality_lines=quality_lines(analysis),
        **effects,
        rows=rows,
        strips=min(charts.MOST_STRIPS, 0 if rows is None else len(rows.names)),
        most_strips=charts.MOST_STRIPS,
        sizes=[] if analysis.path is None else analysis.path.to_frame().to_dict("records"),
        stability=samples,
        n_first=analysis.n_first,
        versions=analysis.leading.details.get("versions", {}),
    )


def _first_screen(analysis: Analysis) -> dict[str, Any]:
    """Return the variables that the templates of the page and of the notebook share."""
    return {
        "analysis": analysis,
        "answer": answer_sentences(analysis),
        "tested": sentence_on_test(analysis),
        "first": first_screen(analysis),
        "todo": advice(analysis),
        "table": relevance_table(analysis),
        "cautions": group_by_title(analysis.cautions),
    }


DIGITS = 3
LEVEL = 0.9


def payload(analysis: Analysis, rows: RowDetails) -> dict[str, Any]:
    """Return the data with which the script of the page explains a row."""
    is_class = analysis.task == "classification"
    return {
        "names": list(rows.names),
        "short": [shorten(name) for name in rows.names],
        "labels": [value_text(label) for label in rows.labels],
        "values": [[value_text(value) for value in column.tolist()] for column in rows.values],
        "relevance": _round(rows.relevance),
        "average": _round(rows.average[None])[0],
        "meanShare": None if rows.mean_share is None else np.round(rows.mean_share, 2).tolist(),
        "added": None if rows.added is None else _round(rows.added),
        "addedSd": None if rows.added_sd is None else _round(rows.added_sd),
        "largestAdded": 0.0 if rows.added is None else float(np.abs(rows.added).max(initial=0.0)),
        "sums": _prediction_sums(analysis, rows),
        "largest": rows.largest,
        "predictions": _predictions(analysis, rows),
        "observed": [_class_label(analysis, int(y)) if is_class else value_text(float(y)) for y in rows.observed],
    }


def _predictions(analysis: Analysis, rows: RowDetails) -> list[str]:
    """Return the prediction at each row in words."""
    prediction = rows.prediction
    if analysis.task == "classification":
        mean = analysis.class_probabilities(prediction.mean)
        best = mean.argmax(axis=1)
        return [f"{_class_label(analysis, k)} with probability {percent(mean[i, k])}" for i, k in enumerate(best)]
    return [
        f"{number(mean)} ({percent(LEVEL)} between {number(low)} and {number(high)})"
        for mean, (low, high) in zip(prediction.mean, prediction.interval(LEVEL), strict=True)
    ]


def _prediction_sums(analysis: Analysis, rows: RowDetails) -> list[str] | None:
    """Return the sum of average and contributions at each row in words; None if there is no attribution."""
    parts = None if analysis.column_effects is None else analysis.column_effects.rows
    if parts is None or rows.added is None:
        return None
    what, average = function_of(shorten(analysis.target), parts), number(parts.average)
    return [
        f"On average {what} is {average}; the columns add {use_minus(f'{value - parts.average:+z.3g}')}, which makes "
        f"{number(value)}."
        for value in parts.prediction
    ]


def _class_label(analysis: Analysis, code: int) -> str:
    return shorten(analysis.classes[code]) if analysis.classes else str(code)


def _round(values: np.ndarray) -> list[list[float]]:
    """Round numbers to few digits: a page holds very many of them."""
    return [[float(f"{value:.{DIGITS}g}") for value in line] for line in values.tolist()]


# The height of the frame in pixels; longer content scrolls.
HEIGHT = 620


def notebook_html(analysis: Analysis) -> str:
    """Return the first screen and the table of relevance in a frame, without scripts or the notebook's styles."""
    shown = _first_screen(analysis)
    text = fill_template("notebook.html", **shown, panels=[], interactions=None, shares=None, still=True)
    frame = Markup(
        '<iframe srcdoc="{}" sandbox="" title="What matters for {}" '
        'style="width:100%;height:{}px;border:1px solid #8884;border-radius:4px"></iframe>'
    )
    return str(frame.format(text, analysis.target, HEIGHT))
