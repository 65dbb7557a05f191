"""The pictures of rows, sizes, samples and tests, by Bokeh."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, FixedTicker, HoverTool, LinearColorMapper, TapTool

from gpsift.app.analysis.rows import Rows
from gpsift.app.html.frames import FRAME_HEIGHT, across, frame, item, name_strips, ramp
from gpsift.app.html.words import count, number, shortened, signed
from gpsift.selection.conditional_test.discoveries import Discoveries
from gpsift.selection.record_path import Path
from gpsift.selection.record_stability import Stability

MOST_STRIPS = 20
STRIP_HEIGHT = 38
CURVE_HEIGHT = 340
BINS = 160
# A p-value below this is drawn here.
SMALLEST_P = 1e-12
# Half of the height that dots of one column may take, and the distance of two dots in the same bin.
HALF, APART = 0.4, 0.07


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
    plot = frame(STRIP_HEIGHT * shown + FRAME_HEIGHT, f"{score} at the row")
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
    means.glyph.tags = [{"line_color": "ink"}]
    plot.add_tools(HoverTool(tooltips=None, renderers=[dots]), TapTool(renderers=[dots]))
    return item(plot, target)


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
    plot = frame(CURVE_HEIGHT, "how many columns", "elpd, higher is better")
    values, errors = path.elpd, path.diff_se
    tips = [
        f"{_entered(path, place)}\nelpd {signed(f'{values[place]:z.1f}')}, beside all columns "
        f"{signed(f'{path.diff[place]:+z.1f} ± {errors[place]:z.1f}')}"
        for place in range(len(path.sizes))
    ]
    source = ColumnDataSource(
        {"x": path.sizes, "y": values, "low": values - errors, "high": values + errors, "tip": tips}
    )
    plot.add_layout(across(path.reference_elpd, "width", "muted", dash="dashed"))
    size = None if path.suggestion is None else path.suggestion.size
    if size is not None:
        plot.add_layout(across(size, "height", "accent"))
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
    return item(plot, target)


def rank_strips(stability: Stability, target: str) -> dict[str, Any]:
    """The rank of each column in every sample, a jittered dot each, columns by mean rank."""
    ranks = stability.ranks
    shown = stability.order[: min(MOST_STRIPS, stability.n_shown)]
    # The jitter is decoration, so its seed is fixed: the same record gives the same picture.
    jitter = np.random.default_rng(0).uniform(-1.0, 1.0, size=(2, len(shown), len(ranks)))
    x = ranks[:, shown].T + 0.28 * jitter[0]
    y = np.arange(len(shown))[:, None] + 0.28 * jitter[1]
    tips = [
        f"{shortened(stability.names[j])}: rank {ranks[sample, j]} in sample {sample + 1}"
        for j in shown
        for sample in range(len(ranks))
    ]
    plot = frame(28 * len(shown) + FRAME_HEIGHT, "rank in each sample")
    name_strips(plot, [stability.names[j] for j in shown])
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
    return item(plot, target)


def p_values(found: Discoveries, target: str) -> dict[str, Any]:
    """The p-value of each column, the surest on top, and the line that those of columns that matter are left of."""
    shown = found.order[:MOST_STRIPS]
    places = np.arange(len(shown))
    p = np.maximum(found.p[shown], SMALLEST_P)
    limits = found.limits[: len(shown)]
    plot = frame(28 * len(shown) + FRAME_HEIGHT, "p-value", x_scale="log")
    name_strips(plot, [found.names[j] for j in shown])
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
    return item(plot, target)


def _entered(path: Path, place: int) -> str:
    size = int(path.sizes[place])
    if size == 0:
        return "no columns"
    return f"{count(size, 'column')}, the last {shortened(path.names[path.order[size - 1]])}"
