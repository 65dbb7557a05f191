"""Data sets whose relevant columns are known: those on which the target depends, given the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

Target = Callable[[np.ndarray, np.ndarray], np.ndarray]
Rows = Callable[[np.random.Generator, int, int], np.ndarray]


@dataclass(frozen=True)
class Design:
    """How columns are drawn, how the target depends on them and noise, and on which of them.

    What a column does that is `neither` relevant nor irrelevant is not counted.
    """

    title: str
    rows: Rows
    target: Target
    relevant: tuple[int, ...]
    neither: tuple[int, ...] = ()
    noise_is_a_series: bool = False

    def drawn(self, n: int, p: int, seed: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng([*seed, n, p])
        X = self.rows(rng, n, p)
        noise = series(rng, n, 1)[:, 0] if self.noise_is_a_series else rng.normal(size=n)
        return X, self.target(X, noise)


def independent(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    return rng.normal(size=(n, p))


def neighbours(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    """Correlation 0.9 to the power of the columns' distance."""
    Z = rng.normal(size=(n, p))
    for j in range(1, p):
        Z[:, j] = 0.9 * Z[:, j - 1] + np.sqrt(1.0 - 0.9**2) * Z[:, j]
    return Z


def alike(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    """Correlation 0.5 of all pairs."""
    return np.sqrt(0.5) * (rng.normal(size=(n, p)) + rng.normal(size=(n, 1)))


def skewed(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    return np.exp(independent(rng, n, p))


def zero_or_one(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    return (independent(rng, n, p) > 0.5).astype(float)


def parabolas(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    """Every second column is the square of the one before, and noise: no normal conditional describes it."""
    X = independent(rng, n, p)
    X[:, 1::2] = X[:, 0::2] ** 2 + 0.3 * X[:, 1::2]
    return X


def scales(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    """Every second column has a standard deviation that the one before decides, and no correlation with it."""
    X = independent(rng, n, p)
    X[:, 1::2] *= np.exp(X[:, 0::2])
    return X


def series(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    """Rows that follow each other in time, each like the one before: they are no independent draws."""
    Z = rng.normal(size=(n, p))
    for i in range(1, n):
        Z[i] = 0.95 * Z[i - 1] + np.sqrt(1.0 - 0.95**2) * Z[i]
    return Z


def friedman(X: np.ndarray, noise: np.ndarray) -> np.ndarray:
    return friedman_of(ndtr(X)) + 2.0 * noise


def friedman_of(U: np.ndarray) -> np.ndarray:
    """Friedman's function of five inputs between 0 and 1."""
    return 10 * np.sin(np.pi * U[:, 0] * U[:, 1]) + 20 * (U[:, 2] - 0.5) ** 2 + 10 * U[:, 3] + 5 * U[:, 4]


def noise_alone(_X: np.ndarray, noise: np.ndarray) -> np.ndarray:
    return noise


def linear(X: np.ndarray, noise: np.ndarray) -> np.ndarray:
    return X[:, :5].sum(axis=1) + 2.0 * noise


def products(X: np.ndarray, noise: np.ndarray) -> np.ndarray:
    return X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + X[:, 4] + 0.7 * noise


def switches(X: np.ndarray, noise: np.ndarray) -> np.ndarray:
    return X[:, :5].sum(axis=1) + X[:, 0] * X[:, 1] + 0.7 * noise


def far_apart(X: np.ndarray, noise: np.ndarray) -> np.ndarray:
    return np.sin(2.0 * X[:, 0]) + X[:, 7] + X[:, 3] * X[:, 9] + 0.5 * noise


def changing_noise(X: np.ndarray, noise: np.ndarray) -> np.ndarray:
    return X[:, 0] + 0.5 * np.exp(X[:, 1]) * noise


def two_curves(X: np.ndarray, noise: np.ndarray) -> np.ndarray:
    return np.sin(2.0 * X[:, 0]) + X[:, 4] + 0.5 * noise


def evens(X: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Even functions of columns whose neighbours know their size."""
    return np.abs(X[:, 0]) + X[:, 2] ** 2 + X[:, 4] + 0.5 * noise


FIVE = (0, 1, 2, 3, 4)
DESIGNS = {
    "null": Design("nothing matters", independent, noise_alone, ()),
    "null, neighbours": Design("nothing matters, columns correlated 0.9", neighbours, noise_alone, ()),
    "Friedman": Design("Friedman's function", independent, friedman, FIVE),
    "Friedman, alike": Design("Friedman's function, columns correlated 0.5", alike, friedman, FIVE),
    "linear": Design("five straight lines", independent, linear, FIVE),
    "linear, alike": Design("five straight lines, columns correlated 0.5", alike, linear, FIVE),
    "products": Design("two products and a line", independent, products, FIVE),
    "neighbours": Design("curves, lines and a product, columns correlated 0.9", neighbours, far_apart, (0, 3, 7, 9)),
    "skewed": Design("Friedman's function, columns skewed", skewed, lambda X, noise: friedman(np.log(X), noise), FIVE),
    "0/1": Design("columns of zeros and ones", zero_or_one, switches, FIVE),
    "changing noise": Design("a line, another column moves the noise", independent, changing_noise, (0,), (1,)),
    "parabolas": Design("columns that are curved functions of others", parabolas, two_curves, (0, 4)),
    "scales": Design("columns whose spread others decide", scales, evens, (0, 2, 4)),
    "series": Design("rows and noise that follow each other in time", series, linear, FIVE, noise_is_a_series=True),
}
# Those that try to break the test, beyond the ones that it was built on.
BREAKERS = ("scales", "series")
