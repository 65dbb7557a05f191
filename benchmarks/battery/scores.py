"""How well a ranking or a selection agrees with the truth. Ties count as if they were broken at random."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata, spearmanr

# Shares whose logarithms differ by less are equal, but for the error with which they were computed.
SAME = 0.02


def auc(scores: np.ndarray, true: np.ndarray) -> float:
    """The share of pairs of a true and an inert input whose true one has the higher score; NaN without such pairs."""
    n_true, n_inert = int(np.sum(true)), int(np.sum(~true))
    if n_true == 0 or n_inert == 0:
        return np.nan
    return float((np.sum(rankdata(scores)[true]) - n_true * (n_true + 1) / 2) / (n_true * n_inert))


def share_in_top(scores: np.ndarray, true: np.ndarray) -> float:
    """The share of the k true inputs that are among the k highest scores; NaN without true inputs."""
    k = int(np.sum(true))
    if k == 0:
        return np.nan
    last = np.sort(scores)[-k]
    above, level = scores > last, scores == last
    places = k - np.sum(above)
    return float((np.sum(true & above) + places * np.sum(true & level) / np.sum(level)) / k)


def agreement(scores: np.ndarray, shares: np.ndarray, true: np.ndarray) -> float:
    """Spearman's correlation of scores and shares of variance of the true inputs, of which there must be three.

    Scores that are all equal say nothing about the order, which is a correlation of 0.
    """
    levels = distinct_levels(shares[true])
    if levels.size < 3 or np.ptp(levels) == 0:
        return np.nan
    if np.ptp(scores[true]) == 0:
        return 0.0
    return float(spearmanr(scores[true], levels).statistic)


def distinct_levels(shares: np.ndarray) -> np.ndarray:
    """0 for the smallest share, and one more at every step upwards that is more than rounding."""
    order = np.argsort(shares)
    levels = np.zeros(shares.size, int)
    levels[order[1:]] = np.cumsum(np.diff(np.log(shares[order])) > SAME)
    return levels


def found_share(selected: np.ndarray, true: np.ndarray) -> float:
    """The share of true inputs that are selected; NaN without true inputs."""
    return float(np.mean(selected[true])) if np.any(true) else np.nan


def false_share(selected: np.ndarray, true: np.ndarray) -> float:
    """The share of selected inputs that are inert; 0 if nothing is selected."""
    return float(np.mean(~true[selected])) if np.any(selected) else 0.0
