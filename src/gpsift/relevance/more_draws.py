"""Scores with more hyperparameters than a posterior was made for: a straight line, and what it takes for a score.

Most of what scores do from draw to draw is a straight line of their roots in the coordinates of the hyperparameters.
Lines through s draws say where the others are among them, and the sorted scores of the s draws, beside their sorted
lines, what a line stands for. So the ends of intervals have the even distribution of all draws and the scores of some:
56 draws, with lines at 456 more, end where 128 do. What a line leaves of a score is not added to it, neither as a
number, which is other for small scores than for large ones, nor by more terms, for which the draws are too few.
"""

from __future__ import annotations

import numpy as np

# Fewer draws than this for each coefficient of a line say nothing about others.
LEAST_EACH = 2.0
# The slope of a coordinate is drawn to 0 as by this many draws that show none.
RIDGE = 1.0


def with_others(places: np.ndarray, scores: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Scores (s, p) of draws, and below them those (m, p) of others; draws that are too few have no others.

    Where the draws are is given by coordinates of their hyperparameters, (s, k) and (m, k).
    """
    n, k = places.shape
    if not len(others) or n < LEAST_EACH * (k + 1):
        return scores
    roots = np.sign(scores) * np.sqrt(np.abs(scores))
    here, there = _lines(places, roots, others)
    found = np.array([_read_off(*each) for each in zip(here.T, roots.T, there.T, strict=True)]).T
    varies = np.ptp(scores, axis=0) > 0
    return np.concatenate([scores, np.where(varies, found * np.abs(found), scores[0])])


def _lines(places: np.ndarray, values: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Straight lines through values (s, p) at places, there and at others."""
    center, spread = places.mean(axis=0), places.std(axis=0)
    Z, Z_others = ((each - center) / np.where(spread > 0, spread, 1.0) for each in (places, others))
    level = values.mean(axis=0)
    slopes = np.linalg.solve(Z.T @ Z + RIDGE * np.eye(Z.shape[1]), Z.T @ (values - level))
    return level + Z @ slopes, level + Z_others @ slopes


def _read_off(line: np.ndarray, values: np.ndarray, there: np.ndarray) -> np.ndarray:
    """What lines stand for: as many values are below one as lines are below its own.

    Beyond the highest line values rise with it. Below the lowest they stay: no score is below 0.
    """
    line, values = np.sort(line), np.sort(values)
    return np.interp(there, line, values) + np.maximum(there - line[-1], 0.0)
