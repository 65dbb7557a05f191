"""Fair timing: one BLAS thread for everybody, and everybody in turn."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

# A sample is repeated within itself until it lasts this long: the clock and the caches then matter little.
SAMPLE_SECONDS = 0.05


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for every numerical library that is loaded when the context is entered."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
    with threadpool_limits(1):
        yield


def seconds(call: Callable[[], Any], number: int = 1) -> float:
    """Mean wall time of `number` calls in a row."""
    start = time.perf_counter()
    for _ in range(number):
        call()
    return (time.perf_counter() - start) / number


def interleaved(calls: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, np.ndarray]:
    """Seconds of each call in each of `repeats` rounds; each round starts with another call."""
    # The first call warms up, the second says how many make a sample.
    numbers = {name: int(np.ceil(SAMPLE_SECONDS / min(seconds(call), seconds(call)))) for name, call in calls.items()}
    samples = {name: np.empty(repeats) for name in calls}
    for repeat in range(repeats):
        for name in rotated(list(calls), repeat):
            gc.collect()
            samples[name][repeat] = seconds(calls[name], numbers[name])
    return samples


def rotated(names: list[str], by: int) -> list[str]:
    """The same names, starting with another one: nobody always runs after the same neighbour."""
    by %= len(names)
    return names[by:] + names[:by]


def median_ratio(theirs: np.ndarray, ours: np.ndarray) -> float:
    """Median of how many times longer theirs took, round by round, so that a slow phase of the machine hits both."""
    return float(np.median(theirs / ours))
