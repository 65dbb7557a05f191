"""Prints the peak memory of ranking by VAR at n = 2000, p = 100, in GiB above that before the call, and its seconds.

Memory is what Python and NumPy allocate (tracemalloc); the time is that of a second run without the tracing.
"""

from __future__ import annotations

import tracemalloc

from evaluation import typical_log_params
from measures import fixed_gp
from timing import one_thread, seconds
from toys import NORMAL, toy

import gpsift as gs


def main() -> None:
    X, y = toy(NORMAL, seed=0, n=2000, p=100)
    with one_thread():
        tracemalloc.start()
        gp = fixed_gp(X, y, typical_log_params(X.shape[1]))
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        gs.rank(gp, X, gs.VAR(conditional="normal"))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        elapsed = seconds(lambda: gs.rank(gp, X, gs.VAR(conditional="normal")))
    print((peak - before) / 2**30, elapsed)


if __name__ == "__main__":
    main()
