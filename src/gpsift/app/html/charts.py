"""Draw the charts of the page with Bokeh: rows, sizes, samples, tests, effects, pairs, comparisons.

The style sheet has the colours. The tag of a Bokeh model names the colour of each of its properties, and `page.js` sets
them for light, dark and print. It also shows the text of a dot under the pointer, because Bokeh's own tooltips do not
follow the style sheet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from bokeh.core.types import ID
from bokeh.embed import json_item
from bokeh.models import ColumnDataSource, FixedTicker, HoverTool, LinearColorMapper, TapTool
from bokeh.models.annotations import ColorBar, Legend, LegendItem, Span
from bokeh.plotting import figure

from gpsift._utils.text import meaning
from gpsift.app.analysis.compare import Comparison
from gpsift.app.analysis.rows import RowDetails
from gpsift.app.html.text import count, number, percent, shorten, use_minus
from gpsift.decomposition.effects import Curve, Effects
from gpsift.decomposition.interactions import Interactions, Surface
from gpsift.selection.conditional_test.discover import Discoveries
from gpsift.selection.path import Path
from gpsift.selection.stability import Stability

FRAME_HEIGHT = 64
FONT = "system-ui, sans-serif"
# The longest names beside an axis, on a wide and on a narrow screen.
WIDE, NARROW = 26, 11
# Names below a chart are in one line if they have at most this many letters in all.
LONGEST_LINE = 24
# Low to high values: blue to orange with rising lightness, which every kind of colour vision distinguishes, in grey and
# on both light and dark paper.
RAMP_COLOURS = ("#3a74b5", "#8a7f92", "#e8912d")
SHADES = 64
# The style of dots that only show their texts.
INVISIBLE = {"size": 12, "fill_alpha": 0.0, "line_color": None}


def ramp(n: int = SHADES) -> list[str]:
    """Interpolate n colours from low to high."""
    stops = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in RAMP_COLOURS], dtype=float)
    at = np.linspace(0, len(stops) - 1, n)
    mixed = np.column_stack([np.interp(at, np.arange(len(stops)), channel) for channel in stops.T])
    return ["#" + "".join(f"{round(value):02x}" for value in colour) for colour in mixed]


def plot_data(plot: Any, target: str, tips: Any = None, **options: Any) -> dict[str, Any]:
    """Return a plot as data, which the page draws in the element with this id; dots `tips` show their texts."""
    if tips is not None:
        plot.add_tools(HoverTool(tooltips=None, renderers=[tips], **options))
    return {**json_item(plot, ID(target))}


def paint(drawn: Any, **roles: str) -> None:
    """Set properties of a renderer, such as `line_color`, to colours of the style sheet by their names."""
    drawn.glyph.tags = [roles]


def draw_dots(plot: Any, x: Any, y: Any, tips: Sequence[str], **style: Any) -> Any:
    """Draw dots that show their texts when they are pointed at."""
    return plot.scatter("x", "y", source=ColumnDataSource({"x": x, "y": y, "tip": tips}), name="dots", **style)


def new_plot(height: int, x_label: str, y_label: str = "", x_scale: Literal["linear", "log"] = "linear") -> Any:
    """Make an empty plot that fills the width, has no toolbar and lets the page scroll."""
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
    """Put names in place of the numbers of the vertical axis, from the top down, shorter ones on narrow screens."""
    plot.y_range.start, plot.y_range.end = len(names) - 0.4, -0.6
    plot.ygrid.tags = []
    plot.ygrid.grid_line_color = None
    name_axis(plot.yaxis[0], names)


def name_axis(axis: Any, names: Sequence[str]) -> None:
    """Put names at 0, 1, ... of an axis without a line."""
    axis.ticker = FixedTicker(ticks=list(range(len(names))))
    wide, narrow = ({place: shorten(name, most) for place, name in enumerate(names)} for most in (WIDE, NARROW))
    axis.major_label_overrides = wide
    axis.axis_line_color = axis.major_tick_line_color = None
    axis.tags = [
        {"major_label_text_color": "ink", "axis_label_text_color": "muted"},
        {"narrow": list(narrow.values()), "wide": list(wide.values())},
    ]


def name_below(plot: Any, names: Sequence[str]) -> None:
    """Put names below a chart: in one line, or turned if they are long."""
    name_axis(plot.xaxis[0], names)
    plot.xaxis.major_label_orientation = "vertical" if sum(map(len, names)) > LONGEST_LINE else "horizontal"


def line_across(location: float, dimension: Literal["width", "height"], role: str, dash: str = "solid") -> Span:
    """Make a line across the plot, at a value."""
    return Span(
        location=float(location), dimension=dimension, line_dash=dash, line_width=1.4, tags=[{"line_color": role}]
    )


MOST_STRIPS = 20
STRIP_HEIGHT = 38
CURVE_HEIGHT = 340
BINS = 160
# Smaller p-values are drawn as this one.
SMALLEST_P = 1e-12
# Half of the height that dots of one column may take, and the distance of two dots in the same bin.
HALF_HEIGHT, SWARM_STEP = 0.4, 0.07


def pointwise_strips(rows: RowDetails, target: str, score: str) -> dict[str, Any]:
    """Draw every row as a dot in a strip for each column, the most relevant on top; `score` names the score."""
    shown = min(MOST_STRIPS, len(rows.names))
    x = rows.relevance[:shown]
    heights = np.array([place + swarm(line, x.max(initial=0.0)) for place, line in enumerate(x)])
    # Column after column, row after row: `page.js` finds column and row of a dot from its number.
    source = ColumnDataSource(
        {
            "x": x.ravel().astype(np.float32),
            "y": heights.ravel().astype(np.float32),
            "shade": rows.color_ranks[:shown].ravel().astype(np.float32),
        }
    )
    plot = new_plot(STRIP_HEIGHT * shown + FRAME_HEIGHT, f"{score} at the row")
    plot.x_range.start, plot.x_range.end = 0.0, 1.04 * float(x.max(initial=0.0)) or 1.0
    name_strips(plot, rows.names[:shown])
    mapper = LinearColorMapper(palette=ramp(), low=0.0, high=1.0)
    dots = plot.scatter(
        "x", "y", source=source, size=5.5, line_color=None, fill_alpha=0.85, name="dots",
        fill_color={"field": "shade", "transform": mapper},
    )  # fmt: skip
    dots.nonselection_glyph = dots.glyph
    means = plot.scatter(
        rows.average[:shown], np.arange(shown), marker="dash", angle=np.pi / 2, size=26, line_width=2.2, level="overlay"
    )
    paint(means, line_color="ink")
    plot.add_tools(HoverTool(tooltips=None, renderers=[dots]), TapTool(renderers=[dots]))
    return plot_data(plot, target)


def swarm(values: np.ndarray, largest: float) -> np.ndarray:
    """Return offsets that keep dots of nearly equal values apart: up and down in turn, within the height of a strip."""
    bins = np.floor(BINS * values / (largest or 1.0)).astype(int)
    order = np.argsort(bins, kind="stable")
    starts = np.searchsorted(bins[order], bins[order])
    nth = np.empty(len(values), dtype=int)
    nth[order] = np.arange(len(values)) - starts
    steps = np.where(nth % 2 == 1, 1, -1) * ((nth + 1) // 2)
    return steps * min(SWARM_STEP, HALF_HEIGHT / max(1, np.abs(steps).max(initial=0)))


def elpd_curve(path: Path, target: str) -> dict[str, Any]:
    """Draw elpd by size with the error of the difference to the reference, the reference, and the suggested size."""
    plot = new_plot(CURVE_HEIGHT, "how many columns", "elpd, higher is better")
    values, errors = path.elpd, path.diff_se
    tips = [
        f"{_size_text(path, place)}\nelpd {use_minus(f'{values[place]:z.1f}')}, beside all columns "
        f"{use_minus(f'{path.diff[place]:+z.1f} ± {errors[place]:z.1f}')}"
        for place in range(len(path.sizes))
    ]
    source = ColumnDataSource(
        {"x": path.sizes, "y": values, "low": values - errors, "high": values + errors, "tip": tips}
    )
    plot.add_layout(line_across(path.reference_elpd, "width", "muted", dash="dashed"))
    size = None if path.suggestion is None else path.suggestion.size
    if size is not None:
        plot.add_layout(line_across(size, "height", "accent"))
    paint(plot.segment("x", "low", "x", "high", source=source, line_width=1.6, line_alpha=0.7), line_color="first")
    paint(plot.line("x", "y", source=source, line_width=1.4), line_color="first")
    dots = plot.scatter("x", "y", source=source, size=8, line_width=1.5, name="dots")
    paint(dots, fill_color="first", line_color="paper")
    if size is not None:
        at = values[path.sizes == size].tolist()
        paint(plot.scatter([size] * len(at), at, size=13, line_width=2), fill_color="accent", line_color="paper")
    if len(path.sizes) <= 21:
        plot.xaxis.ticker = FixedTicker(ticks=[int(each) for each in path.sizes])
    return plot_data(plot, target, dots)


def rank_strips(stability: Stability, target: str) -> dict[str, Any]:
    """Draw the rank of each column in every sample as a jittered dot, columns by mean rank."""
    ranks = stability.ranks
    shown = stability.order[: min(MOST_STRIPS, stability.n_shown)]
    # The jitter is decoration, so its seed is fixed: the same record gives the same picture.
    jitter = np.random.default_rng(0).uniform(-1.0, 1.0, size=(2, len(shown), len(ranks)))
    x = ranks[:, shown].T + 0.28 * jitter[0]
    y = np.arange(len(shown))[:, None] + 0.28 * jitter[1]
    tips = [
        f"{shorten(stability.names[j])}: rank {ranks[sample, j]} in sample {sample + 1}"
        for j in shown
        for sample in range(len(ranks))
    ]
    plot = new_plot(28 * len(shown) + FRAME_HEIGHT, "rank in each sample")
    name_strips(plot, [stability.names[j] for j in shown])
    plot.x_range.start, plot.x_range.end = 0.4, stability.n_features + 0.6
    dots = draw_dots(plot, x.ravel(), y.ravel(), tips, size=6, fill_alpha=0.55, line_color=None)
    paint(dots, fill_color="first")
    means = plot.scatter(
        stability.mean_ranks[shown], np.arange(len(shown)), marker="dash", angle=np.pi / 2, size=20, line_width=2.4
    )
    paint(means, line_color="accent")
    if stability.n_features <= MOST_STRIPS:
        plot.xaxis.ticker = FixedTicker(ticks=list(range(1, stability.n_features + 1)))
    return plot_data(plot, target, dots)


def p_values(found: Discoveries, target: str) -> dict[str, Any]:
    """Draw the p-value of each column, the smallest on top, and the limit below which columns matter."""
    shown = found.order[:MOST_STRIPS]
    places = np.arange(len(shown))
    p = np.maximum(found.p[shown], SMALLEST_P)
    limits = found.limits[: len(shown)]
    plot = new_plot(28 * len(shown) + FRAME_HEIGHT, "p-value", x_scale="log")
    name_strips(plot, [found.names[j] for j in shown])
    plot.x_range.start, plot.x_range.end = 0.5 * min(p.min(), limits.min()), 1.6
    paint(plot.line(limits, places, line_width=1.6), line_color="accent")
    tips = [
        f"{shorten(found.names[j])}: {'matters' if found.found[j] else 'not shown to matter'}\n"
        f"p-value {number(found.p[j], 2)}, q-value {number(found.q[j], 2)}"
        for j in shown
    ]
    named = found.found[shown]
    dots = draw_dots(plot, p, places, tips, size=9, line_width=1.5)
    paint(dots, fill_color="muted", line_color="paper")
    marked = plot.scatter(p[named], places[named], size=11, line_width=1.5)
    paint(marked, fill_color="first", line_color="paper")
    return plot_data(plot, target, dots)


def _size_text(path: Path, place: int) -> str:
    size = int(path.sizes[place])
    if size == 0:
        return "no columns"
    return f"{count(size, 'column')}, the last {shorten(path.names[path.order[size - 1]])}"


PANEL_HEIGHT, SURFACE_HEIGHT = 190, 380
CELL_HEIGHT, MATRIX_FRAME = 34, 120
# The largest numbers of columns with a panel, and in the matrix.
MOST_PANELS = 12
MOST_IN_MATRIX = 20
# The smallest share of a pair that may be drawn in the darkest shade. Text on cells darker than DARK is light.
LEAST_DARKEST = 0.02
DARK = 0.55
# The number of colours of a surface.
SURFACE_COLOURS = 12
# Dots of single rows spread this far to either side of a level.
LEVEL_SPREAD = 0.3


def curve_panels(effects: Effects, targets: Sequence[str]) -> list[dict[str, Any]]:
    """Draw a panel for each of the first columns, all with one vertical axis, in the elements with these ids.

    The axis has room for all curves with their bands, for nine tenths of the points of single rows, and for the rug.
    """
    shown = effects.curves[: len(targets)]
    points = [np.concatenate([curve.mean, curve.band[np.isfinite(curve.band)]]) for curve in shown]
    rows = [np.quantile(curve.individual, [0.05, 0.95]) for curve in shown if curve.individual.size]
    every = np.concatenate([*points, *rows])
    room = 0.06 * float(np.ptp(every)) or 1.0
    low, high = float(every.min()) - 1.6 * room, float(every.max()) + room
    return [_panel(curve, low, high, target) for curve, target in zip(shown, targets, strict=True)]


def _panel(curve: Curve, low: float, high: float, target: str) -> dict[str, Any]:
    plot = new_plot(PANEL_HEIGHT, "")
    plot.y_range.start, plot.y_range.end = low, high
    plot.xgrid.tags, plot.xgrid.grid_line_color = [], None
    plot.yaxis.ticker.desired_num_ticks = 4
    plot.xaxis.ticker.desired_num_ticks = 4
    plot.min_border_right = 10  # half of the last number
    plot.add_layout(line_across(0.0, "width", "muted", dash="dotted"))
    (_draw_levels if curve.labels else _draw_curve)(plot, curve, low)
    tips = []
    for place, (lower, upper) in enumerate(curve.band):
        value = curve.labels[place] if curve.labels else number(curve.x[place])
        band = f"\n95 % between {number(lower)} and {number(upper)}" if np.isfinite(lower) else ""
        move = use_minus(f"{curve.mean[place]:+z.3g}")
        tips.append(f"{shorten(curve.name)} = {value}\n{move} beside the average{band}")
    dots = draw_dots(plot, curve.x, curve.mean, tips, **INVISIBLE)
    return plot_data(plot, target, dots, mode="mouse" if curve.labels else "vline")


def _draw_curve(plot: Any, curve: Curve, low: float) -> None:
    x, mean = curve.x, curve.mean
    rows = plot.multi_line(
        [x.astype(np.float32)] * len(curve.individual), list(curve.individual.astype(np.float32)), line_width=0.7,
        line_alpha=0.3,
    )  # fmt: skip
    paint(rows, line_color="muted")
    if np.isfinite(curve.band).all():
        paint(plot.varea(x, curve.band[:, 0], curve.band[:, 1], fill_alpha=0.25), fill_color="first")
    paint(plot.line(x, mean, line_width=1.2, line_dash="dotted"), line_color="first")
    paint(plot.line(x, np.where(curve.is_supported, mean, np.nan), line_width=2.2), line_color="first")
    inside = curve.rug[(curve.rug >= x[0]) & (curve.rug <= x[-1])]
    rug = plot.scatter(inside, np.full(len(inside), low), marker="dash", angle=np.pi / 2, size=14, line_alpha=0.35)
    paint(rug, line_color="ink")
    room = 0.02 * float(np.ptp(x)) or 0.5
    plot.x_range.start, plot.x_range.end = float(x[0]) - room, float(x[-1]) + room


def _draw_levels(plot: Any, curve: Curve, _low: float) -> None:
    n = len(curve.individual)
    beside = np.linspace(-LEVEL_SPREAD, LEVEL_SPREAD, n) if n > 1 else np.zeros(n)
    rows = plot.scatter(
        np.add.outer(curve.x, beside).ravel(), curve.individual.T.ravel(), size=3, line_color=None, fill_alpha=0.4
    )
    paint(rows, fill_color="muted")
    if np.isfinite(curve.band).all():
        bands = plot.segment(curve.x, curve.band[:, 0], curve.x, curve.band[:, 1], line_width=2.2)
        paint(bands, line_color="first")
    paint(plot.scatter(curve.x, curve.mean, size=9, line_color=None), fill_color="first")
    name_below(plot, curve.labels)
    plot.x_range.start, plot.x_range.end = -0.6, len(curve.x) - 0.4


def pair_matrix(found: Interactions, target: str) -> dict[str, Any]:
    """Draw the shares of pairs as cells, the darker the larger; cells of found pairs show their number."""
    shown = found.by_largest_share[:MOST_IN_MATRIX]
    names = [found.names[j] for j in shown]
    rows, columns = np.tril_indices(len(shown), -1)
    share = found.share[shown[rows], shown[columns]]
    is_found = found.is_found[shown[rows], shown[columns]]
    strength = np.clip(share / max(float(share.max()), LEAST_DARKEST), 0.0, 1.0)
    tips = [
        f"{shorten(names[i])} with {shorten(names[j])}: {'act together' if each else 'not found'}\n"
        f"{percent(part)} of the variance needs both, evidence {number(found.evidence[shown[i], shown[j]])}"
        for i, j, part, each in zip(rows, columns, share, is_found, strict=True)
    ]
    plot = new_plot(CELL_HEIGHT * (len(shown) - 1) + MATRIX_FRAME, "")
    plot.grid.tags, plot.grid.grid_line_color = [], None
    name_strips(plot, names[1:])
    name_below(plot, names[:-1])
    plot.x_range.start, plot.x_range.end = -0.6, len(shown) - 1.4
    source = ColumnDataSource({"x": columns, "y": rows - 1, "strength": strength, "tip": tips})
    paint(plot.rect("x", "y", 0.94, 0.94, source=source, fill_alpha=0.5, line_color=None), fill_color="rule")
    cells = plot.rect("x", "y", 0.94, 0.94, source=source, fill_alpha="strength", line_color=None, name="dots")
    paint(cells, fill_color="first")
    for role, those in (("paper", is_found & (strength > DARK)), ("ink", is_found & (strength <= DARK))):
        words = plot.text(
            columns[those], (rows - 1)[those], [percent(part) for part in share[those]], text_align="center",
            text_baseline="middle", text_font={"value": FONT}, text_font_size="12px",
        )  # fmt: skip
        paint(words, text_color=role)
    return plot_data(plot, target, cells)


def pair_surface(surface: Surface, target: str) -> dict[str, Any]:
    """Draw the average prediction with two columns set: contours and rows, or a line for each level of a category."""
    if surface.x_labels or surface.y_labels:
        return _draw_level_lines(surface, target)
    plot = new_plot(SURFACE_HEIGHT, shorten(surface.names[0]), shorten(surface.names[1]))
    plot.grid.tags, plot.grid.grid_line_color = [], None
    low, high = float(surface.mean.min()), float(surface.mean.max())
    levels = np.linspace(low, high if high > low else low + 1.0, SURFACE_COLOURS + 1)
    z = np.clip(surface.mean.T, levels[0], levels[-1] - 1e-9 * (levels[-1] - levels[0]))
    colours = ramp(SURFACE_COLOURS)
    drawn = plot.contour(surface.x, surface.y, z, levels=levels, fill_color=colours, line_color="white", line_width=0.6)
    paint(drawn.line_renderer, line_color="paper")
    bar = ColorBar(
        color_mapper=LinearColorMapper(palette=colours, low=float(levels[0]), high=float(levels[-1])), width=10,
        padding=6, major_label_text_font=FONT, major_label_text_font_size="12px", background_fill_color=None,
        bar_line_color=None, major_tick_line_color=None, tags=[{"major_label_text_color": "ink"}],
    )  # fmt: skip
    plot.add_layout(bar, "right")
    plot.x_range.start, plot.x_range.end = float(surface.x[0]), float(surface.x[-1])
    plot.y_range.start, plot.y_range.end = float(surface.y[0]), float(surface.y[-1])
    if surface.x_rows is None or surface.y_rows is None:
        return plot_data(plot, target)
    first, second = (shorten(name) for name in surface.names)
    tips = [
        f"A row\n{first} = {number(x)}\n{second} = {number(y)}"
        for x, y in zip(surface.x_rows, surface.y_rows, strict=True)
    ]
    style = {"size": 4.5, "fill_color": "#15181b", "fill_alpha": 0.6, "line_color": None}
    return plot_data(plot, target, draw_dots(plot, surface.x_rows, surface.y_rows, tips, **style))


def _draw_level_lines(surface: Surface, target: str) -> dict[str, Any]:
    """Draw a line for each level of a category, along the number or the other category."""
    by_second = bool(surface.y_labels)
    labels, lines = (surface.y_labels, surface.mean.T) if by_second else (surface.x_labels, surface.mean)
    along, ticks = (surface.x, surface.x_labels) if by_second else (surface.y, ())
    name, other = surface.names if by_second else surface.names[::-1]
    plot = new_plot(SURFACE_HEIGHT, shorten(name))
    if ticks:
        name_axis(plot.xaxis[0], ticks)
    items, points, tips = [], [], []
    for label, line, colour in zip(labels, lines, ramp(max(len(labels), 2)), strict=False):
        drawn = plot.line(along, line, line_width=2.4, line_color=colour)
        items.append(LegendItem(label=shorten(label), renderers=[drawn]))
        points += list(zip(along, line, strict=True))
        tips += [f"{shorten(other)} = {shorten(label)}\n{number(value)} on average" for value in line]
    x, y = np.array(points).T
    dots = draw_dots(plot, x, y, tips, **{**INVISIBLE, "size": 7})
    legend = Legend(
        items=items, title=shorten(other), orientation="horizontal", label_text_font=FONT, title_text_font=FONT,
        background_fill_color=None, border_line_color=None, title_text_font_style="normal", ncols=4, location="left",
        tags=[{"label_text_color": "ink", "title_text_color": "muted"}],
    )  # fmt: skip
    plot.add_layout(legend, "above")
    return plot_data(plot, target, dots)


# The largest number of columns in the chart of a comparison, and the height of each.
MOST_PAIRS = 20
PAIR_HEIGHT = 36
# The two scores are this far above and below the middle of their strip.
APART = 0.16


def pairs_of_scores(answer: Comparison, target: str) -> dict[str, Any]:
    """Draw both scores of the first columns with their intervals, the most relevant on top."""
    shown = answer.order[:MOST_PAIRS]
    plot = new_plot(PAIR_HEIGHT * len(shown) + FRAME_HEIGHT, meaning(answer.measure))
    name_strips(plot, [answer.names[j] for j in shown])
    plot.x_range.start = -0.02 * float(np.nanmax([*answer.scores[:, shown].ravel(), 0.0]))  # room for half a dot
    tips, x, y = [], [], []
    for which, (role, beside) in enumerate((("first", -APART), ("accent", APART))):
        at = np.arange(len(shown)) + beside
        low, high = answer.intervals[which, shown].T
        if answer.has_intervals:
            paint(plot.segment(low, at, high, at, line_width=1.6, line_alpha=0.7), line_color=role)
        marks = plot.scatter(
            answer.scores[which, shown], at, size=9, line_color=None, marker=("circle", "diamond")[which]
        )
        paint(marks, fill_color=role)
        x += answer.scores[which, shown].tolist()
        y += at.tolist()
        tips += [f"{shorten(answer.names[j])}\n{answer.labels[which]}: {answer.score_text(which, j)}" for j in shown]
    return plot_data(plot, target, draw_dots(plot, x, y, tips, **INVISIBLE))
