"""Draw a ranking with Matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpsift._utils.text import NOT_USED, meaning, others_not_used, percent, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gpsift.relevance.ranking import Ranking

BLUE, ORANGE, INK = "#31688e", "#e08a2c", "#222222"
TERM_COLOURS = {"mean": BLUE, "variance": ORANGE}
MAX_BARS = 30
# Points above the axes.
ROOM_FOR_LEGEND = 22.0
MAX_PANELS = 9
LABEL_LENGTH = 28


def relevance_bars(ranking: Ranking, *, features: Sequence[int | str] | None = None, ax: Axes | None = None) -> Axes:
    """Draw horizontal bars of the scores, the most relevant on top, divided into mean and variance terms.

    Where there are draws, bars are strengths, with lines for 90 % intervals. Labels of VAR scores are their shares of
    variance.
    """
    chosen = _choose(ranking, features, min(MAX_BARS, ranking.n_shown))
    ax = new_axes(6.4, 1.2 + 0.3 * len(chosen)) if ax is None else ax
    places = np.arange(len(chosen))
    left = np.zeros(len(chosen))
    has_draws = ranking.draws is not None
    shares = {} if has_draws else ranking.shares
    for term, share in (shares or {"": np.ones_like(ranking.scores)}).items():
        width = (ranking.shown * share)[chosen]
        bars = ax.barh(
            places, width, left=left, color=TERM_COLOURS.get(term, BLUE), label=f"moves the {term}" if term else None
        )
        left += width
    if ranking.effect_shares is not None and not has_draws:
        ax.bar_label(bars, [percent(share) for share in ranking.effect_shares[chosen]], padding=3)
        ax.margins(x=0.12)
    if has_draws:
        ax.hlines(places, *ranking.interval()[chosen].T, color=INK, linewidth=1.5, label="90 % interval")
    labels = [short(ranking.names[j]) + ("" if ranking.is_used(j) else f" ({NOT_USED})") for j in chosen]
    ax.set_yticks(places, labels)
    ax.invert_yaxis()
    ax.set_xlim(left=0)
    ax.set_xlabel(f"{meaning(ranking.measure)}, {ranking.units}")
    title = ranking.measure
    if features is None and len(chosen) == ranking.n_shown < len(ranking.names):
        title += f" ({others_not_used(len(ranking.names) - len(chosen))})"
    elif features is None and len(chosen) < len(ranking.names):
        title += f" (the first {len(chosen)} of {len(ranking.names)})"
    has_legend = bool(shares) or has_draws
    ax.set_title(title, pad=ROOM_FOR_LEGEND if has_legend else None)
    if has_legend:  # between title and bars, because long bars fill all corners
        ax.legend(
            frameon=False, fontsize="small", ncols=3, columnspacing=1.0, loc="lower right", bbox_to_anchor=(1.0, 0.98)
        )
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def pointwise_relevance(
    ranking: Ranking, *, features: Sequence[int | str] | None = None, ax: Axes | None = None
) -> Figure | Axes:
    """Draw the relevance at every point against the feature's value there, a panel for each feature."""
    import matplotlib.pyplot as plt

    if ranking.pointwise is None:
        raise ValueError(f"{ranking.measure} has no pointwise values; use KL() or VAR().")
    n_used = len(ranking.names) if ranking.used is None else int(ranking.used.sum())
    chosen = _choose(ranking, features, 1 if ax is not None else min(MAX_PANELS, max(n_used, 1)))
    top = 1.05 * float(ranking.pointwise[:, chosen].max()) or 1.0
    if ax is not None:
        if len(chosen) != 1:
            raise ValueError(f"`ax` takes one feature, got {len(chosen)}. Leave `ax` out to get a panel for each.")
        _draw_points(ax, ranking, chosen[0])
        ax.set_ylim(0, top)
        ax.set_ylabel(f"{ranking.measure}")
        return ax
    columns = min(3, len(chosen))
    rows = -(-len(chosen) // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(3.2 * columns, 2.6 * rows), sharey=True, squeeze=False, layout="constrained"
    )
    for panel, j in zip(axes.flat, chosen, strict=False):
        _draw_points(panel, ranking, j)
    for panel in axes.flat[len(chosen) :]:
        panel.set_visible(False)
    axes[0, 0].set_ylim(0, top)  # all panels share this axis
    figure.supylabel(f"{ranking.measure} at each point")
    return figure


def _draw_points(ax: Axes, ranking: Ranking, j: int) -> None:
    assert ranking.pointwise is not None
    ax.scatter(ranking.points[:, j], ranking.pointwise[:, j], s=9, color=BLUE, alpha=0.6, linewidths=0)
    ax.axhline(ranking.scores[j], color=ORANGE, linewidth=1)
    members = ranking.details.get("groups", {}).get(ranking.names[j], ())
    ax.set_xlabel(short(ranking.names[j]) + (" (first principal coordinate)" if len(members) > 1 else ""))
    ax.spines[["top", "right"]].set_visible(False)


def _choose(ranking: Ranking, features: Sequence[int | str] | None, most: int) -> list[int]:
    """Return the indices of the requested features, or of the most relevant ones."""
    if features is None:
        return [int(j) for j in ranking.order[:most]]
    chosen = []
    for feature in features:
        j = ranking.names.index(feature) if feature in ranking.names else feature
        if not isinstance(j, int | np.integer) or not 0 <= j < len(ranking.names):
            raise ValueError(f"There is no feature {feature!r}; the features are {', '.join(ranking.names[:8])} ...")
        chosen.append(int(j))
    return chosen


def new_axes(width: float, height: float) -> Axes:
    """Return the axes of a new figure of this size in inches."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def short(name: str) -> str:
    """Shorten a name to fit beside an axis."""
    return shorten(name, LABEL_LENGTH)
