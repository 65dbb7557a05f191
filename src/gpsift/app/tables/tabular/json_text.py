"""Tables in JSON: a list of records, columns by name, one record a line, or a list inside an object."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd


def looks_like_json(text: str) -> bool:
    """Whether a text begins as JSON does: with an object, or with a list of objects or lists."""
    start = text.lstrip("\ufeff \t\r\n")[:200]
    return start.startswith("{") or (start.startswith("[") and start[1:].lstrip()[:1] in ("{", "["))


def read_json(text: str, where: str) -> pd.DataFrame:
    """The table; objects inside cells become columns such as "place.lat", lists inside cells become texts."""
    try:
        found = _parsed(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{where} begins like JSON, but could not be read as such: {error}.") from None
    frame = _framed(found)
    if frame is None:
        raise ValueError(f"{where} is JSON, but no table: a list of records, or columns by name, is needed.")
    return frame.map(lambda cell: json.dumps(cell) if isinstance(cell, list | dict) else cell)


def _parsed(text: str) -> Any:
    """One value, or one a line."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2:
            raise
        return [json.loads(line) for line in lines]


def _framed(found: Any) -> pd.DataFrame | None:
    if isinstance(found, list) and found:
        if all(isinstance(each, dict) for each in found):
            return pd.json_normalize(found)
        if all(isinstance(each, list) for each in found) and len(found) > 1:
            return pd.DataFrame(found[1:], columns=list(map(str, found[0])))
        return None
    if not isinstance(found, dict):
        return None
    if {"columns", "data"} <= set(found):
        return pd.DataFrame(found["data"], columns=found["columns"])
    if found and all(isinstance(each, list | dict) for each in found.values()) and _are_columns(found):
        return pd.DataFrame(found).reset_index(drop=True)
    inner = [framed for each in found.values() if isinstance(each, list) and (framed := _framed(each)) is not None]
    return inner[0] if len(inner) == 1 else None


def _are_columns(found: dict[str, Any]) -> bool:
    """Lists or objects of as many cells each, none of which is an object itself."""
    sizes = {len(each) for each in found.values()}
    cells = (cell for each in found.values() for cell in (each.values() if isinstance(each, dict) else each))
    return len(sizes) == 1 and not any(isinstance(cell, dict | list) for cell in cells)
