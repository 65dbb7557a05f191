"""The package's own answers beside those of the batch, on the same data sets and folds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

import gpsift as gs
from benchmarks.levels.designs import DESIGNS
from benchmarks.levels.runner import drawn
from benchmarks.levels.statistic import Test, scores_of


def print_differences(sizes: Sequence[tuple[int, int]], n_sets: int) -> None:
    """For every design and size how far the statistics are apart where both models use a column."""
    print("design, rows, columns: differences of z (median, largest), used by one only, chosen otherwise at 0.1")
    for n, p in sizes:
        for name in DESIGNS:
            X, y = drawn(name, n, p, range(n_sets))
            batch = scores_of(X, y, "cpu", Test())
            own = [discovered(X[b], y[b]) for b in range(n_sets)]
            z = np.array([found.z for found in own])
            both, one = np.isfinite(z) & np.isfinite(batch.z), np.isfinite(z) != np.isfinite(batch.z)
            apart = np.abs(z - batch.z)[both] if both.any() else np.zeros(1)
            otherwise = (np.array([found.q for found in own]) <= 0.1) != (batch.q <= 0.1)
            print(
                f"{name}, {n}, {p}: {np.median(apart):.2f}, {apart.max():.2f}, {one.sum()}, {otherwise.sum()}",
                flush=True,
            )


def discovered(X: np.ndarray, y: np.ndarray) -> gs.Discoveries:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gs.discover(X, y)
