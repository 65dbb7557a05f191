"""The pictures of the page, by Bokeh.

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
from bokeh.models import ColumnDataSource, FixedTicker, HoverTool, LinearColorMapper, TapTool
from bokeh.models.annotations import Span
from bokeh.plotting import figure

from gpsift.analysis.rows import Rows
from gpsift.page.words import count, number, shortened, signed
from gpsift.results import Discoveries, Path, Stability

MOST_STRIPS = 20
STRIP_HEIGHT, FRAME_HEIGHT = 38, 64
CURVE_HEIGHT = 340
FONT = "system-ui, sans-serif"
# Names beside an axis, on a wide and on a narrow screen.
WIDE, NARROW = 26, 11
BINS = 160
# A p-value below this is drawn here.
SMALLEST_P = 1e-12
# Half of the height that dots of one column may take, and the distance of two dots in the same bin.
HALF, APART = 0.4, 0.07
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


def pointwise_strips(rows: Rows, target: str, score: str) -> dict[str, Any]:
    """Every row a dot, a strip for each column, most relevant on top; `score` says what is shown."""
    shown = min(MOST_STRIPS, len(rows.names))
    x = rows.relevance[:shown]
    heights = np.array([place + swarm(line, x.max(initial=0.0)) for place, line in enumerate(x)])
    # Column after column, row after row: `page.js` finds column and row of a dot from its number.
    source = ColumnDataSource(
        {
            "x": x.ravel().astype(np.float32),
            "y": heights.ravel().astype(np.float32),
            "shade": rows.shades[:shown].ravel().astype(np.float32),
        }
    )
    plot = _frame(STRIP_HEIGHT * shown + FRAME_HEIGHT, f"{score} at the row")
    plot.x_range.start, plot.x_range.end = 0.0, 1.04 * float(x.max(initial=0.0)) or 1.0
    _name_strips(plot, rows.names[:shown])
    mapper = LinearColorMapper(palette=ramp(), low=0.0, high=1.0)
    dots = plot.scatter(
        "x", "y", source=source, size=5.5, line_color=None, fill_alpha=0.85, name="dots",
        fill_color={"field": "shade", "transform": mapper},
    )  # fmt: skip
    dots.nonselection_glyph = dots.glyph
    means = plot.scatter(
        rows.average[:shown], np.arange(shown), marker="dash", angle=np.pi / 2, size=26, line_width=2.2, level="overlay"
    )
    means.glyph.tags = [{"line_color": "ink"}]
    plot.add_tools(HoverTool(tooltips=None, renderers=[dots]), TapTool(renderers=[dots]))
    return _item(plot, target)


def swarm(values: np.ndarray, largest: float) -> np.ndarray:
    """Offsets that keep dots of nearly the same value apart: up and down in turn, within the height of a strip."""
    bins = np.floor(BINS * values / (largest or 1.0)).astype(int)
    order = np.argsort(bins, kind="stable")
    starts = np.searchsorted(bins[order], bins[order])
    nth = np.empty(len(values), dtype=int)
    nth[order] = np.arange(len(values)) - starts
    steps = np.where(nth % 2 == 1, 1, -1) * ((nth + 1) // 2)
    return steps * min(APART, HALF / max(1, np.abs(steps).max(initial=0)))


def elpd_curve(path: Path, target: str) -> dict[str, Any]:
    """elpd by size with the error of the difference to the reference, the reference's line, the suggested size."""
    plot = _frame(CURVE_HEIGHT, "how many columns", "elpd, higher is better")
    values, errors = path.elpd, path.diff_se
    tips = [
        f"{_entered(path, place)}\nelpd {signed(f'{values[place]:.1f}')}, beside all columns "
        f"{signed(f'{path.diff[place]:+.1f} ± {errors[place]:.1f}')}"
        for place in range(len(path.sizes))
    ]
    source = ColumnDataSource(
        {"x": path.sizes, "y": values, "low": values - errors, "high": values + errors, "tip": tips}
    )
    plot.add_layout(_line(path.reference_elpd, "width", "muted", dash="dashed"))
    size = None if path.suggestion is None else path.suggestion.size
    if size is not None:
        plot.add_layout(_line(size, "height", "accent"))
    bars = plot.segment("x", "low", "x", "high", source=source, line_width=1.6, line_alpha=0.7)
    bars.glyph.tags = [{"line_color": "first"}]
    line = plot.line("x", "y", source=source, line_width=1.4)
    dots = plot.scatter("x", "y", source=source, size=8, line_width=1.5, name="dots")
    line.glyph.tags = [{"line_color": "first"}]
    dots.glyph.tags = [{"fill_color": "first", "line_color": "paper"}]
    if size is not None:
        at = [value for value, each in zip(values, path.sizes, strict=True) if each == size]
        marked = plot.scatter([size] * len(at), at, size=13, line_width=2)
        marked.glyph.tags = [{"fill_color": "accent", "line_color": "paper"}]
    if len(path.sizes) <= 21:
        plot.xaxis.ticker = FixedTicker(ticks=[int(each) for each in path.sizes])
    plot.add_tools(HoverTool(tooltips=None, renderers=[dots]))
    return _item(plot, target)


