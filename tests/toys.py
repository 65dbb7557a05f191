"""The toy of the paper (its equation 7): eight equally relevant features from nearly linear to a full sine wave."""

import numpy as np


def toy(law, n, seed, p=8):
    rng = np.random.default_rng(seed)
    frequency = np.linspace(np.pi / 10, np.pi, p)
    if law == "uniform":
        X = rng.uniform(-1, 1, size=(n, p))
        variance = 0.5 - np.sin(2 * frequency) / (4 * frequency)
    else:
        X = 0.4 * rng.normal(size=(n, p))
        variance = 0.5 * (1 - np.exp(-2 * (0.4 * frequency) ** 2))
    y = np.sum(np.sin(frequency * X) / np.sqrt(variance), axis=1) + 0.3 * rng.normal(size=n)
    return X, y
