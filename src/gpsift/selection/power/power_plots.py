"""A picture of how often each feature is found in studies of growing size, with the chance that is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpsift._utils.text import percent_as_given
from gpsift.relevance.plots import new_axes, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gpsift.selection.power.record_power import Power

# More curves than this cannot be told apart; those that are nearest to being found are drawn.
MOST_CURVES = 10


def power_curves(power: Power, *, ax: Axes | None = None) -> Axes:
    """A curve for each feature over the number of rows, with bars of a standard error."""
    from matplotlib.ticker import NullLocator, PercentFormatter

    ax = new_axes(6.4, 4.0) if ax is None else ax
    shown = power.order[:MOST_CURVES]
    # A little apart, so that bars of the same size do not hide each other.
    steps = np.linspace(-1.0, 1.0, len(shown)) if len(shown) > 1 else np.zeros(1)
    for number, (j, step) in enumerate(zip(shown, steps, strict=True)):
        ax.errorbar(
            power.sizes * 1.015**step,
            power.shares[:, j],
            yerr=power.standard_errors[:, j],
            color=f"C{number}",
            marker="o",
            markersize=4,
            linewidth=1.2,
            elinewidth=0.8,
            label=short(power.names[j]),
        )
    ax.axhline(power.chance, color="0.4", linewidth=1, linestyle="--")
    ax.axvline(power.n_rows, color="0.8", linewidth=1, zorder=0)
    ax.set_xscale("log")
    ax.set_xticks(power.sizes, [str(size) for size in power.sizes])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_ylim(-0.03, 1.05)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
    ax.set_xlabel(f"rows of a study (now {power.n_rows})")
    ax.set_ylabel("share of studies in which it is found")
    rate, chance = percent_as_given(power.rate), percent_as_given(power.chance)
    ax.set_title(f"Found at a rate of {rate}; dashed: {chance} of studies", fontsize="medium")
    ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    ax.spines[["top", "right"]].set_visible(False)
    return ax
