"""A picture of two rankings: both scores of each feature."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpsift._utils.text import meaning
from gpsift.relevance.plots import BLUE, MAX_BARS, ORANGE, new_axes, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gpsift.app.analysis.record_comparison import Comparison

# How far the two are above and below the line of a feature, so that their intervals do not hide each other.
APART = 0.14


def pairs_of_scores(comparison: Comparison, *, ax: Axes | None = None) -> Axes:
    """Two dots for each feature, the most relevant on top, with their intervals."""
    shown = comparison.order[:MAX_BARS]
    ax = new_axes(6.4, 1.4 + 0.34 * len(shown)) if ax is None else ax
    places = np.arange(len(shown))
    sides = zip(comparison.labels, (BLUE, ORANGE), (-APART, APART), ("o", "D"), strict=True)
    for which, (label, colour, beside, marker) in enumerate(sides):
        at = places + beside
        low, high = comparison.intervals[which, shown].T
        ax.hlines(at, low, high, color=colour, linewidth=1.4, alpha=0.6)
        ax.scatter(comparison.scores[which, shown], at, color=colour, marker=marker, s=26, label=short(label))
    ax.set_yticks(places, [short(comparison.names[j]) for j in shown])
    ax.invert_yaxis()
    ax.set_xlim(left=0)
    ax.set_xlabel(f"{meaning(comparison.measure)}, {comparison.units}")
    ax.legend(frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