def rank_strips(stability: Stability, target: str) -> dict[str, Any]:
    """The rank of each column in every sample, a jittered dot each, columns by mean rank."""
    ranks = stability.ranks
    shown = stability.order[: min(MOST_STRIPS, stability.n_told)]
    # The jitter is decoration, so its seed is fixed: the same record gives the same picture.
    jitter = np.random.default_rng(0).uniform(-1.0, 1.0, size=(2, len(shown), len(ranks)))
    x = ranks[:, shown].T + 0.28 * jitter[0]
    y = np.arange(len(shown))[:, None] + 0.28 * jitter[1]
    tips = [
        f"{shortened(stability.names[j])}: rank {ranks[sample, j]} in sample {sample + 1}"
        for j in shown
        for sample in range(len(ranks))
    ]
    plot = _frame(28 * len(shown) + FRAME_HEIGHT, "rank in each sample")
    _name_strips(plot, [stability.names[j] for j in shown])
    plot.x_range.start, plot.x_range.end = 0.4, stability.n_features + 0.6
    source = ColumnDataSource({"x": x.ravel(), "y": y.ravel(), "tip": tips})
    dots = plot.scatter("x", "y", source=source, size=6, fill_alpha=0.55, line_color=None, name="dots")
    dots.glyph.tags = [{"fill_color": "first"}]
    means = plot.scatter(
        stability.mean_ranks[shown], np.arange(len(shown)), marker="dash", angle=np.pi / 2, size=20, line_width=2.4
    )
    means.glyph.tags = [{"line_color": "accent"}]
    if stability.n_features <= MOST_STRIPS:
        plot.xaxis.ticker = FixedTicker(ticks=list(range(1, stability.n_features + 1)))
    plot.add_tools(HoverTool(tooltips=None, renderers=[dots]))
    return _item(plot, target)


def p_values(found: Discoveries, target: str) -> dict[str, Any]:
    """The p-value of each column, the surest on top, and the line that those of columns that matter are left of."""
    shown = found.order[:MOST_STRIPS]
    places = np.arange(len(shown))
    p = np.maximum(found.p[shown], SMALLEST_P)
    limits = found.limits[: len(shown)]
    plot = _frame(28 * len(shown) + FRAME_HEIGHT, "p-value", x_scale="log")
    _name_strips(plot, [found.names[j] for j in shown])
    plot.x_range.start, plot.x_range.end = 0.5 * min(p.min(), limits.min()), 1.6
    line = plot.line(limits, places, line_width=1.6)
    line.glyph.tags = [{"line_color": "accent"}]
    tips = [
        f"{shortened(found.names[j])}: {'matters' if found.found[j] else 'not shown to matter'}\n"
        f"p-value {number(found.p[j], 2)}, q-value {number(found.q[j], 2)}"
        for j in shown
    ]
    source = ColumnDataSource({"x": p, "y": places, "tip": tips})
    named = found.found[shown]
    dots = plot.scatter("x", "y", source=source, size=9, line_width=1.5, name="dots")
    dots.glyph.tags = [{"fill_color": "muted", "line_color": "paper"}]
    marked = plot.scatter(p[named], places[named], size=11, line_width=1.5)
    marked.glyph.tags = [{"fill_color": "first", "line_color": "paper"}]
    plot.add_tools(HoverTool(tooltips=None, renderers=[dots]))
    return _item(plot, target)


def _item(plot: Any, target: str) -> dict[str, Any]:
    """A plot as data, to be drawn by the page in the element with this id."""
    return {**json_item(plot, ID(target))}


def _frame(height: int, x_label: str, y_label: str = "", x_scale: Literal["linear", "log"] = "linear") -> Any:
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


def _name_strips(plot: Any, names: Sequence[str]) -> None:
    """Names in place of numbers, from the top down; a shorter form of them travels along for narrow screens."""
    plot.y_range.start, plot.y_range.end = len(names) - 0.4, -0.6
    plot.ygrid.tags = []
    plot.ygrid.grid_line_color = None
    axis = plot.yaxis[0]
    axis.ticker = FixedTicker(ticks=list(range(len(names))))
    wide, narrow = ({place: shortened(name, most) for place, name in enumerate(names)} for most in (WIDE, NARROW))
    axis.major_label_overrides = wide
    axis.axis_line_color = axis.major_tick_line_color = None
    axis.tags = [
        {"major_label_text_color": "ink", "axis_label_text_color": "muted"},
        {"narrow": list(narrow.values()), "wide": list(wide.values())},
    ]


def _line(location: float, dimension: Literal["width", "height"], role: str, dash: str = "solid") -> Span:
    return Span(
        location=float(location), dimension=dimension, line_dash=dash, line_width=1.4, tags=[{"line_color": role}]
    )


def _entered(path: Path, place: int) -> str:
    size = int(path.sizes[place])
    if size == 0:
        return "no columns"
    return f"{count(size, 'column')}, the last {shortened(path.names[path.order[size - 1]])}"
