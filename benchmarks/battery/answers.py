"""What a method says about a data set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False)
class Answer:
    """Scores of all inputs by the name of the ranking, selected inputs if any are, and the density of the test rows.

    The density is asked for when the time of the method has been taken.
    """

    rankings: Mapping[str, np.ndarray] = field(default_factory=dict)
    selected: np.ndarray | None = None
    density: Callable[[], float] | None = None
