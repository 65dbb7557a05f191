"""Libraries that records can hand themselves to, if they are installed."""

from __future__ import annotations

import importlib
from typing import Any


def optional_library(library: str, purpose: str) -> Any:
    """The library, or an error that says what it is needed for."""
    try:
        return importlib.import_module(library)
    except ImportError as error:
        raise ImportError(
            f"{purpose} are made with {library}, which is not installed: pip install {library}."
        ) from error
