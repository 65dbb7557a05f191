"""What the test costs beside one fit: processor time on the same data sets, in one process."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence

import numpy as np
from threadpoolctl import threadpool_limits

import gpsift as gs
from benchmarks.levels.designs import DESIGNS

N, P = 200, 30


def print_costs(designs: Sequence[str], n_sets: int) -> None:
    """For every design the median of the test's processor time over that of a default fit."""
    print(f"design: ratio (median, smallest, largest), fit and test in seconds (medians); {N} rows, {P} columns")
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        seconds("Friedman", -1)  # what is imported and prepared once
        for name in designs:
            taken = np.array([seconds(name, r) for r in range(n_sets)])
            ratio, (fit, test) = taken[:, 1] / taken[:, 0], np.median(taken, axis=0)
            low, high = ratio.min(), ratio.max()
            print(f"{name}: {np.median(ratio):.1f}, {low:.1f}, {high:.1f}; {fit:.2f}, {test:.2f}", flush=True)


def seconds(name: str, number: int) -> tuple[float, float]:
    """Of a fit, and of the test, on one data set."""
    X, y = DESIGNS[name].drawn(N, P, (list(DESIGNS).index(name), number + 1))
    return processor_time(lambda: gs.GP().fit(X, y)), processor_time(
        lambda: gs.discover(X, y, work=gs.Work(progress=False))
    )


def processor_time(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start
