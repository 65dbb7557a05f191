"""Numbers of BLAS threads, and threads over items.

NumPy and SciPy carry separate OpenBLAS thread pools. With two threads each they compete for the cores: at n = 300 a fit
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

# Matrices of at least this size gain from several threads.
PARALLEL_SIZE = 800
# The number of BLAS threads outside of `one_blas_thread`; 1 in threads of `threaded_map`, which start no others.
_outer_threads: ContextVar[int | None] = ContextVar("outer threads", default=None)


def blas_threads_for(n: int) -> AbstractContextManager[Any]:
    """Return a context in which BLAS uses one thread, if matrices have fewer than `PARALLEL_SIZE` rows."""
    return nullcontext() if n >= PARALLEL_SIZE else one_blas_thread()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread inside; `threaded_map` still has as many as BLAS had before."""
    outer = _outer_threads.set(usable_threads())
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _outer_threads.reset(outer)


def outer_blas_threads_for(n: int) -> AbstractContextManager[Any]:
    """Return a context within `one_blas_thread` in which BLAS has its threads back, for matrices with many rows."""
    return nullcontext() if n < PARALLEL_SIZE else _controller().limit(limits=usable_threads(), user_api="blas")


def usable_threads() -> int:
    """Return the number of threads that BLAS may have; users set it who want fewer threads than cores."""
    return _outer_threads.get() or max(
        (pool.num_threads for pool in _controller().select(user_api="blas").lib_controllers), default=1
    )


def threaded_map(of: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Apply `of` to each item, in as many threads as BLAS may have, each of which has one thread for BLAS.

    Use it for work in NumPy on matrices so large that Python's lock is seldom held. On a machine with other work these
    threads slow down by the share of it, while a product that BLAS divides waits for its slowest thread each time.
    """
    workers = min(usable_threads(), len(items))
    if workers <= 1:
        return [of(item) for item in track(items, len(items))]
    with one_blas_thread(), ThreadPoolExecutor(workers, initializer=_outer_threads.set, initargs=(1,)) as pool:
        return list(track(pool.map(of, items), len(items)))


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # finding the libraries takes milliseconds, setting their threads microseconds
