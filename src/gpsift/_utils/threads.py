"""Limit the number of BLAS threads, and map functions over items in threads.

NumPy and SciPy have separate OpenBLAS thread pools. With two threads each they compete for the cores: at n = 300 a fit
was ten times slower than with one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from gpsift._utils.progress import track

Item = TypeVar("Item")
Result = TypeVar("Result")

# Several threads are faster than one for matrices of at least this many rows.
PARALLEL_SIZE = 800
# The number of BLAS threads outside of `one_blas_thread`. It is 1 in threads of `threaded_map`, which start no others.
_outer_threads: ContextVar[int | None] = ContextVar("outer threads", default=None)


def blas_threads_for(n: int) -> AbstractContextManager[Any]:
    """Return a context in which BLAS uses one thread, if matrices have fewer than `PARALLEL_SIZE` rows."""
    return nullcontext() if n >= PARALLEL_SIZE else one_blas_thread()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread inside; `threaded_map` still uses as many threads as BLAS had before."""
    outer = _outer_threads.set(usable_threads())
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _outer_threads.reset(outer)


def outer_blas_threads_for(n: int) -> AbstractContextManager[Any]:
    """Return a context inside `one_blas_thread` in which BLAS uses its threads again, if n is large."""
    return nullcontext() if n < PARALLEL_SIZE else _controller().limit(limits=usable_threads(), user_api="blas")


def usable_threads() -> int:
    """Return the number of threads that BLAS may use; users who want fewer threads than cores have set it."""
    return _outer_threads.get() or max(
        (pool.num_threads for pool in _controller().select(user_api="blas").lib_controllers), default=1
    )


def threaded_map(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Apply a function to each item, in as many threads as BLAS may use; in each of them BLAS uses one thread.

    Use it for computations in NumPy on matrices so large that Python's lock is seldom held. Other work on the machine
    slows these threads less than BLAS's own, because each product that BLAS divides waits for its slowest thread.
    """
    workers = min(usable_threads(), len(items))
    if workers <= 1:
        return [function(item) for item in track(items, len(items))]
    with one_blas_thread(), ThreadPoolExecutor(workers, initializer=_outer_threads.set, initargs=(1,)) as pool:
        return list(track(pool.map(function, items), len(items)))


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # finding the libraries takes milliseconds, setting their threads microseconds
