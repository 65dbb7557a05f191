"""This module has the base class of all results of the package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FunctionRecord:
    """A result about a fitted function, with the fields that all of them share.

    Attributes
    ----------
    mean_of : str
        The quantity of which the function is the mean.
    of : str or None
        The function, where the model has several.
    how : str
        Whether averages are closed forms or made of the model's own predictions.
    details : mapping
    """

    mean_of: str = "the target"
    of: str | None = None
    how: str = "closed form"
    details: Mapping[str, Any] = field(default_factory=dict)
