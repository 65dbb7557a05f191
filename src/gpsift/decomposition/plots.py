"""Draw effects: curves, pairs, shares of variance, and the attribution of a prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpsift._utils.text import percent
from gpsift.relevance.plots import BLUE, INK, ORANGE, new_axes, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gpsift.decomposition.effects import Curve, Effects
    from gpsift.decomposition.interactions import Interactions, Surface
    from gpsift.decomposition.shapley import Attribution
    from gpsift.decomposition.sobol import VarianceShares

# The largest number of features with their own part of the bar, and the smallest share that is written on its part.
MOST_PARTS = 9
LEAST_NAMED = 0.06
NOISE = "0.85"
# Features in a matrix of pairs, at most.
MOST_IN_MATRIX = 20
# The share of a pair with the darkest colour is at least this large.
LEAST_DARKEST = 0.02
# Panels of curves, and bars of a row, at most.
MOST_PANELS = 12
MOST_BARS = 12


def stacked_shares(shares: VarianceShares, *, ax: Axes | None = None) -> Axes:
    """Draw one bar of the variance of an observation: features by their Shapley shares, all others, noise."""
    import matplotlib as mpl

    ax = new_axes(7.2, 1.9) if ax is None else ax
    noise = shares.noise_share or 0.0
    order = [j for j in shares.order[:MOST_PARTS] if shares.shapley[j] > 0]
    parts = [(short(shares.names[j]), float(shares.shapley[j]) * (1.0 - noise)) for j in order]
    rest = 1.0 - noise - sum(width for _, width in parts) if shares.variance > 0 else 0.0
    colours = [*mpl.colormaps["viridis"](np.linspace(0.25, 0.95, max(len(parts), 1)))[: len(parts)], "0.7", NOISE]
    left = 0.0
    for (name, width), colour in zip([*parts, ("others", rest), ("noise", noise)], colours, strict=True):
        if width < 1e-3:
            continue
        ax.barh(0, width, left=left, color=colour, edgecolor="white", label=f"{name} {percent(width)}")
        if width >= LEAST_NAMED:
            ink = _text_colour(colour)
            ax.text(left + width / 2, 0, percent(width), ha="center", va="center", fontsize="small", color=ink)
        left += width
    ax.set_xlim(0, 1)
    ax.set_yticks([])
    ax.set_xlabel("share of the variance of an observation" if shares.noise_share is not None else "share of variance")
    ax.legend(frameon=False, fontsize="small", ncols=4, loc="lower left", bbox_to_anchor=(0.0, 1.0))
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax


def _text_colour(colour: Any) -> str:
    """Return the colour of text on a background: white on a dark one."""
    import matplotlib as mpl

    red, green, blue = mpl.colors.to_rgb(colour)
    return "white" if 0.3 * red + 0.6 * green + 0.1 * blue < 0.5 else INK


def pair_matrix(found: Interactions, *, ax: Axes | None = None) -> Axes:
    """Draw a matrix of the shares of all pairs, with numbers for those found; the largest shares come first."""
    from matplotlib.ticker import PercentFormatter

    shown = found.by_largest_share[:MOST_IN_MATRIX]
    share, is_found = found.share[np.ix_(shown, shown)], found.is_found[np.ix_(shown, shown)]
    size = 2.0 + 0.42 * len(shown)
    ax = new_axes(size + 0.8, size) if ax is None else ax
    below = np.tril(np.ones_like(share, dtype=bool), -1)
    darkest = max(float(share.max(initial=0.0)), LEAST_DARKEST)
    image = ax.imshow(np.where(below, share, np.nan)[1:, :-1], cmap="Blues", vmin=0, vmax=darkest)
    for row, column in np.argwhere(below & is_found):
        ax.text(
            column,
            row - 1,
            percent(share[row, column], 1),
            ha="center",
            va="center",
            fontsize="x-small",
            color="white" if share[row, column] > 0.6 * darkest else INK,
        )
    labels = [short(found.names[j]) for j in shown]
    ax.set_xticks(np.arange(len(shown) - 1), labels[:-1], rotation=90)
    ax.set_yticks(np.arange(len(shown) - 1), labels[1:])
    ax.spines[:].set_visible(False)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.7, label="share of variance that needs both")
    bar.ax.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
    n = len(found.found)
    ax.set_title("no pair found" if n == 0 else f"{n} {'pair' if n == 1 else 'pairs'} found", fontsize="medium")
    return ax


def pairs_with_surface(found: Interactions) -> Figure:
    """Draw the matrix of all pairs and, if a pair is found, the surface of the strongest beside it."""
    import matplotlib.pyplot as plt

    surface = found.strongest_surface
    size = 2.0 + 0.42 * min(len(found.by_largest_share), MOST_IN_MATRIX)
    widths = [size + 0.8, *([] if surface is None else [5.6])]
    figure, axes = plt.subplots(
        1, len(widths), figsize=(sum(widths), max(size, 4.6)), squeeze=False, width_ratios=widths, layout="constrained"
    )
    pair_matrix(found, ax=axes[0, 0])
    if surface is not None:
        pair_surface(found, surface, ax=axes[0, 1])
    return figure


def pair_surface(found: Interactions, surface: Surface, *, ax: Axes | None = None) -> Axes:
    """Draw the average prediction at two features: contours and the rows, or a line for each level of a category."""
    ax = new_axes(5.6, 4.6) if ax is None else ax
    if surface.x_labels or surface.y_labels:
        return _draw_lines_of_levels(ax, found, surface)
    filled = ax.contourf(surface.x, surface.y, surface.mean.T, levels=14, cmap="viridis")
    levels = np.asarray(filled.levels)[::2]
    lines = ax.contour(surface.x, surface.y, surface.mean.T, levels=levels, colors="white", linewidths=0.6)
    ax.clabel(lines, fontsize="x-small")
    if surface.x_rows is not None and surface.y_rows is not None:
        ax.scatter(surface.x_rows, surface.y_rows, s=6, color="black", alpha=0.45, linewidths=0)
    ax.set_xlim(surface.x[0], surface.x[-1])
    ax.set_ylim(surface.y[0], surface.y[-1])
    ax.set_xlabel(short(surface.names[0]))
    ax.set_ylabel(short(surface.names[1]))
    ax.figure.colorbar(filled, ax=ax, label=f"{found.mean_of}, average over rows")
    return ax


def _draw_lines_of_levels(ax: Axes, found: Interactions, surface: Surface) -> Axes:
    """Draw a line for each level of a category over the other feature."""
    by_y = bool(surface.y_labels)
    labels, lines = (surface.y_labels, surface.mean.T) if by_y else (surface.x_labels, surface.mean)
    along, ticks = (surface.x, surface.x_labels) if by_y else (surface.y, ())
    for label, line in zip(labels, lines, strict=True):
        ax.plot(along, line, "o-" if ticks else "-", label=short(label))
    if ticks:
        ax.set_xticks(along, [short(tick) for tick in ticks])
    name, other = surface.names if by_y else surface.names[::-1]
    ax.set_xlabel(short(name))
    ax.set_ylabel(f"{found.mean_of}, average over rows")
    ax.legend(title=short(other), frameon=False, fontsize="small")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def curve_panels(effects: Effects) -> Figure:
    """Draw a panel for the curve of each of the first features, all with the same vertical axis."""
    import matplotlib.pyplot as plt

    shown = effects.curves[:MOST_PANELS]
    columns = max(1, min(3, len(shown)))
    rows = max(1, -(-len(shown) // columns))
    figure, axes = plt.subplots(
        rows, columns, figsize=(3.2 * columns, 2.7 * rows), sharey=True, squeeze=False, layout="constrained"
    )
    for ax, curve in zip(axes.flat, shown, strict=False):
        (_draw_levels if curve.labels else _draw_curve)(ax, curve)
        ax.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
        ax.set_xlabel(short(curve.name))
        ax.spines[["top", "right"]].set_visible(False)
    for ax in axes.flat[len(shown) :]:
        ax.set_visible(False)
    figure.supylabel(f"{effects.mean_of}\nless its average", fontsize="medium")
    return figure


def _draw_curve(ax: Axes, curve: Curve) -> None:
    ax.plot(curve.x, curve.individual.T, color="0.6", linewidth=0.5, alpha=0.5)
    ax.fill_between(curve.x, *curve.band.T, color=BLUE, alpha=0.25, linewidth=0)
    ax.plot(curve.x, curve.mean, ":", color=BLUE, linewidth=1.2)
    ax.plot(curve.x, np.where(curve.is_supported, curve.mean, np.nan), color=BLUE, linewidth=1.8)
    low, high = curve.x[0], curve.x[-1]
    inside = curve.rug[(curve.rug >= low) & (curve.rug <= high)]
    ax.plot(inside, np.zeros(len(inside)), "|", color=INK, markersize=5, alpha=0.3, transform=ax.get_xaxis_transform())


def _draw_levels(ax: Axes, curve: Curve) -> None:
    jitter = np.linspace(-0.15, 0.15, max(1, len(curve.individual)))
    for level, place in enumerate(curve.x):
        ax.plot(place + jitter, curve.individual[:, level], ".", color="0.6", markersize=2, alpha=0.6)
    low, high = curve.band.T
    ax.vlines(curve.x, low, high, color=BLUE, linewidth=2)
    ax.plot(curve.x, curve.mean, "o", color=BLUE, markersize=5)
    turned = sum(map(len, curve.labels)) > 20
    ax.set_xticks(curve.x, [short(label) for label in curve.labels], rotation=90 if turned else 0)
    ax.margins(x=0.15)


def attribution_bars(found: Attribution, row: int, *, ax: Axes | None = None) -> Axes:
    """Draw bars of the contribution of each feature to a prediction, with one standard deviation."""
    values, sd = found.values[row], found.sd[row]
    shown = np.argsort(-np.abs(values), kind="stable")[:MOST_BARS]
    places = np.arange(len(shown))
    ax = new_axes(6.4, 1.4 + 0.3 * len(shown)) if ax is None else ax
    colours = [BLUE if values[j] >= 0 else ORANGE for j in shown]
    ax.barh(places, values[shown], xerr=sd[shown], color=colours, ecolor=INK, error_kw={"linewidth": 1})
    ax.set_yticks(places, [f"{short(found.names[j])} = {found.points[row, j]:.4g}" for j in shown])
    ax.invert_yaxis()
    ax.axvline(0.0, color=INK, linewidth=0.8)
    ax.set_xlabel(f"adds to {found.mean_of}")
    ax.set_title(f"average {found.average:.4g}, prediction {found.prediction[row]:.4g}", fontsize="medium")
    ax.spines[["top", "right"]].set_visible(False)
    return ax
