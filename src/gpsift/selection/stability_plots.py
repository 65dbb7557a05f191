"""Pictures of a stability analysis, as in the paper: entropy by position, and jittered ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpsift.relevance.plots import BLUE, ORANGE, new_axes, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gpsift.selection.record_stability import Stability

MOST_FEATURES = 40


def entropy_by_position(stability: Stability, *, ax: Axes | None = None) -> Axes:
    """Relative entropy of which feature stands at each position of the ranking."""
    ax = new_axes(6.4, 3.6) if ax is None else ax
    positions = np.arange(1, stability.n_features + 1)
    ax.plot(positions, stability.entropy, "o-", color=BLUE, markersize=4, linewidth=1, label=stability.measure)
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel("position in the ranking")
    ax.set_ylabel("entropy / log p")
    ax.set_title(f"{stability.measure}, {stability.n_splits} samples of {stability.n_rows} rows", fontsize="medium")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def jittered_ranks(stability: Stability, *, ax: Axes | None = None) -> Axes:
    """The rank of each feature in every sample, a dot each, features by mean rank."""
    ranks = stability.ranks
    shown = stability.order[:MOST_FEATURES]
    ax = new_axes(6.4, 1.4 + 0.28 * len(shown)) if ax is None else ax
    # The jitter is decoration, so its seed is fixed: the same record gives the same picture.
    jitter = np.random.default_rng(0).uniform(-0.3, 0.3, size=(2, *ranks.shape))
    for place, j in enumerate(shown):
        ax.scatter(ranks[:, j] + jitter[0, :, j], place + jitter[1, :, j], s=8, color=BLUE, alpha=0.5, linewidths=0)
        ax.plot(stability.mean_ranks[j], place, "|", color=ORANGE, markersize=12, markeredgewidth=2)
    ax.set_yticks(np.arange(len(shown)), [short(stability.names[j]) for j in shown])
    ax.set_ylim(len(shown) - 0.5, -0.5)
    ax.set_xlim(0.5, stability.n_features + 0.5)
    ax.set_xlabel("rank in each sample (mean marked)")
    hidden = stability.n_features > len(shown)
    part = f", the first {len(shown)} of {stability.n_features} features" if hidden else ""
    ax.set_title(
        f"{stability.measure}, {stability.n_splits} samples of {stability.n_rows} rows{part}", fontsize="medium"
    )
    ax.spines[["top", "right"]].set_visible(False)
    return ax
