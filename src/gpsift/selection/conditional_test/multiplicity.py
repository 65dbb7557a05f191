"""From p-values of many features to a choice of which a given share, at most, is expected to be false."""

from __future__ import annotations

import numpy as np


def q_values(p: np.ndarray) -> np.ndarray:
    """The smallest rate at which each of the features would be chosen (Benjamini and Hochberg 1995).

    >>> q_values(np.array([0.001, 0.03, 0.2, 1.0])).round(3)
    array([0.004, 0.06 , 0.267, 1.   ])
    """
    n = p.size
    order = np.argsort(p, kind="stable")
    raised = n * p[order] / np.arange(1, n + 1)
    q = np.empty(n)
    q[order] = np.minimum(np.minimum.accumulate(raised[::-1])[::-1], 1.0)
    return q


def twice_the_median(p: np.ndarray) -> np.ndarray:
    """One p-value for each feature from those of several repeats, (repeats, p), however they depend on each other."""
    return p[0] if len(p) == 1 else np.minimum(2.0 * np.median(p, axis=0), 1.0)
