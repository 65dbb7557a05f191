"""Pareto k-hat: whether draws from an approximation can be trusted, by the tail of their importance ratios.

References
----------
Zhang and Stephens (2009), A new and efficient estimation method for the generalized Pareto distribution, Technometrics
51(3). Vehtari, Simpson, Gelman, Yao and Gabry (2024), Pareto smoothed importance sampling, JMLR 25(72).
"""

from __future__ import annotations

import math

import numpy as np

# Draws with a larger k-hat are not to be trusted (Vehtari et al. 2024).
LARGEST_K_HAT = 0.7


def pareto_shape(log_ratios: np.ndarray) -> float:
    """Estimate k-hat, the shape of a generalised Pareto distribution of the largest importance ratios.

    The estimate is that of Zhang and Stephens (2009), with the weak prior of Vehtari et al. (2024).
    """
    n = log_ratios.size
    n_tail = min(math.ceil(0.2 * n), math.ceil(3.0 * math.sqrt(n)))
    ratios = np.sort(np.exp(log_ratios - log_ratios.max()))
    excess = ratios[-n_tail:] - ratios[-n_tail - 1]
    if not excess[0] > 0:
        excess = excess[excess > 0]
    if excess.size < 5:
        return math.inf
    m = excess.size
    n_candidates = 30 + math.isqrt(m)
    quartile = excess[math.floor(m / 4.0 + 0.5) - 1]
    spread = 1.0 - np.sqrt(n_candidates / (np.arange(1, n_candidates + 1) - 0.5))
    candidates = 1.0 / excess[-1] + spread / (3.0 * quartile)
    shapes = np.mean(np.log1p(-candidates[:, None] * excess), axis=1)
    profile = m * (np.log(-candidates / shapes) - shapes - 1.0)
    weights = np.exp(profile - profile.max())
    best = float(candidates @ weights / weights.sum())
    k = float(np.mean(np.log1p(-best * excess)))
    return (m * k + 10.0 * 0.5) / (m + 10.0)
