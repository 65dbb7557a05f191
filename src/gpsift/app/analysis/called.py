"""A call of `analyse` as code that has the same again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from os import PathLike
from typing import Any


def call_code(data: Any, target: Any, options: Mapping[str, Any]) -> str:
    """The call of `report`, with the options that were given; a table that is no file is called `table`."""
    first = code_of(str(data)) if isinstance(data, str | PathLike) else "table"
    given = [f"{name}={code_of(value)}" for name, value in options.items()]
    aim = [] if target is None else [code_of(target)]
    arguments = ", ".join([first, *aim, "path='page.html'", *given])
    return f"import gpsift as gs\n\ngs.report({arguments})"


def code_of(value: Any) -> str:
    """A choice as it would be typed: with the fields that are not as by default."""
    if not is_dataclass(value) or isinstance(value, type):
        return repr(value)
    chosen = [
        f"{each.name}={code_of(getattr(value, each.name))}"
        for each in fields(value)
        if each.init and repr(getattr(value, each.name)) != repr(_default(each))
    ]
    return f"gs.{type(value).__name__}({', '.join(chosen)})"


def _default(each: Field[Any]) -> Any:
    return each.default_factory() if each.default_factory is not MISSING else each.default
