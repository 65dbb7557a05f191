"""Draw the figures of the paper in its style: blue ARD, red KL, cyan VAR, the full model dashed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from gpsift.paper.datasets.paper_sets import RECIPES
from gpsift.paper.datasets.toys import FREQUENCIES, sine_amplitudes
from gpsift.paper.reproduce.claims import plain_interval, position_entropies
from gpsift.paper.reproduce.experiments import COST_MIDDLE, LAWS, METHODS, Tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {"ARD": "#1f4fd8", "KL": "#d62728", "VAR": "#17becf", "RATE": "#8c8c8c", "projection": "#2ca02c"}
TITLES = {name: recipe.title for name, recipe in RECIPES.items()}
METRIC_LABELS = {"mlpd": "MLPD", "mse": "MSE"}
FORMATS = ("png", "svg")


def _new_figure(width: float, height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """Return a figure without a window, and its axes, (rows, columns)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write a figure as PNG and SVG."""
    for suffix in FORMATS:
        figure.savefig(folder / f"{name}.{suffix}", dpi=150)


def draw_toy_functions() -> Figure:
    """Draw figure 1: the eight latent functions for both input laws."""
    figure, axes = _new_figure(8, 3.6, 2, 4, sharex=True, sharey=True)
    x = np.linspace(-1, 1, 201)
    for law, colour in zip(LAWS, ("black", COLOURS["KL"]), strict=True):
        for j, (ax, amplitude) in enumerate(zip(axes.flat, sine_amplitudes(law), strict=True)):
            ax.plot(x, amplitude * np.sin(FREQUENCIES[j] * x), color=colour, label=f"{law} inputs")
            ax.set_title(f"$f_{j + 1}$", fontsize="medium")
            ax.spines[:].set_visible(True)
    axes[0, 0].legend(frameon=False, fontsize="x-small")
    return figure


def draw_toy_scores(toys: pd.DataFrame, p: int) -> Figure:
    """Draw figure 2, and with 50 features the supplement's last one: average scores relative to the largest."""
    figure, axes = _new_figure(5.2 if p == 8 else 8, 5.2, 2, 1, sharex=True)
    for ax, law in zip(axes.flat, LAWS, strict=True):
        chosen = toys[(toys.law == law) & (toys.p == p)]
        for method in METHODS:
            wide = chosen[chosen.method == method].pivot_table(index="data_set", columns="feature", values="score")
            _draw_means(ax, wide / wide.mean().max(), method)
        ax.set_title(f"{law} inputs, {chosen.data_set.nunique()} data sets", fontsize="medium")
        ax.set_ylabel("relative relevance")
        ax.set_ylim(-0.02, 1.05)
    axes[0, 0].legend(frameon=False)
    many = "input; of these 50 only the eight marked ones matter, from nearly linear to a full wave"
    ax.set_xlabel("input, from nearly linear to a full wave" if p == 8 else many)
    if p != 8:
        ax.set_xticks(sorted(chosen[chosen.relevant].feature.unique()))
    return figure


def draw_delta_scores(deltas: pd.DataFrame) -> Figure:
    """Draw the supplement's figure of KL scores by the size of the step."""
    figure, ((ax,),) = _new_figure(5.2, 3.6)
    means = deltas.groupby(["delta", "feature"])["score"].mean().unstack("feature")
    for feature in means.columns:
        ax.plot(means.index, means[feature] / means.to_numpy().max(), "o-", markersize=3, lw=1, label=f"{feature}")
    ax.set_xscale("log")
    ax.set_xlabel("step")
    ax.set_ylabel("relative KL relevance")
    ax.legend(frameon=False, ncols=4, fontsize="small", title="input")
    ax.set_ylim(0, 1.05)
    return figure


def draw_pointwise(points: pd.DataFrame) -> Figure:
    """Draw figure 6: pointwise relevance of inputs 1 and 8."""
    figure, (axes,) = _new_figure(7, 3, 1, 2, sharey=True)
    for ax, feature in zip(axes, (1, 8), strict=True):
        part = points[points.feature == feature]
        ax.scatter(part.x, part.relevance, s=8, color=COLOURS["KL"], alpha=0.6, linewidths=0)
        ax.set_xlabel(f"$x_{feature}$")
    axes[0].set_ylabel("KL relevance at each point")
    axes[0].set_ylim(bottom=0)
    return figure


