"""Processes that work for another one end when that is gone, however it went."""

from __future__ import annotations

import functools
import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from typing import Any

# Between two looks, in seconds.
PAUSE = 0.5
# How joblib calls the processes that it starts for one other.
WORKER = "LokyProcess"
_watched: set[int] = set()  # whom this process looks after; it has one thread for each


class ForThisProcess:
    """A function under its name, called in processes that end with the one that has made this, if it is their parent.

    One that was killed cannot tell its workers, and they would compute on for nobody. Workers of a cluster have other
    parents, and are left alone.
    """

    def __init__(self, function: Callable[..., Any]):
        self.boss, self.function = os.getpid(), function
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        if multiprocessing.current_process().name.startswith(WORKER) and _is_gone(self.boss):
            os._exit(1)  # it went while this process was being started
        if os.getppid() == self.boss and self.boss not in _watched:
            _watched.add(self.boss)
            threading.Thread(target=_end_without, args=(self.boss,), daemon=True).start()
        return self.function(*arguments)


def _end_without(boss: int) -> None:
    while os.getppid() == boss:
        time.sleep(PAUSE)
    os._exit(1)  # at once, from within any computation


def _is_gone(pid: int) -> bool:
    if os.name != "posix":
        return False  # a signal of no meaning is none elsewhere
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)
    return False
