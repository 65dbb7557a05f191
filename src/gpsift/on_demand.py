"""Names of a room whose files are loaded when they are first asked for (PEP 562), so that importing stays quick."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def on_demand(room: str, homes: Mapping[str, str | None]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a room: names and the files that they are in, None for a module of the room.

    The same names are imported under ``TYPE_CHECKING`` beside the call, for type checkers and editors.

    >>> import gpsift.results
    >>> "Path" in dir(gpsift.results), gpsift.results.Path.__module__
    (True, 'gpsift.results.path')
    """

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        home = homes[name]
        module = importlib.import_module(home or f"{room}.{name}")
        value = module if home is None else getattr(module, name)
        setattr(sys.modules[room], name, value)  # from now on it is found without being asked for here
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[room]), *homes})

    return load, names
