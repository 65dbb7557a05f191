"""The picture of a run: the mean AUC of every method in every family."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.battery.summary import NO_RANKING, by_family

PICTURE = Path(__file__).with_name("battery.png")
LOWEST = 0.6


def draw(table: pd.DataFrame, path: Path = PICTURE) -> None:
    """A panel for each number of rows: families across, rankings down, the colour is the AUC."""
    from matplotlib.figure import Figure  # only here: processes of a run need no pictures

    sizes = sorted(table["n"].unique())
    ranked = table[table["ranking"] != NO_RANKING]
    parts = [by_family(ranked[ranked["n"] == n], "auc") for n in sizes]
    height = 1.6 + 0.28 * max(len(part) for part in parts)
    figure = Figure(figsize=(1.0 + 5.5 * len(sizes), height), layout="tight")
    axes = figure.subplots(1, len(sizes), squeeze=False)
    for axis, n, part in zip(axes[0], sizes, parts, strict=True):
        values = part.to_numpy(float)
        axis.imshow(values, vmin=LOWEST, vmax=1.0, cmap="viridis", aspect="auto")
        axis.set_xticks(range(part.shape[1]), part.columns, rotation=45, ha="right")
        axis.set_yticks(range(len(part)), part.index)
        axis.set_title(f"AUC, {n} rows")
        for (i, j), value in np.ndenumerate(values):
            if np.isfinite(value):
                colour = "black" if value > 0.85 else "white"
                axis.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=7, color=colour)
    figure.savefig(path, dpi=100)
