"""Functions whose inputs are known. Each takes columns of its inputs (n, k) and returns (n,).

Those of engineers take inputs from the unit box, and stretch them to their physical ranges.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Function = Callable[[np.ndarray], np.ndarray]

SPARSE_SLOPES = np.array([1.0, 0.8, 0.6, 0.5, 0.4])
DENSE_SLOPES = np.linspace(1.0, 0.4, 15) * np.where(np.arange(15) % 2, -1.0, 1.0)
G_WEIGHTS = np.array([0.0, 0.5, 1.0, 3.0, 5.0])
ISHIGAMI = (7.0, 0.1)


def friedman(X: np.ndarray) -> np.ndarray:
    """Friedman (1991), for uniform inputs."""
    x1, x2, x3, x4, x5 = X.T
    return 10.0 * np.sin(np.pi * x1 * x2) + 20.0 * (x3 - 0.5) ** 2 + 10.0 * x4 + 5.0 * x5


def linear_sparse(X: np.ndarray) -> np.ndarray:
    return X @ SPARSE_SLOPES


def linear_dense(X: np.ndarray) -> np.ndarray:
    return X @ DENSE_SLOPES


def products(X: np.ndarray) -> np.ndarray:
    """For inputs of mean 0: nothing but interactions."""
    x1, x2, x3, x4 = X.T
    return 1.5 * x1 * x2 + x3 * x4


def waves(X: np.ndarray) -> np.ndarray:
    """For normal inputs: a product, a wave whose height depends on another input, and one that is even."""
    x1, x2, x3, x4, x5 = X.T
    return 1.5 * x1 * x2 + x3 * np.sin(1.5 * x4) + 1.5 * np.cos(1.5 * x5)


def mixed(X: np.ndarray) -> np.ndarray:
    """For normal inputs: a line, a wave, and a product whose second input has an effect of its own."""
    x1, x2, x3, x4 = X.T
    return 1.5 * x1 + 1.5 * np.sin(1.5 * x2) + x3 * x4 + 0.7 * x4


def ishigami(U: np.ndarray) -> np.ndarray:
    """Ishigami and Homma (1990), whose third input acts through the first only."""
    x1, x2, x3 = (2.0 * np.pi * U - np.pi).T
    a, b = ISHIGAMI
    return np.sin(x1) + a * np.sin(x2) ** 2 + b * x3**4 * np.sin(x1)


def sobol_g(U: np.ndarray) -> np.ndarray:
    """Saltelli and Sobol (1995): a product of tents, the steeper the smaller their weight."""
    return np.prod((np.abs(4.0 * U - 2.0) + G_WEIGHTS) / (1.0 + G_WEIGHTS), axis=1)


def borehole(U: np.ndarray) -> np.ndarray:
    """Flow of water through a borehole (Harper and Gupta 1983)."""
    ranges = ((0.05, 0.15), (100, 50000), (63070, 115600), (990, 1110), (63.1, 116), (700, 820), (1120, 1680))
    rw, r, Tu, Hu, Tl, Hl, L, Kw = stretched(U, (*ranges, (9855, 12045)))
    log_ratio = np.log(r / rw)
    return 2.0 * np.pi * Tu * (Hu - Hl) / (log_ratio * (1.0 + Tu / Tl) + 2.0 * L * Tu / (rw**2 * Kw))


def wing_weight(U: np.ndarray) -> np.ndarray:
    """Weight of the wing of a light aircraft (Forrester, Sobester and Keane 2008)."""
    ranges = ((150, 200), (220, 300), (6, 10), (-10, 10), (16, 45), (0.5, 1), (0.08, 0.18), (2.5, 6), (1700, 2500))
    Sw, Wfw, A, sweep, q, taper, tc, Nz, Wdg, Wp = stretched(U, (*ranges, (0.025, 0.08)))
    cosine = np.cos(np.radians(sweep))
    body = Sw**0.758 * Wfw**0.0035 * (A / cosine**2) ** 0.6 * q**0.006 * taper**0.04
    return 0.036 * body * (100.0 * tc / cosine) ** -0.3 * (Nz * Wdg) ** 0.49 + Sw * Wp


def robot_arm(U: np.ndarray) -> np.ndarray:
    """Distance of the hand of an arm of four segments from its shoulder (An and Owen 2001).

    The first four inputs are angles, of which that of the shoulder itself turns the arm as a whole and does nothing.
    """
    angle = np.cumsum(2.0 * np.pi * U[:, :4], axis=1)
    length = U[:, 4:]
    return np.hypot(np.sum(length * np.cos(angle), axis=1), np.sum(length * np.sin(angle), axis=1))


def otl_circuit(U: np.ndarray) -> np.ndarray:
    """Midpoint voltage of a push-pull circuit (Ben-Ari and Steinberg 2007)."""
    Rb1, Rb2, Rf, Rc1, Rc2, beta = stretched(U, ((50, 150), (25, 70), (0.5, 3), (1.2, 2.5), (0.25, 1.2), (50, 300)))
    Vb1 = 12.0 * Rb2 / (Rb1 + Rb2)
    gain = beta * (Rc2 + 9.0)
    return (Vb1 + 0.74) * gain / (gain + Rf) + 11.35 * Rf / (gain + Rf) + 0.74 * Rf * gain / ((gain + Rf) * Rc1)


def stretched(U: np.ndarray, ranges: tuple[tuple[float, float], ...]) -> np.ndarray:
    """Columns of the unit box as values between the ends of their ranges, (k, n)."""
    low, high = np.array(ranges, float).T
    return (low + U * (high - low)).T
