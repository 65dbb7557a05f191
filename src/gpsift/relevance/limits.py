"""The interval of a value over draws, which has the value in it."""

from __future__ import annotations

import numpy as np

# Of intervals, unless another one is asked for.
LEVEL = 0.9


def interval_with(value: np.ndarray, draws: np.ndarray, level: float) -> np.ndarray:
    """The central interval of draws (s, p), drawn out to the value (p,) where that is beyond an end; (p, 2).

    The value is that of a fit, which has a stronger prior than the draws around it and may have switched a feature off.
    It is something that the data allow, too.

    >>> interval_with(np.array([0.0, 2.5]), np.array([[1.0, 2.0], [2.0, 3.0], [3.0, 4.0]]), level=1.0)
    array([[0., 3.],
           [2., 4.]])
    """
    low, high = np.quantile(draws, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    return np.column_stack([np.minimum(low, value), np.maximum(high, value)])
