"""Pictures of a path: how well submodels predict, by size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpsift.plotting.plots import BLUE, ORANGE, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gpsift.results import Path, ProjectionPath

GREY = "#666666"
# The largest number of sizes with names below them; more would run into one another.
MOST_NAMES = 40
STATS = {"elpd": "elpd, sum of log predictive densities", "mlpd": "mlpd, mean log predictive density"}


def path_curve(path: Path, stat: str = "elpd", *, suggested: int | None = None, ax: Axes | None = None) -> Axes:
    """A statistic by size with one standard error, the reference as a dashed line, the suggested size marked."""
    import matplotlib.pyplot as plt

    if stat not in (*STATS, *path.metrics):
        raise ValueError(f"`stat` must be one of {', '.join((*STATS, *path.metrics))}, got {stat!r}.")
    if ax is None:
        width = min(16.0, max(6.4, 1.6 + 0.42 * len(path.sizes)))
        _, ax = plt.subplots(figsize=(width, 4.6), layout="constrained")
    values, errors, reference = _curve(path, stat)
    ax.axhline(reference, color=GREY, linestyle="--", linewidth=1, label=f"reference, all {path.n_units}")
    if errors is None:
        ax.plot(path.sizes, values, "o-", color=BLUE, markersize=4, linewidth=1)
    else:
        # The error of the difference to the reference, not of the sum: the two share the same rows.
        ax.errorbar(path.sizes, values, yerr=errors, fmt="o-", color=BLUE, markersize=4, linewidth=1, capsize=2)
    if suggested is not None:
        ax.axvline(suggested, color=ORANGE, linewidth=1.2, label=f"suggested size {suggested}")
    _name_sizes(ax, path)
    ax.set_ylabel(STATS.get(stat, stat))
    ax.set_title(
        f"Order by {path.measure}; {path.scheme}{'' if path.validated else ' (optimistic)'}", fontsize="medium"
    )
    ax.legend(frameon=False, loc="best")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def projection_curve(path: ProjectionPath, *, ax: Axes | None = None) -> Axes:
    """The divergence from the reference by size, with the share that is explained on the right."""
    import matplotlib.pyplot as plt

    if ax is None:
        width = min(16.0, max(6.4, 1.6 + 0.42 * len(path.sizes)))
        _, ax = plt.subplots(figsize=(width, 4.6), layout="constrained")
    ax.plot(path.sizes, path.kl, "o-", color=BLUE, markersize=4, linewidth=1)
    ax.axhline(0.0, color=GREY, linestyle="--", linewidth=1, label="reference")
    if path.kl[0] > 0:
        total = float(path.kl[0])

        def explained(kl: Any) -> Any:
            return 1.0 - kl / total

        def divergence(share: Any) -> Any:
            return total * (1.0 - share)

        right = ax.secondary_yaxis("right", functions=(explained, divergence))
        right.set_ylabel("explained")
    named = len(path.sizes) <= MOST_NAMES
    labels = ["0", *(f"{short(name)}  {size}" if named else str(size) for size, name in enumerate(path.order, 1))]
    ax.set_xticks(path.sizes, labels, rotation=90 if named else 0, fontsize="small")
    ax.set_xlabel("size, and what entered", fontsize="small")
    ax.set_ylabel("KL divergence from the reference, nats")
    ax.set_title("Forward search by projection", fontsize="medium")
    ax.legend(frameon=False, loc="best")
    ax.spines[["top"]].set_visible(False)
    return ax


def _curve(path: Path, stat: str) -> tuple[np.ndarray, np.ndarray | None, float]:
    """Values by size, their errors beside the reference, and the reference's own value."""
    if stat == "elpd":
        return path.elpd, path.diff_se, path.reference_elpd
    if stat == "mlpd":
        return path.mlpd, path.diff_se / path.n_rows, path.reference_elpd / path.n_rows
    return path.metrics[stat], None, path.reference_metrics[stat]


def _name_sizes(ax: Axes, path: Path) -> None:
    """Under each size its number and the unit that entered, with the share of the folds that have it by then."""
    labels = []
    for size in path.sizes:
        label = str(size)
        if size and len(path.sizes) <= MOST_NAMES:
            unit = path.order[size - 1]
            label = f"{short(path.names[unit])}  {size}"
            if path.fold_orders:
                label = f"{short(path.names[unit])} ({path.proportions[size, unit]:.0%})  {size}"
        labels.append(label)
    ax.set_xticks(path.sizes, labels, rotation=90 if len(path.sizes) <= MOST_NAMES else 0, fontsize="small")
    shares = "; in brackets the share of folds that have it by then" if path.fold_orders else ""
    ax.set_xlabel(f"size, and what entered{shares}", fontsize="small")
