"""A picture of a test of many features: their p-values in order, and the line that discoveries are below."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpsift._utils.text import percent_as_given
from gpsift.relevance.plots import BLUE, ORANGE, new_axes, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gpsift.selection.conditional_test.discoveries import Discoveries

MOST_FEATURES = 40
SMALLEST = 1e-12
FAINT = "0.65"


def ordered_p_values(found: Discoveries, *, ax: Axes | None = None) -> Axes:
    """A dot for each feature, the surest first, on a logarithmic axis."""
    shown = found.order[:MOST_FEATURES]
    places = np.arange(len(shown))
    ax = new_axes(6.4, 1.4 + 0.28 * len(shown)) if ax is None else ax
    # A feature is a discovery if its p-value, or that of one after it, is below this line.
    ax.plot(
        found.limits[: len(shown)],
        places,
        "-",
        color=ORANGE,
        linewidth=1,
        label=f"at most {percent_as_given(found.rate)} false",
    )
    colours = [BLUE if found.found[j] else FAINT for j in shown]
    ax.scatter(np.maximum(found.p[shown], SMALLEST), places, s=24, color=colours, zorder=3)
    ax.set_xscale("log")
    ax.set_yticks(places, [short(found.names[j]) for j in shown])
    ax.set_ylim(len(shown) - 0.5, -0.5)
    ax.set_xlabel("p-value: how probable is this much if the feature does not matter")
    hidden = found.n_features > len(shown)
    part = f", the first {len(shown)}" if hidden else ""
    ax.set_title(f"{int(found.found.sum())} of {found.n_features} features matter{part}", fontsize="medium")
    ax.legend(frameon=False, fontsize="small", loc="lower left")
    ax.spines[["top", "right"]].set_visible(False)
    return ax
