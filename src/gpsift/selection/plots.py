"""Draw a path, a projection, a stability analysis, a test of all features, or a power analysis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

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

GREY, FAINT = "#666666", "0.65"
DOTS: Mapping[str, Any] = {"color": BLUE, "markersize": 4, "linewidth": 1}
# With more sizes than this the names below them would overlap.
MOST_NAMES = 40
MOST_FEATURES = 40
# More curves than this cannot be distinguished; those that need the fewest rows are drawn.
MOST_CURVES = 10
SMALLEST_P = 1e-12
STATS = {"elpd": "elpd, sum of log predictive densities", "mlpd": "mlpd, mean log predictive density"}


def path_curve(path: Path, stat: str = "elpd", *, suggested: int | None = None, ax: Axes | None = None) -> Axes:
    """Draw a statistic by size with one standard error, the reference as a dashed line, the suggested size marked."""
    errors: np.ndarray | None = None
    if stat in path.metrics:
        values, reference = path.metrics[stat], path.reference_metrics[stat]
    elif stat in STATS:
        # The error of the difference to the reference, not of the sum: the two share the same rows.
        n = path.n_rows if stat == "mlpd" else 1
        values, reference, errors = getattr(path, stat), path.reference_elpd / n, path.diff_se / n
    else:
        raise ValueError(f"`stat` must be one of {', '.join((*STATS, *path.metrics))}, got {stat!r}.")
    ax = _size_axes(ax, path.sizes)
    ax.axhline(reference, color=GREY, linestyle="--", linewidth=1, label=f"reference, all {path.n_units}")
    if errors is None:
        ax.plot(path.sizes, values, "o-", **DOTS)
    else:
        ax.errorbar(path.sizes, values, yerr=errors, fmt="o-", capsize=2, **DOTS)
    if suggested is not None:
        ax.axvline(suggested, color=ORANGE, linewidth=1.2, label=f"suggested size {suggested}")
    added, note = list(map(short, path.added)), ""
    if path.fold_orders:
        note = "; in brackets the share of folds that have it by then"
        shares = [percent(path.proportions[size, path.order[size - 1]]) for size in path.sizes]
        added = [name and f"{name} ({share})" for name, share in zip(added, shares, strict=True)]
    _name_sizes(ax, path.sizes, added, note)
    ax.set_ylabel(STATS.get(stat, stat))
    optimistic = "" if path.validated else " (optimistic)"
    ax.set_title(f"Order by {path.measure}; {path.scheme}{optimistic}", fontsize="medium")
    ax.legend(frameon=False, loc="best")
    return ax


def projection_curve(path: ProjectionPath, *, ax: Axes | None = None) -> Axes:
    """Draw the divergence from the reference by size, with the share that is explained on the right."""
    ax = _size_axes(ax, path.sizes, hidden=["top"])
    ax.plot(path.sizes, path.kl, "o-", **DOTS)
    ax.axhline(0.0, color=GREY, linestyle="--", linewidth=1, label="reference")
    if path.kl[0] > 0:
        total = float(path.kl[0])
        to_share, to_kl = (lambda kl: 1.0 - kl / total, lambda share: total * (1.0 - share))
        ax.secondary_yaxis("right", functions=(to_share, to_kl)).set_ylabel("explained")
    _name_sizes(ax, path.sizes, ["", *map(short, path.order)])
    ax.set_ylabel("KL divergence from the reference, nats")
    ax.set_title("Forward search by projection", fontsize="medium")
    ax.legend(frameon=False, loc="best")
    return ax


def entropy_by_position(stability: Stability, *, ax: Axes | None = None) -> Axes:
    """Draw the relative entropy of the feature at each position of the ranking."""
    ax = _axes(ax, 6.4, 3.6)
    ax.plot(np.arange(1, stability.n_features + 1), stability.entropy, "o-", label=stability.measure, **DOTS)
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel("position in the ranking")
    ax.set_ylabel("entropy / log p")
    ax.set_title(f"{stability.measure}, {stability.n_splits} samples of {stability.n_rows} rows", fontsize="medium")
    return ax


def jittered_ranks(stability: Stability, *, ax: Axes | None = None) -> Axes:
    """Draw the rank of each feature in every sample, a dot each, features by mean rank."""
    ranks, shown = stability.ranks, stability.order[:MOST_FEATURES]
    ax = _feature_axes(ax, [stability.names[j] for j in shown])
    # The seed of the jitter is fixed, so that the same results give the same picture.
    jitter = np.random.default_rng(0).uniform(-0.3, 0.3, size=(2, *ranks.shape))
    for place, j in enumerate(shown):
        ax.scatter(ranks[:, j] + jitter[0, :, j], place + jitter[1, :, j], s=8, color=BLUE, alpha=0.5, linewidths=0)
        ax.plot(stability.mean_ranks[j], place, "|", color=ORANGE, markersize=12, markeredgewidth=2)
    ax.set_xlim(0.5, stability.n_features + 0.5)
    ax.set_xlabel("rank in each sample (mean marked)")
    hidden = stability.n_features > len(shown)
    part = f", the first {len(shown)} of {stability.n_features} features" if hidden else ""
    ax.set_title(
        f"{stability.measure}, {stability.n_splits} samples of {stability.n_rows} rows{part}", fontsize="medium"
    )
    return ax


def ordered_p_values(found: Discoveries, *, ax: Axes | None = None) -> Axes:
    """Draw a dot for each feature, the surest first, on a logarithmic axis."""
    shown = found.order[:MOST_FEATURES]
    places = np.arange(len(shown))
    ax = _feature_axes(ax, [found.names[j] for j in shown])
    # A feature is a discovery if its p-value, or that of one after it, is below this line.
    label = f"at most {percent_as_given(found.rate)} false"
    ax.plot(found.limits[: len(shown)], places, "-", color=ORANGE, linewidth=1, label=label)
    colours = [BLUE if found.found[j] else FAINT for j in shown]
    ax.scatter(np.maximum(found.p[shown], SMALLEST_P), places, s=24, color=colours, zorder=3)
    ax.set_xscale("log")
    ax.set_xlabel("p-value: how probable is this much if the feature does not matter")
    part = f", the first {len(shown)}" if found.n_features > len(shown) else ""
    ax.set_title(f"{int(found.found.sum())} of {found.n_features} features matter{part}", fontsize="medium")
    ax.legend(frameon=False, fontsize="small", loc="lower left")
    return ax


def power_curves(power: Power, *, ax: Axes | None = None) -> Axes:
    """Draw a curve for each feature over the number of rows, with bars of a standard error."""
    from matplotlib.ticker import NullLocator, PercentFormatter

    ax = _axes(ax, 6.4, 4.0)
    shown = power.order[:MOST_CURVES]
    # Curves are shifted a little, so that error bars at the same size do not hide each other.
    steps = np.linspace(-1.0, 1.0, len(shown)) if len(shown) > 1 else np.zeros(1)
    style: Mapping[str, Any] = {"marker": "o", "markersize": 4, "linewidth": 1.2, "elinewidth": 0.8}
    for number, (j, step) in enumerate(zip(shown, steps, strict=True)):
        rows, shares, errors = power.sizes * 1.015**step, power.shares[:, j], power.standard_errors[:, j]
        ax.errorbar(rows, shares, yerr=errors, color=f"C{number}", label=short(power.names[j]), **style)
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
    return ax


def _axes(ax: Axes | None, width: float, height: float, hidden: Sequence[str] = ("top", "right")) -> Axes:
    """Return the user's axes, or those of a new figure of this size, without some of the spines."""
    ax = new_axes(width, height) if ax is None else ax
    ax.spines[list(hidden)].set_visible(False)
    return ax


def _size_axes(ax: Axes | None, sizes: np.ndarray, hidden: Sequence[str] = ("top", "right")) -> Axes:
    """Return axes wide enough for names below the sizes."""
    return _axes(ax, min(16.0, max(6.4, 1.6 + 0.42 * len(sizes))), 4.6, hidden)


def _name_sizes(ax: Axes, sizes: np.ndarray, added: Sequence[str], note: str = "") -> None:
    """Label each size by its number and, where there is room, by the unit that was added."""
    named = len(sizes) <= MOST_NAMES
    labels = [f"{name}  {size}" if named and name else str(size) for size, name in zip(sizes, added, strict=True)]
    ax.set_xticks(sizes, labels, rotation=90 if named else 0, fontsize="small")
    ax.set_xlabel(f"size, and what entered{note}", fontsize="small")


def _feature_axes(ax: Axes | None, names: Sequence[str]) -> Axes:
    """Return axes with a line for each feature, the first at the top."""
    ax = _axes(ax, 6.4, 1.4 + 0.28 * len(names))
    ax.set_yticks(np.arange(len(names)), list(map(short, names)))
    ax.set_ylim(len(names) - 0.5, -0.5)
    return ax
