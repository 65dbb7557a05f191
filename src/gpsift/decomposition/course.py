"""The course of a curve in words: up, down, where it turns, and how far it goes.

A move counts as clear if it exceeds its posterior standard deviation twice and is not small beside the whole range.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpsift._utils.text import join_names

# A clear move is at least this many posterior standard deviations, and this share of the whole range.
CLEAR = 2.0
LEAST_MOVE = 0.1
# Rows differ if the ranges of their own curves exceed that of the average this many times.
ROWS_DIFFER = 2.0
UP_OR_DOWN = {1: "up", -1: "down"}


@dataclass(frozen=True)
class Course:
    """The moves of a curve from its first value to its last.

    Attributes
    ----------
    moves : tuple of int
        Up (1) and down (-1) alternately; empty where the curve makes no clear move.
    turns : tuple of float
        The values at which one move ends and the next begins.
    is_bent : bool
        Whether the curve is clearly no straight line.
    lowest, highest : int
        Indices of the values with the lowest and the highest point.
    span, span_sd : float
        The difference between these two points, and its posterior standard deviation; NaN without a band.
    rows_differ : bool
        Whether curves of single rows vary much more than their average: the feature interacts with others.
    labels : tuple of str
        The levels, for a category.
    """

    moves: tuple[int, ...]
    turns: tuple[float, ...]
    is_bent: bool
    lowest: int
    highest: int
    span: float
    span_sd: float
    rows_differ: bool = False
    labels: tuple[str, ...] = ()

    @property
    def told(self) -> str:
        """The course as text, such as "up, bent" or "down to 0.5, then up"."""
        if not self.moves:
            return "nothing on average, but rows differ" if self.rows_differ else "nothing clear"
        if self.labels:
            return f"{self.labels[self.lowest]} lowest, {self.labels[self.highest]} highest"
        first = UP_OR_DOWN[self.moves[0]]
        if not self.turns:
            return f"{first}, bent" if self.is_bent else first
        turns = [f"{turn:.3g}" for turn in self.turns]
        if len(turns) == 1:
            return f"{first} to {turns[0]}, then {UP_OR_DOWN[self.moves[1]]}"
        return f"up and down, turns at {join_names(turns)}"


def describe_curve(
    x: np.ndarray, mean: np.ndarray, covariance: np.ndarray, individual: np.ndarray, labels: tuple[str, ...] = ()
) -> Course:
    """Describe a curve at values, (g,), with the covariance of its points, (g, g), NaN where that is not known.

    `individual` has the curves of some rows, (r, g).
    """
    lowest, highest = int(np.argmin(mean)), int(np.argmax(mean))
    var = np.diag(covariance)
    sd = np.sqrt(np.maximum(var[:, None] + var - 2.0 * covariance, 0.0))  # of the differences of all points
    is_clear = _is_clear(np.abs(mean[:, None] - mean), sd, float(np.ptp(mean)))
    moves, places = _moves(mean, is_clear)
    if labels:  # levels have no order: one move from the lowest to the highest
        moves, places = ((1,) if is_clear[lowest, highest] else ()), []
    span, span_sd = float(mean[highest] - mean[lowest]), float(sd[lowest, highest])
    furthest = max(span, CLEAR * float(np.nan_to_num(span_sd)))
    return Course(
        moves=moves,
        turns=tuple(float(x[place]) for place in places),
        is_bent=bool(places) or (not labels and _is_nonlinear(x, mean, covariance)),
        lowest=lowest,
        highest=highest,
        span=span,
        span_sd=span_sd,
        rows_differ=bool(len(individual) and np.median(np.ptp(individual, axis=1)) > ROWS_DIFFER * furthest),
        labels=labels,
    )


def _is_clear(sizes: np.ndarray, sd: np.ndarray, span: float) -> np.ndarray:
    """Whether differences exceed their uncertainty, as far as that is known, and are not small beside the range."""
    return (sizes > 0.0) & (sizes >= CLEAR * np.nan_to_num(sd)) & (sizes >= LEAST_MOVE * span)


def _moves(mean: np.ndarray, is_clear: np.ndarray) -> tuple[tuple[int, ...], list[int]]:
    """Alternating moves, and the places between them; a turn counts once the move after it is clear."""
    moves: list[int] = []
    turns: list[int] = []
    low = high = 0
    for place in range(len(mean)):
        now = moves[-1] if moves else 0
        low = place if now <= 0 and mean[place] < mean[low] else low
        high = place if now >= 0 and mean[place] > mean[high] else high
        if now >= 0 and place > high and is_clear[high, place]:
            turns, moves, low = [*turns, high], [*moves, -1], place
        elif now <= 0 and place > low and is_clear[low, place]:
            turns, moves, high = [*turns, low], [*moves, 1], place
    return tuple(moves), turns[1:]


def _is_nonlinear(x: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> bool:
    """Whether the curve deviates clearly from its least-squares line somewhere."""
    line = np.column_stack([np.ones_like(x), x - x.mean()])
    away = np.eye(len(x)) - line @ np.linalg.pinv(line)
    sd = np.sqrt(np.maximum(np.diag(away @ covariance @ away.T), 0.0))
    return bool(_is_clear(np.abs(away @ mean), sd, float(np.ptp(mean))).any())
