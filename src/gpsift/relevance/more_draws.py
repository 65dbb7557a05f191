"""Scores with more hyperparameters than a posterior was made for: a straight line, and what it takes for a score.

Most of what KL scores do from draw to draw is a straight line of their roots in the coordinates of the hyperparameters.
Lines through s draws say where the others are among them, and the sorted scores of the s draws, beside their sorted
lines, what a line stands for. So the ends of intervals have the even distribution of all draws and the scores of some:
52 draws, with lines at 460 more, end where 128 do. What a line leaves of a score is not added to it: it is larger for
large scores. Where lines leave much, as of VAR, whose scores depend less on hyperparameters, there are none.
"""

from __future__ import annotations

import numpy as np

# Fewer draws than this for each coefficient of a line say nothing about others.
LEAST_EACH = 2.0
# The slope of a coordinate is drawn to 0 as by this many draws that show none.
RIDGE = 1.0
# Lines that leave more of the variance of the roots of draws that are left out say less than as many more draws. They
# leave 0.03 to 0.13 of KL scores, and 0.15 to 0.3 of those of VAR, of which their ends are no better than without.
MOST_LEFT = 0.2


def with_others(places: np.ndarray, scores: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Scores (s, p) of draws, and below them those (m, p) of others, which are to be had where `are_lines` says so.

    Where the draws are is given by coordinates of their hyperparameters, (s, k) and (m, k).
    """
    roots = _roots(scores)
    level = roots.mean(axis=0)
    Z, slopes = _slopes(places, roots - level)
    there = (others - places.mean(axis=0)) / _spread(places)
    lines = zip((Z @ slopes).T, (roots - level).T, (there @ slopes).T, strict=True)
    found = level + np.array([_read_off(*each) for each in lines]).T
    return np.concatenate([scores, np.where(np.ptp(scores, axis=0) > 0, found * np.abs(found), scores[0])])


def are_lines(places: np.ndarray, scores: np.ndarray) -> bool:
    """Whether lines through the roots of scores (s, p) of draws at places (s, k) say what others have."""
    n, k = places.shape
    if n < LEAST_EACH * (k + 1):
        return False
    roots = _roots(scores[:, np.ptp(scores, axis=0) > 0])
    if not roots.size:
        return True
    Z, slopes = _slopes(places, roots - roots.mean(axis=0))
    # What a line says of a draw that it does not know; each counts 1 / n for the level, too.
    own = 1.0 / n + np.einsum("ij,ji->i", Z, np.linalg.solve(Z.T @ Z + RIDGE * np.eye(k), Z.T))
    missed = (roots - roots.mean(axis=0) - Z @ slopes) / (1.0 - own)[:, None]
    return bool(np.mean(np.mean(missed**2, axis=0) / roots.var(axis=0)) <= MOST_LEFT)


def _slopes(places: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places in units of their spread, and the slopes of lines through centred values there."""
    Z = (places - places.mean(axis=0)) / _spread(places)
    return Z, np.linalg.solve(Z.T @ Z + RIDGE * np.eye(Z.shape[1]), Z.T @ values)


def _spread(places: np.ndarray) -> np.ndarray:
    sd = places.std(axis=0)
    return np.where(sd > 0, sd, 1.0)


def _roots(scores: np.ndarray) -> np.ndarray:
    return np.asarray(np.sign(scores) * np.sqrt(np.abs(scores)))


def _read_off(line: np.ndarray, values: np.ndarray, there: np.ndarray) -> np.ndarray:
    """What lines stand for: as many values are below one as lines are below its own.

    Beyond the highest line values rise with it. Below the lowest they stay: no score is below 0.
    """
    line, values = np.sort(line), np.sort(values)
    return np.interp(there, line, values) + np.maximum(there - line[-1], 0.0)
