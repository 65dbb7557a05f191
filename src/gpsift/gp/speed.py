"""How long an exact fit would take here, and up to how many rows "auto" is exact: one factorisation tells.

A fit to many rows is a number of factorisations of their covariance, each in a time that grows with the third power of
the rows. One of a small matrix is timed, once in a process. On the host that is the processor time of one thread, which
hardly depends on what else the machine does: on two cores with work for eight, ten processes measured 26 milliseconds
up to 2 %, and by the clock on the wall between 130 milliseconds and 3 seconds. What is chosen has coarse steps besides,
so that the same machine chooses the same.
"""

from __future__ import annotations

import math
import os
import time

import array_api_compat
import numpy as np

from gpsift._utils.arrays import Array, eye_like, to_numpy
from gpsift._utils.linalg import jittered_cholesky
from gpsift._utils.rows import DOUBLE
from gpsift._utils.threads import one_blas_thread
from gpsift.gp.inference.memory import MATRICES, available_bytes, device_bytes

# Rows of the matrix that is timed, and how often. A device is slow with small ones, and with the first one.
TIMED_ROWS = 1000
TIMED_ROWS_ON_DEVICE = 8000
REPEATS = 3
# What a default fit takes, in factorisations of its rows: 55, 46 and 39 for 2000, 3000 and 4000 rows of Friedman's
# function with 20 inputs.
FACTORISATIONS = 50
# Seconds that "auto" has for an exact fit.
BEARABLE_SECONDS = 120.0
# Rows up to which it is exact, one of these: the first on any machine, each larger by about the root of two.
STEPS = (2000, 2800, 4000, 5600, 8000)
STEPS_ON_DEVICE = (5000, 7000, 10_000, 14_000, 20_000, 28_000, 40_000)
# The environment variable that fixes the number in the place of all this.
ROWS_VARIABLE = "GPSIFT_EXACT_ROWS"
UNITS = (("day", 86_400.0), ("hour", 3600.0), ("minute", 60.0), ("second", 1.0))

_timed: dict[str, float] = {}  # seconds of a factorisation, by where it was made


def largest_exact(n: int, beside: Array) -> int:
    """Rows up to which "auto" is exact, where matrices live beside an array; few rows n need no look at the clock."""
    given = os.environ.get(ROWS_VARIABLE)
    if given is not None:
        if not given.isdecimal():
            raise ValueError(f"The environment variable {ROWS_VARIABLE} must be a number of rows, got {given!r}.")
        return int(given)
    steps = STEPS if _is_on_host(beside) else STEPS_ON_DEVICE
    largest = steps[0]
    if n > largest:
        largest = max((rows for rows in steps if fit_seconds(rows, beside) <= BEARABLE_SECONDS), default=largest)
    free = available_bytes() if isinstance(beside, np.ndarray) else device_bytes(beside)
    return largest if free is None else min(largest, math.isqrt(free // (MATRICES["exact"] * DOUBLE)))


def fit_seconds(n: int, beside: Array) -> float:
    """What an exact fit of n rows with all defaults takes, about."""
    rows = TIMED_ROWS if _is_on_host(beside) else TIMED_ROWS_ON_DEVICE
    return FACTORISATIONS * factor_seconds(beside) * (n / rows) ** 3


def factor_seconds(beside: Array) -> float:
    """What a Cholesky factor of the matrix that is timed takes, measured once."""
    where = "host" if _is_on_host(beside) else str(array_api_compat.device(beside))
    if where not in _timed:
        _timed[where] = _host_seconds() if where == "host" else _device_seconds(beside)
    return _timed[where]


def in_words(seconds: float) -> str:
    """A duration in one unit.

    >>> in_words(0.2), in_words(100.0), in_words(7000.0)
    ('1 second', '2 minutes', '2 hours')
    """
    name, unit = next(((name, unit) for name, unit in UNITS if seconds >= 0.95 * unit), UNITS[-1])
    count = max(1, round(seconds / unit))
    return f"{count} {name}{'' if count == 1 else 's'}"


def _host_seconds() -> float:
    A, seconds = np.eye(TIMED_ROWS) + 1.0, []
    with one_blas_thread():
        for _ in range(REPEATS):
            start = time.thread_time()
            jittered_cholesky(A)
            seconds.append(time.thread_time() - start)
    return min(seconds)


def _device_seconds(beside: Array) -> float:
    A, seconds = eye_like(beside, TIMED_ROWS_ON_DEVICE) + 1.0, []
    for _ in range(REPEATS):
        start = time.perf_counter()
        L, _ = jittered_cholesky(A)
        to_numpy(L[-1, -1:])  # which waits until it is there
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _is_on_host(beside: Array) -> bool:
    """Whether an array is NumPy's, or torch's on the processor."""
    return isinstance(beside, np.ndarray) or str(array_api_compat.device(beside)) == "cpu"
