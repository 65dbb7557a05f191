"""Processes that work for another one end when that is gone, however it went."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable
from typing import Any

# Between two looks, in seconds.
PAUSE = 0.5
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
        if os.getppid() == self.boss and self.boss not in _watched:
            _watched.add(self.boss)
            threading.Thread(target=_end_without, args=(self.boss,), daemon=True).start()
        return self.function(*arguments)


def _end_without(boss: int) -> None:
    while os.getppid() == boss:
        time.sleep(PAUSE)
    os._exit(1)  # at once, from within any computation
