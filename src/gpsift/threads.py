"""One BLAS thread where more would only be in each other's way.

NumPy and SciPy carry separate OpenBLAS thread pools. With two threads each they fight for the cores: at n = 300 a fit
was ten times slower than with one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")

# Matrices of at least this size gain from several threads.
PARALLEL_SIZE = 800


def blas_threads_for(n: int) -> AbstractContextManager[Any]:
    """A context in which BLAS uses one thread, if matrices have fewer than `PARALLEL_SIZE` rows."""
    return nullcontext() if n >= PARALLEL_SIZE else one_blas_thread()


def one_blas_thread() -> AbstractContextManager[Any]:
    """A context in which BLAS uses one thread: its caller has threads of its own."""
    return _controller().limit(limits=1, user_api="blas")


def usable_threads() -> int:
    """How many threads BLAS may have, which is what a user sets who wants fewer than there are cores."""
    return max((pool.num_threads for pool in _controller().select(user_api="blas").lib_controllers), default=1)


def threaded_map(of: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """`of` for each item, in as many threads as BLAS may have, each of which has one for BLAS.

    For work in NumPy on matrices large enough that Python's lock is seldom held.
    """
    workers = min(usable_threads(), len(items))
    if workers <= 1:
        return [of(item) for item in items]
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        return list(pool.map(of, items))


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # finding the libraries takes milliseconds, setting their threads microseconds
