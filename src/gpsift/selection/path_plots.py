"""Pictures of a path: how well submodels predict, by size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpsift._utils.text import percent
from gpsift.relevance.plots import BLUE, ORANGE, new_axes, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gpsift.selection.record_path import Path
    from gpsift.selection.record_projection import ProjectionPath

GREY = "#666666"
# The largest number of sizes with names below them; more would run into one another.
MOST_NAMES = 40
STATS = {"elpd": "elpd, sum of log predictive densities", "mlpd": "mlpd, mean log predictive density"}


def path_curve(path: Path, stat: str = "elpd", *, suggested: int | None = None, ax: Axes | None = None) -> Axes:
    """A statistic by size with one standard error, the reference as a dashed line, the suggested size marked."""
    if stat not in (*STATS, *path.metrics):
        raise ValueError(f"`stat` must be one of {', '.join((*STATS, *path.metrics))}, got {stat!r}.")
    ax = _axes_for(path) if ax is None else ax
    values, errors, reference = _curve(path, stat)
    ax.axhline(reference, color=GREY, linestyle="--", linewidth=1, label=f"reference, all {path.n_units}")
    if errors is None:
        ax.plot(path.sizes, values, "o-", color=BLUE, markersize=4, linewidth=1)
    else:
        # The error of the difference to the reference, not of the sum: the two share the same rows.
        ax.errorbar(path.sizes, values, yerr=errors, fmt="o-", color=BLUE, markersize=4, linewidth=1, capsize=2)
    if suggested is not None:
        ax.axvline(suggested, color=ORANGE, linewidth=1.2, label=f"suggested size {suggested}")
    shares = "; in brackets the share of folds that have it by then" if path.fold_orders else ""
    _name_sizes(ax, path.sizes, [_entered(path, int(size)) for size in path.sizes], shares)
    ax.set_ylabel(STATS.get(stat, stat))
    ax.set_title(
        f"Order by {path.measure}; {path.scheme}{'' if path.validated else ' (optimistic)'}", fontsize="medium"
    )
    ax.legend(frameon=False, loc="best")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def projection_curve(path: ProjectionPath, *, ax: Axes | None = None) -> Axes:
    """The divergence from the reference by size, with the share that is explained on the right."""
    ax = _axes_for(path) if ax is None else ax
    ax.plot(path.sizes, path.kl, "o-", color=BLUE, markersize=4, linewidth=1)
    ax.axhline(0.0, color=GREY, linestyle="--", linewidth=1, label="reference")
    if path.kl[0] > 0:
        total = float(path.kl[0])
        there_and_back = (lambda kl: 1.0 - kl / total, lambda share: total * (1.0 - share))
        ax.secondary_yaxis("right", functions=there_and_back).set_ylabel("explained")
    _name_sizes(ax, path.sizes, ["", *map(short, path.order)])
    ax.set_ylabel("KL divergence from the reference, nats")
    ax.set_title("Forward search by projection", fontsize="medium")
    ax.legend(frameon=False, loc="best")
    ax.spines[["top"]].set_visible(False)
    return ax


def _axes_for(path: Path | ProjectionPath) -> Axes:
    return new_axes(min(16.0, max(6.4, 1.6 + 0.42 * len(path.sizes))), 4.6)


def _curve(path: Path, stat: str) -> tuple[np.ndarray, np.ndarray | None, float]:
    """Values by size, their errors beside the reference, and the reference's own value."""
    if stat == "elpd":
        return path.elpd, path.diff_se, path.reference_elpd
    if stat == "mlpd":
        return path.mlpd, path.diff_se / path.n_rows, path.reference_elpd / path.n_rows
    return path.metrics[stat], None, path.reference_metrics[stat]


def _entered(path: Path, size: int) -> str:
    """The unit that makes a submodel this large, with the share of the folds that have it by then."""
    if size == 0:
        return ""
    unit = path.order[size - 1]
    return short(path.names[unit]) + (f" ({percent(path.proportions[size, unit])})" if path.fold_orders else "")


def _name_sizes(ax: Axes, sizes: np.ndarray, entered: Sequence[str], more: str = "") -> None:
    """Under each size its number and, where there is room, what entered."""
    named = len(sizes) <= MOST_NAMES
    labels = [f"{name}  {size}" if named and name else str(size) for size, name in zip(sizes, entered, strict=True)]
    ax.set_xticks(sizes, labels, rotation=90 if named else 0, fontsize="small")
    ax.set_xlabel(f"size, and what entered{more}", fontsize="small")