def draw_cost(table: pd.DataFrame) -> Figure:
    """Draw the seconds of a ranking by rows and by features, with the fitted exponents."""
    figure, (axes,) = _new_figure(7, 3, 1, 2)
    for ax, (name, fixed) in zip(axes, (("n", "p"), ("p", "n")), strict=True):
        shown = table[table[fixed] == COST_MIDDLE[fixed]].sort_values(name)
        for method, part in shown.groupby("method"):
            slope = np.polyfit(np.log(part[name]), np.log(part.seconds), 1)[0]
            label = f"{method}, exponent {slope:.2f}"
            ax.loglog(part[name], part.seconds, "o-", color=COLOURS[str(method)], label=label)
        sizes = shown[name].unique()
        ax.set_xticks(sizes, map(str, sizes))
        ax.minorticks_off()
        ax.set_xlabel(name)
        ax.set_title(f"{fixed} = {COST_MIDDLE[fixed]}", fontsize="medium")
        ax.legend(frameon=False, fontsize="small")
    axes[0].set_ylabel("seconds")
    return figure


def draw_curves(tables_by_name: Mapping[str, Tables], metric: str, *, extra: bool = False) -> Figure:
    """Draw figures 3 and 4: a metric of the submodels by size with 95 % intervals, the sampled full model dashed."""
    figure, (axes,) = _new_figure(3.9 * len(tables_by_name), 3.4, 1, len(tables_by_name))
    for ax, (name, tables) in zip(axes, tables_by_name.items(), strict=True):
        shown = tables.curves[tables.curves.method.isin(METHODS)]
        if extra:  # on the splits on which every method was tried: means over different splits do not compare
            methods = tables.curves.groupby("split").method.nunique()
            shown = tables.curves[tables.curves.split.isin(methods.index[methods == methods.max()])]
        for method, table in shown.groupby("method", sort=False):
            _draw_means(ax, table.pivot_table(index="split", columns="size", values=metric), str(method))
        if metric in tables.reference and len(tables.reference):
            ax.axhline(tables.reference[metric].mean(), color="black", ls="--", lw=1, label="full model, sampled")
        ax.set_title(f"{TITLES[name]}, {shown.split.nunique()} splits", fontsize="medium")
        ax.set_xlabel("number of inputs")
    axes[0].set_ylabel(METRIC_LABELS.get(metric, metric))
    axes[0].legend(frameon=False, fontsize="small")
    return figure


def _draw_means(ax: Axes, wide: pd.DataFrame, method: str) -> None:
    """Draw the mean of each column with its 95 % interval."""
    intervals = [plain_interval(wide[column].dropna().to_numpy()) for column in wide.columns]
    means = [interval.mean for interval in intervals]
    errors = np.nan_to_num([[i.mean - i.low, i.high - i.mean] for i in intervals], posinf=0.0).T
    ax.errorbar(wide.columns, means, yerr=errors, fmt="o-", color=COLOURS[method], label=method, markersize=3, lw=1)


def draw_entropies(tables_by_name: Mapping[str, Tables]) -> Figure:
    """Draw figure 5: the normalised entropy of each choice."""
    figure, (axes,) = _new_figure(3.9 * len(tables_by_name), 3.2, 1, len(tables_by_name), sharey=True)
    for ax, (name, tables) in zip(axes, tables_by_name.items(), strict=True):
        for method, values in position_entropies(tables).items():
            shown = values[: int(tables.curves["size"].max())]
            places = np.arange(1, len(shown) + 1)
            ax.plot(places, shown, "o-", color=COLOURS[method], label=method, markersize=3, lw=1)
        ax.set_title(TITLES[name], fontsize="medium")
        ax.set_xlabel("choice")
        ax.set_ylim(-0.02, 1.02)
    axes[0].set_ylabel("relative entropy")
    axes[0].legend(frameon=False, fontsize="small")
    return figure


def draw_ranks(name: str, tables: Tables) -> Figure:
    """Draw the supplement's figures of ranks: a jittered mark for each split, inputs by their mean rank under KL."""
    order = tables.scores[tables.scores.method == "KL"].groupby("feature")["rank"].mean().sort_values().index[:30]
    figure, ((ax,),) = _new_figure(max(5.0, 0.45 * len(order)), 4)
    rng = np.random.default_rng(0)  # the seed of the jitter is fixed
    for shift, method in zip((-0.25, 0.0, 0.25), METHODS, strict=True):
        table = tables.scores[tables.scores.method == method].set_index("feature")
        for place, feature in enumerate(order):
            values = table.loc[[feature], "rank"].to_numpy()
            x = place + shift + rng.uniform(-0.1, 0.1, values.size)
            ax.scatter(x, values, s=5, color=COLOURS[method], alpha=0.5, linewidths=0, label=None if place else method)
    ax.set_xticks(range(len(order)), order, rotation=90, fontsize="small")
    ax.invert_yaxis()
    ax.set_ylabel("rank in each split")
    ax.set_title(TITLES[name], fontsize="medium")
    ax.legend(frameon=False, fontsize="small", ncols=3)
    return figure
