"""Plots of a path, a projection, a stability analysis, a test of all features, and a power analysis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpsift._utils.text import percent, percent_as_given
from gpsift.relevance.plots import BLUE, ORANGE, new_axes, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gpsift.selection.conditional_test.discover import Discoveries
    from gpsift.selection.path import Path
    from gpsift.selection.power_analysis import Power
    from gpsift.selection.projection import ProjectionPath
    from gpsift.selection.stability import Stability

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
    """The unit that entered at this size, with the share of the folds that have it by then."""
    if size == 0:
        return ""
    unit = path.order[size - 1]
    return short(path.names[unit]) + (f" ({percent(path.proportions[size, unit])})" if path.fold_orders else "")


def _name_sizes(ax: Axes, sizes: np.ndarray, entered: Sequence[str], more: str = "") -> None:
    """Label each size by its number and, where there is room, by the unit that entered."""
    named = len(sizes) <= MOST_NAMES
    labels = [f"{name}  {size}" if named and name else str(size) for size, name in zip(sizes, entered, strict=True)]
    ax.set_xticks(sizes, labels, rotation=90 if named else 0, fontsize="small")
    ax.set_xlabel(f"size, and what entered{more}", fontsize="small")


MOST_FEATURES = 40


def entropy_by_position(stability: Stability, *, ax: Axes | None = None) -> Axes:
    """Relative entropy of the feature at each position of the ranking."""
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
