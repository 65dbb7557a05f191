"""Describe a curve in words: whether it rises or falls, where it turns, and the difference between its extremes.

A rise or fall is clear if it is at least twice its posterior standard deviation and a tenth of the range of the curve.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpsift._utils.text import join_names

# A clear rise or fall is at least this many posterior standard deviations, and this share of the range of the curve.
CLEAR = 2.0
LEAST_MOVE = 0.1
# Rows differ if the median range of their curves is more than this many times the range of the average.
ROWS_DIFFER = 2.0
UP_OR_DOWN = {1: "up", -1: "down"}


@dataclass(frozen=True)
class Course:
    """A curve from its first value to its last, as rises and falls.

    Attributes
    ----------
    moves : tuple of int
        Rises (1) and falls (-1), which alternate; empty if none is clear.
    turns : tuple of float
        The values at which the curve changes from rising to falling, or from falling to rising.
    is_bent : bool
        Whether the curve deviates clearly from a straight line.
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
    moves, places = _find_moves(mean, is_clear)
    if labels:  # levels have no order: a rise from the lowest to the highest represents the difference
        moves, places = ((1,) if is_clear[lowest, highest] else ()), []
    span, span_sd = float(mean[highest] - mean[lowest]), float(sd[lowest, highest])
    average_range = max(span, CLEAR * float(np.nan_to_num(span_sd)))
    return Course(
        moves=moves,
        turns=tuple(float(x[place]) for place in places),
        is_bent=bool(places) or (not labels and _is_nonlinear(x, mean, covariance)),
        lowest=lowest,
        highest=highest,
        span=span,
        span_sd=span_sd,
        rows_differ=bool(len(individual) and np.median(np.ptp(individual, axis=1)) > ROWS_DIFFER * average_range),
        labels=labels,
    )


def _is_clear(sizes: np.ndarray, sd: np.ndarray, span: float) -> np.ndarray:
    """Whether differences are large compared with their uncertainty, if that is known, and with the range."""
    return (sizes > 0.0) & (sizes >= CLEAR * np.nan_to_num(sd)) & (sizes >= LEAST_MOVE * span)


def _find_moves(mean: np.ndarray, is_clear: np.ndarray) -> tuple[tuple[int, ...], list[int]]:
    """Return clear rises (1) and falls (-1) in turn, and the indices at which one changes to the other."""
    moves: list[int] = []
    turns: list[int] = []
    low = high = 0
    for place in range(len(mean)):
        last = moves[-1] if moves else 0
        low = place if last <= 0 and mean[place] < mean[low] else low
        high = place if last >= 0 and mean[place] > mean[high] else high
        if last >= 0 and place > high and is_clear[high, place]:
            turns, moves, low = [*turns, high], [*moves, -1], place
        elif last <= 0 and place > low and is_clear[low, place]:
            turns, moves, high = [*turns, low], [*moves, 1], place
    return tuple(moves), turns[1:]


def _is_nonlinear(x: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> bool:
    """Whether the curve deviates clearly from its least-squares line somewhere."""
    line = np.column_stack([np.ones_like(x), x - x.mean()])
    to_residual = np.eye(len(x)) - line @ np.linalg.pinv(line)
    sd = np.sqrt(np.maximum(np.diag(to_residual @ covariance @ to_residual.T), 0.0))
    return bool(_is_clear(np.abs(to_residual @ mean), sd, float(np.ptp(mean))).any())
