"""What all pictures of the page are made of, by Bokeh: empty frames, named axes, lines, colours from low to high.

Colours are not fixed here: each model carries, as a tag, which of its properties takes which colour of the style sheet,
and `page.js` fills them in, for light, dark and print. What a dot says when it is pointed at is written by `page.js`
too, so that Bokeh's own tooltips, which follow no style sheet of ours, are not needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from bokeh.core.types import ID
from bokeh.embed import json_item
from bokeh.models import FixedTicker
from bokeh.models.annotations import Span
from bokeh.plotting import figure

from gpsift.app.html.words import shortened

FRAME_HEIGHT = 64
FONT = "system-ui, sans-serif"
# Names beside an axis, on a wide and on a narrow screen.
WIDE, NARROW = 26, 11
# Low to high values: blue to orange with rising lightness, told apart by every kind of colour vision, in grey, and on
# both light and dark paper.
RAMP = ("#3a74b5", "#8a7f92", "#e8912d")
SHADES = 64


def ramp(n: int = SHADES) -> list[str]:
    """Colours from low to high."""
    stops = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in RAMP], dtype=float)
    at = np.linspace(0, len(stops) - 1, n)
    mixed = np.column_stack([np.interp(at, np.arange(len(stops)), channel) for channel in stops.T])
    return ["#" + "".join(f"{round(value):02x}" for value in colour) for colour in mixed]


def item(plot: Any, target: str) -> dict[str, Any]:
    """A plot as data, to be drawn by the page in the element with this id."""
    return {**json_item(plot, ID(target))}


def frame(height: int, x_label: str, y_label: str = "", x_scale: Literal["linear", "log"] = "linear") -> Any:
    """An empty plot that fills the width, has no toolbar and lets the page scroll."""
    plot = figure(
        height=height, min_width=120, sizing_mode="stretch_width", tools="", toolbar_location=None, x_axis_type=x_scale
    )
    plot.output_backend = "canvas"
    plot.background_fill_color = plot.border_fill_color = plot.outline_line_color = None
    plot.min_border_left = 4
    for axis, label in ((plot.xaxis, x_label), (plot.yaxis, y_label)):
        axis.axis_label = label or None
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_font = axis.major_label_text_font = FONT
        axis.axis_label_text_font_size, axis.major_label_text_font_size = "13px", "12px"
        axis.minor_tick_line_color = None
        axis.major_tick_in, axis.major_tick_out = 0, 4
        axis[0].tags = [
            {
                "axis_line_color": "rule",
                "major_tick_line_color": "rule",
                "major_label_text_color": "ink",
                "axis_label_text_color": "muted",
            }
        ]
    for grid in plot.grid:
        grid.tags = [{"grid_line_color": "rule"}]
    return plot


def name_strips(plot: Any, names: Sequence[str]) -> None:
    """Names in place of numbers, from the top down; a shorter form of them travels along for narrow screens."""
    plot.y_range.start, plot.y_range.end = len(names) - 0.4, -0.6
    plot.ygrid.tags = []
    plot.ygrid.grid_line_color = None
    name_axis(plot.yaxis[0], names)


def name_axis(axis: Any, names: Sequence[str]) -> None:
    """Names at 0, 1, ...; without a line."""
    axis.ticker = FixedTicker(ticks=list(range(len(names))))
    wide, narrow = ({place: shortened(name, most) for place, name in enumerate(names)} for most in (WIDE, NARROW))
    axis.major_label_overrides = wide
    axis.axis_line_color = axis.major_tick_line_color = None
    axis.tags = [
        {"major_label_text_color": "ink", "axis_label_text_color": "muted"},
        {"narrow": list(narrow.values()), "wide": list(wide.values())},
    ]


def across(location: float, dimension: Literal["width", "height"], role: str, dash: str = "solid") -> Span:
    """Across the plot, at a value."""
    return Span(
        location=float(location), dimension=dimension, line_dash=dash, line_width=1.4, tags=[{"line_color": role}]
    )
