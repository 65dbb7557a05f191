"""The pictures of how columns act: a curve for each, a matrix of pairs, the surface of a pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, HoverTool, LinearColorMapper
from bokeh.models.annotations import ColorBar, Legend, LegendItem

from gpsift.app.html.frames import FONT, across, frame, item, name_axis, name_strips, ramp
from gpsift.app.html.words import number, percent, shortened, signed
from gpsift.decomposition.effects import Curve, Effects
from gpsift.decomposition.interactions import Interactions, Surface

PANEL_HEIGHT, SURFACE_HEIGHT = 190, 380
CELL_HEIGHT, MATRIX_FRAME = 34, 120
# Columns with a panel, and in the matrix, at most.
MOST_PANELS = 12
MOST_IN_MATRIX = 20
# The share of a pair that is as dark as can be, at least: less is no news. Words on darker cells are light.
LEAST_DARKEST = 0.02
DARK = 0.55
# Names below a picture lie in one line if they have no more letters than this.
LONGEST_LINE = 24
# Between colours of a surface.
STEPS = 12
# Curves of single rows beside a level are this far apart.
SPREAD = 0.3


def curve_panels(effects: Effects, targets: Sequence[str]) -> list[dict[str, Any]]:
    """A panel for each of the first columns, all with the same axis upwards, drawn in the elements with these ids."""
    shown = effects.curves[: len(targets)]
    low, high = _limits(shown)
    return [_panel(curve, low, high, target) for curve, target in zip(shown, targets, strict=True)]


def _limits(curves: Sequence[Curve]) -> tuple[float, float]:
    """Of all curves with their bands; those of single rows as far as nine of ten of their points go."""
    points = [np.concatenate([curve.mean, curve.band[np.isfinite(curve.band)]]) for curve in curves]
    rows = [np.quantile(curve.individual, [0.05, 0.95]) for curve in curves if curve.individual.size]
    every = np.concatenate([*points, *rows])
    room = 0.06 * float(np.ptp(every)) or 1.0
    return float(every.min()) - 1.6 * room, float(every.max()) + room  # with room for the rug


def _panel(curve: Curve, low: float, high: float, target: str) -> dict[str, Any]:
    plot = frame(PANEL_HEIGHT, "")
    plot.y_range.start, plot.y_range.end = low, high
    plot.xgrid.tags, plot.xgrid.grid_line_color = [], None
    plot.yaxis.ticker.desired_num_ticks = 4
    plot.xaxis.ticker.desired_num_ticks = 4
    plot.min_border_right = 10  # for half of the last number
    plot.add_layout(across(0.0, "width", "muted", dash="dotted"))
    (_draw_levels if curve.labels else _draw_curve)(plot, curve, low)
    dots = _pointed_at(plot, curve)
    plot.add_tools(HoverTool(tooltips=None, renderers=[dots], mode="mouse" if curve.labels else "vline"))
    return item(plot, target)


def _draw_curve(plot: Any, curve: Curve, low: float) -> None:
    x, mean = curve.x, curve.mean
    rows = plot.multi_line(
        [x.astype(np.float32)] * len(curve.individual), list(curve.individual.astype(np.float32)), line_width=0.7,
        line_alpha=0.3,
    )  # fmt: skip
    rows.glyph.tags = [{"line_color": "muted"}]
    if np.isfinite(curve.band).all():
        band = plot.varea(x, curve.band[:, 0], curve.band[:, 1], fill_alpha=0.25)
        band.glyph.tags = [{"fill_color": "first"}]
    beyond = plot.line(x, mean, line_width=1.2, line_dash="dotted")
    within = plot.line(x, np.where(curve.is_supported, mean, np.nan), line_width=2.2)
    inside = curve.rug[(curve.rug >= x[0]) & (curve.rug <= x[-1])]
    rug = plot.scatter(inside, np.full(len(inside), low), marker="dash", angle=np.pi / 2, size=14, line_alpha=0.35)
    for line, role in ((beyond, "first"), (within, "first"), (rug, "ink")):
        line.glyph.tags = [{"line_color": role}]
    room = 0.02 * float(np.ptp(x)) or 0.5
    plot.x_range.start, plot.x_range.end = float(x[0]) - room, float(x[-1]) + room


def _draw_levels(plot: Any, curve: Curve, _low: float) -> None:
    n = len(curve.individual)
    beside = np.linspace(-SPREAD, SPREAD, n) if n > 1 else np.zeros(n)
    rows = plot.scatter(
        np.add.outer(curve.x, beside).ravel(), curve.individual.T.ravel(), size=3, line_color=None, fill_alpha=0.4
    )
    rows.glyph.tags = [{"fill_color": "muted"}]
    if np.isfinite(curve.band).all():
        bands = plot.segment(curve.x, curve.band[:, 0], curve.x, curve.band[:, 1], line_width=2.2)
        bands.glyph.tags = [{"line_color": "first"}]
    means = plot.scatter(curve.x, curve.mean, size=9, line_color=None)
    means.glyph.tags = [{"fill_color": "first"}]
    name_axis(plot.xaxis[0], curve.labels)
    plot.xaxis.major_label_orientation = "vertical" if sum(map(len, curve.labels)) > LONGEST_LINE else "horizontal"
    plot.x_range.start, plot.x_range.end = -0.6, len(curve.x) - 0.4


def _pointed_at(plot: Any, curve: Curve) -> Any:
    """Unseen dots on the curve, which say where they are."""
    told = [_point_told(curve, place) for place in range(len(curve.x))]
    source = ColumnDataSource({"x": curve.x, "y": curve.mean, "tip": told})
    return plot.scatter("x", "y", source=source, size=12, fill_alpha=0.0, line_color=None, name="dots")


def _point_told(curve: Curve, place: int) -> str:
    value = curve.labels[place] if curve.labels else number(curve.x[place])
    low, high = curve.band[place]
    band = f"\n95 % between {number(low)} and {number(high)}" if np.isfinite(low) else ""
    return f"{shortened(curve.name)} = {value}\n{signed(f'{curve.mean[place]:+z.3g}')} beside the average{band}"


def pair_matrix(found: Interactions, target: str) -> dict[str, Any]:
    """The shares of pairs as cells, the darker the larger; those that are found have their number."""
    shown = found.by_largest_share[:MOST_IN_MATRIX]
    names = [found.names[j] for j in shown]
    rows, columns = np.tril_indices(len(shown), -1)
    share = found.share[shown[rows], shown[columns]]
    is_found = found.is_found[shown[rows], shown[columns]]
    strength = np.clip(share / max(float(share.max()), LEAST_DARKEST), 0.0, 1.0)
    tips = [
        f"{shortened(names[i])} with {shortened(names[j])}: {'act together' if each else 'not found'}\n"
        f"{percent(part)} of the variance needs both, evidence {number(found.evidence[shown[i], shown[j]])}"
        for i, j, part, each in zip(rows, columns, share, is_found, strict=True)
    ]
    plot = frame(CELL_HEIGHT * (len(shown) - 1) + MATRIX_FRAME, "")
    plot.grid.tags, plot.grid.grid_line_color = [], None
    name_strips(plot, names[1:])
    name_axis(plot.xaxis[0], names[:-1])
    plot.xaxis.major_label_orientation = "vertical" if sum(map(len, names[:-1])) > LONGEST_LINE else "horizontal"
    plot.x_range.start, plot.x_range.end = -0.6, len(shown) - 1.4
    source = ColumnDataSource({"x": columns, "y": rows - 1, "strength": strength, "tip": tips})
    paper = plot.rect("x", "y", 0.94, 0.94, source=source, fill_alpha=0.5, line_color=None)
    paper.glyph.tags = [{"fill_color": "rule"}]
    cells = plot.rect("x", "y", 0.94, 0.94, source=source, fill_alpha="strength", line_color=None, name="dots")
    cells.glyph.tags = [{"fill_color": "first"}]
    for role, those in (("paper", is_found & (strength > DARK)), ("ink", is_found & (strength <= DARK))):
        words = plot.text(
            columns[those], (rows - 1)[those], [percent(part) for part in share[those]], text_align="center",
            text_baseline="middle", text_font={"value": FONT}, text_font_size="12px",
        )  # fmt: skip
        words.glyph.tags = [{"text_color": role}]
    plot.add_tools(HoverTool(tooltips=None, renderers=[cells]))
    return item(plot, target)


def pair_surface(surface: Surface, target: str) -> dict[str, Any]:
    """The average prediction with two columns set: contours and the rows, or a line for each level of a category."""
    if surface.x_labels or surface.y_labels:
        return _lines_of_levels(surface, target)
    plot = frame(SURFACE_HEIGHT, shortened(surface.names[0]), shortened(surface.names[1]))
    plot.grid.tags, plot.grid.grid_line_color = [], None
    low, high = float(surface.mean.min()), float(surface.mean.max())
    levels = np.linspace(low, high if high > low else low + 1.0, STEPS + 1)
    z = np.clip(surface.mean.T, levels[0], levels[-1] - 1e-9 * (levels[-1] - levels[0]))
    colours = ramp(STEPS)
    drawn = plot.contour(surface.x, surface.y, z, levels=levels, fill_color=colours, line_color="white", line_width=0.6)
    drawn.line_renderer.glyph.tags = [{"line_color": "paper"}]
    bar = ColorBar(
        color_mapper=LinearColorMapper(palette=colours, low=float(levels[0]), high=float(levels[-1])), width=10,
        padding=6, major_label_text_font=FONT, major_label_text_font_size="12px", background_fill_color=None,
        bar_line_color=None, major_tick_line_color=None, tags=[{"major_label_text_color": "ink"}],
    )  # fmt: skip
    plot.add_layout(bar, "right")
    _draw_rows(plot, surface)
    plot.x_range.start, plot.x_range.end = float(surface.x[0]), float(surface.x[-1])
    plot.y_range.start, plot.y_range.end = float(surface.y[0]), float(surface.y[-1])
    return item(plot, target)


def _draw_rows(plot: Any, surface: Surface) -> None:
    if surface.x_rows is None or surface.y_rows is None:
        return
    first, second = (shortened(name) for name in surface.names)
    tips = [
        f"A row\n{first} = {number(x)}\n{second} = {number(y)}"
        for x, y in zip(surface.x_rows, surface.y_rows, strict=True)
    ]
    source = ColumnDataSource({"x": surface.x_rows, "y": surface.y_rows, "tip": tips})
    dots = plot.scatter(
        "x", "y", source=source, size=4.5, fill_color="#15181b", fill_alpha=0.6, line_color=None, name="dots"
    )
    plot.add_tools(HoverTool(tooltips=None, renderers=[dots]))


def _lines_of_levels(surface: Surface, target: str) -> dict[str, Any]:
    """Along the number, or the other category, a line for each level."""
    by_second = bool(surface.y_labels)
    labels, lines = (surface.y_labels, surface.mean.T) if by_second else (surface.x_labels, surface.mean)
    along, ticks = (surface.x, surface.x_labels) if by_second else (surface.y, ())
    name, other = surface.names if by_second else surface.names[::-1]
    plot = frame(SURFACE_HEIGHT, shortened(name))
    if ticks:
        name_axis(plot.xaxis[0], ticks)
    items, points, tips = [], [], []
    for label, line, colour in zip(labels, lines, ramp(max(len(labels), 2)), strict=False):
        drawn = plot.line(along, line, line_width=2.4, line_color=colour)
        items.append(LegendItem(label=shortened(label), renderers=[drawn]))
        points += list(zip(along, line, strict=True))
        tips += [f"{shortened(other)} = {shortened(label)}\n{number(value)} on average" for value in line]
    x, y = np.array(points).T
    source = ColumnDataSource({"x": x, "y": y, "tip": tips})
    dots = plot.scatter("x", "y", source=source, size=7, fill_alpha=0.0, line_color=None, name="dots")
    plot.add_tools(HoverTool(tooltips=None, renderers=[dots]))
    legend = Legend(
        items=items, title=shortened(other), orientation="horizontal", label_text_font=FONT, title_text_font=FONT,
        background_fill_color=None, border_line_color=None, title_text_font_style="normal", ncols=4, location="left",
        tags=[{"label_text_color": "ink", "title_text_color": "muted"}],
    )  # fmt: skip
    plot.add_layout(legend, "above")
    return item(plot, target)
