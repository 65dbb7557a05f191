r"""The paper's additive toy: eight features with the same variance and more and more bends.

.. math:: y = \sum_{j=1}^{8} A_j \sin(\phi_j x_j) + \epsilon, \qquad \epsilon \sim N(0, 0.3^2)

The frequencies phi_j are equally spaced from pi / 10 to pi, and A_j makes the variance of each term 1. Any further
feature is drawn alike and has no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

N_RELEVANT = 8
NOISE_SD = 0.3
FREQUENCIES = np.linspace(np.pi / 10, np.pi, N_RELEVANT)


@dataclass(frozen=True)
class Law:
    """A distribution of the inputs, and the variance of sin(frequency x) under it."""

    name: str
    draw: Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
    sine_var: np.ndarray


NORMAL = Law(
    "normal",
    lambda rng, shape: 0.4 * rng.standard_normal(shape),
    0.5 * (1.0 - np.exp(-2.0 * 0.4**2 * FREQUENCIES**2)),
)
UNIFORM = Law(
    "uniform",
    lambda rng, shape: rng.uniform(-1.0, 1.0, shape),
    0.5 - np.sin(2.0 * FREQUENCIES) / (4.0 * FREQUENCIES),
)


def toy(law: Law, seed: int, n: int = 300, p: int = N_RELEVANT) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (n, p) and target (n,), all standardised to mean 0 and standard deviation 1."""
    rng = np.random.default_rng(seed)
    X = law.draw(rng, (n, p))
    waves = np.sin(FREQUENCIES * X[:, :N_RELEVANT]) / np.sqrt(law.sine_var)
    y = waves.sum(axis=1) + NOISE_SD * rng.standard_normal(n)
    return (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
