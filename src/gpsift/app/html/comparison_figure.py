"""The picture of a comparison, by Bokeh: two dots for each column."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, HoverTool

from gpsift._utils.words import meaning
from gpsift.app.analysis.compare import Comparison
from gpsift.app.html.frames import FRAME_HEIGHT, frame, item, name_strips
from gpsift.app.html.words import shortened

# Columns in the picture, at most, and the height of each.
MOST_PAIRS = 20
PAIR_HEIGHT = 36
# How far the two are above and below the middle of their strip.
APART = 0.16


def pairs_of_scores(answer: Comparison, target: str) -> dict[str, Any]:
    """Both scores of the first columns with their intervals, the most relevant on top."""
    shown = answer.order[:MOST_PAIRS]
    plot = frame(PAIR_HEIGHT * len(shown) + FRAME_HEIGHT, meaning(answer.measure))
    name_strips(plot, [answer.names[j] for j in shown])
    plot.x_range.start = -0.02 * float(np.nanmax([*answer.scores[:, shown].ravel(), 0.0]))  # room for half a dot
    tips, x, y = [], [], []
    for which, (role, beside) in enumerate((("first", -APART), ("accent", APART))):
        at = np.arange(len(shown)) + beside
        low, high = answer.intervals[which, shown].T
        if answer.has_intervals:
            spans = plot.segment(low, at, high, at, line_width=1.6, line_alpha=0.7)
            spans.glyph.tags = [{"line_color": role}]
        marks = plot.scatter(
            answer.scores[which, shown], at, size=9, line_color=None, marker=("circle", "diamond")[which]
        )
        marks.glyph.tags = [{"fill_color": role}]
        x += answer.scores[which, shown].tolist()
        y += at.tolist()
        tips += [f"{shortened(answer.names[j])}\n{answer.labels[which]}: {answer.score_text(which, j)}" for j in shown]
    source = ColumnDataSource({"x": x, "y": y, "tip": tips})
    dots = plot.scatter("x", "y", source=source, size=12, fill_alpha=0.0, line_color=None, name="dots")
    plot.add_tools(HoverTool(tooltips=None, renderers=[dots]))
    return item(plot, target)
