"""All data sets of one design and size: drawn, tested, kept."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from benchmarks.levels.designs import DESIGNS
from benchmarks.levels.statistic import Test, scores_of


def run_one(name: str, n: int, p: int, first: int, n_sets: int, device: str, test: Test, file: Path) -> float:
    """Test the data sets of one design and size, and keep the statistics; the seconds that it took."""
    torch.set_num_threads(2)
    start = time.perf_counter()
    X, y = drawn(name, n, p, range(first, first + n_sets))
    found = scores_of(X, y, device, test)
    partial = file.with_suffix(".partial")
    with partial.open("wb") as stream:
        np.savez_compressed(stream, design=name, size=(n, p), z=found.z, z_first=found.z_first)
    partial.rename(file)
    return time.perf_counter() - start


def drawn(name: str, n: int, p: int, sets: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Data sets (B, n, p), (B, n) of a design."""
    number = list(DESIGNS).index(name)
    found = [DESIGNS[name].drawn(n, p, (number, r)) for r in sets]
    return np.stack([X for X, _ in found]), np.stack([y for _, y in found])
