"""One BLAS thread where more would only be in each other's way.

NumPy and SciPy carry separate OpenBLAS thread pools. With two threads each they fight for the cores: at n = 300 a fit
was ten times slower than with one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from gpsift._utils.progress import counted

Item = TypeVar("Item")
Result = TypeVar("Result")

# Matrices of at least this size gain from several threads.
PARALLEL_SIZE = 800
# What BLAS had outside of `one_blas_thread`; 1 in threads that `threaded_map` starts, which start no others.
_outer_threads: ContextVar[int | None] = ContextVar("outer threads", default=None)


def blas_threads_for(n: int) -> AbstractContextManager[Any]:
    """A context in which BLAS uses one thread, if matrices have fewer than `PARALLEL_SIZE` rows."""
    return nullcontext() if n >= PARALLEL_SIZE else one_blas_thread()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which BLAS uses one thread; `threaded_map` still has as many as BLAS had before."""
    outer = _outer_threads.set(usable_threads())
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _outer_threads.reset(outer)


def outer_blas_threads_for(n: int) -> AbstractContextManager[Any]:
    """Within `one_blas_thread`, a context in which BLAS has its threads again, if matrices have that many rows."""
    return nullcontext() if n < PARALLEL_SIZE else _controller().limit(limits=usable_threads(), user_api="blas")


def usable_threads() -> int:
    """How many threads BLAS may have, which is what a user sets who wants fewer than there are cores."""
    return _outer_threads.get() or max(
        (pool.num_threads for pool in _controller().select(user_api="blas").lib_controllers), default=1
    )


def threaded_map(of: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """`of` for each item, in as many threads as BLAS may have, each of which has one for BLAS.

    For work in NumPy on matrices large enough that Python's lock is seldom held. Where other work is on the machine
    this goes on at the share that is left, while a product that BLAS divides waits for its slowest thread each time.
    """
    workers = min(usable_threads(), len(items))
    if workers <= 1:
        return [of(item) for item in counted(items, len(items))]
    with one_blas_thread(), ThreadPoolExecutor(workers, initializer=_outer_threads.set, initargs=(1,)) as pool:
        return list(counted(pool.map(of, items), len(items)))


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # finding the libraries takes milliseconds, setting their threads microseconds
