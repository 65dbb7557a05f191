"""The data sets: what inputs are drawn, which function of them is the truth, and what is observed of it.

The columns of every data set are shuffled, so that no method gains from where the true ones are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from zlib import crc32

import numpy as np
from scipy.special import ndtr

from benchmarks.battery import functions
from benchmarks.battery.functions import Function
from benchmarks.battery.indices import Law, Spread, spread

TEST_ROWS = 500
# An input with a smaller share of the variance, and more than nothing, is neither true nor false: a few hundred rows
# cannot tell it from an inert one. Totals below the second number are nothing but rounding.
FAINT, NOTHING = 0.01, 1e-20
# Noise of engineers' functions, as a share of the variance of the target.
NOISE_SHARE = 0.05
DECOY_CORRELATION = 0.95

Observe = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class Inputs:
    """How inputs are drawn: their law, the correlation of neighbours, and whether the last one is a decoy.

    The decoy is a copy of the first input with noise, and has no effect of its own.
    """

    law: Law
    neighbours: float = 0.0
    decoy: bool = False

    @property
    def are_independent(self) -> bool:
        return not (self.neighbours or self.decoy)

    def draw(self, n: int, p: int, rng: np.random.Generator) -> np.ndarray:
        if self.law == "uniform":
            return rng.uniform(size=(n, p))
        X = rng.standard_normal((n, p))
        for j in range(1, p):
            X[:, j] = mixed_with(X[:, j - 1], X[:, j], self.neighbours)
        if self.decoy:
            X[:, -1] = mixed_with(X[:, 0], X[:, -1], DECOY_CORRELATION)
        return X


def mixed_with(x: np.ndarray, noise: np.ndarray, correlation: float) -> np.ndarray:
    """Standard normal numbers that correlate with x."""
    return correlation * x + np.sqrt(1.0 - correlation**2) * noise


UNIFORM, NORMAL = Inputs("uniform"), Inputs("normal")


@dataclass(frozen=True, eq=False)
class DataSet:
    """Rows to learn from and to test on, and the truth about each column.

    `judged` are the columns that are true or inert, and not faint; `shares` are total Sobol indices, where inputs are
    independent.
    """

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    true: np.ndarray
    judged: np.ndarray
    shares: np.ndarray | None
    likelihood: str
    seed: int


@dataclass(frozen=True)
class Task:
    """A way to draw data sets. The function's inputs are in the columns `columns`, the first ones by default."""

    name: str
    family: str
    p: int
    inputs: Inputs
    function: Function | None
    n_inputs: int
    observe: Observe
    likelihood: str = "gaussian"
    columns: tuple[int, ...] = ()
    spread_to: float | None = None

    @cached_property
    def spread(self) -> Spread | None:
        """Mean, variance and total indices of the function, if inputs were independent."""
        return None if self.function is None else spread(self.function, self.n_inputs, self.inputs.law)

    @cached_property
    def total(self) -> np.ndarray:
        """The total index of each column before they are shuffled, (p,)."""
        total = np.zeros(self.p)
        if self.spread is not None:
            total[list(self.columns or range(self.n_inputs))] = self.spread.total
        return np.where(total > NOTHING, total, 0.0)

    def latent(self, X: np.ndarray) -> np.ndarray:
        """The function at rows, in its own units, or with mean 0 and standard deviation `spread_to`."""
        if self.function is None or self.spread is None:
            return np.zeros(len(X))
        f = self.function(X[:, list(self.columns or range(self.n_inputs))])
        if self.spread_to is None:
            return f
        return self.spread_to * (f - self.spread.mean) / np.sqrt(self.spread.var)

    def draw(self, n: int, seed: int) -> DataSet:
        """The data set with n rows of a seed: the same at every call, and another for every task."""
        rng = np.random.default_rng([seed, n, crc32(self.name.encode())])
        X = self.inputs.draw(n + TEST_ROWS, self.p, rng)
        y = self.observe(self.latent(X), X, rng)
        place = rng.permutation(self.p)
        X, total = X[:, place], self.total[place]
        return DataSet(
            X=X[:n],
            y=y[:n],
            X_test=X[n:],
            y_test=y[n:],
            true=total >= FAINT,
            judged=(total == 0.0) | (total >= FAINT),
            shares=total if self.inputs.are_independent and self.function is not None else None,
            likelihood=self.likelihood,
            seed=seed,
        )


def normal_noise(sd: float) -> Observe:
    return lambda f, X, rng: f + sd * rng.standard_normal(len(X))


def heavy_noise(scale: float, df: float) -> Observe:
    return lambda f, X, rng: f + scale * rng.standard_t(df, len(X))


def changing_noise(least: float, more: float, column: int) -> Observe:
    """Noise whose standard deviation grows along an input."""
    return lambda f, X, rng: f + (least + more * X[:, column]) * rng.standard_normal(len(X))


def two_classes() -> Observe:
    return lambda f, X, rng: (rng.uniform(size=len(X)) < ndtr(f)).astype(int)


def counts() -> Observe:
    """With a mean of about 3 where f is 0."""
    return lambda f, _, rng: rng.poisson(np.exp(1.0 + f))


def friedman(name: str, family: str, p: int, observe: Observe) -> Task:
    return Task(name, family, p, UNIFORM, functions.friedman, 5, observe)


def engineering(name: str, function: Function, n_inputs: int) -> Task:
    """A function of the unit box in units of its standard deviation, with ten inert inputs."""
    noise = normal_noise(float(np.sqrt(NOISE_SHARE / (1.0 - NOISE_SHARE))))
    return Task(name, "engineering", n_inputs + 10, UNIFORM, function, n_inputs, noise, spread_to=1.0)


def correlated(name: str, inputs: Inputs) -> Task:
    columns = (0, 5, 10, 15)
    return Task(name, "correlated", 20, inputs, functions.mixed, 4, normal_noise(0.7), columns=columns)


def of_latent(name: str, family: str, p: int, inputs: Inputs, function: Function, sd: float) -> Task:
    """Two classes or counts, whose latent function has mean 0 and a given standard deviation."""
    observe, likelihood = {"binary": (two_classes(), "bernoulli"), "counts": (counts(), "poisson")}[family]
    return Task(name, family, p, inputs, function, 5, observe, likelihood, spread_to=sd)


ALL = (
    friedman("friedman 10", "friedman", 10, normal_noise(1.0)),
    friedman("friedman 30", "friedman", 30, normal_noise(1.0)),
    friedman("friedman 100", "friedman", 100, normal_noise(1.0)),
    Task("linear sparse", "linear", 30, NORMAL, functions.linear_sparse, 5, normal_noise(1.0)),
    Task("linear dense", "linear", 30, NORMAL, functions.linear_dense, 15, normal_noise(1.5)),
    Task("products", "interaction", 10, NORMAL, functions.products, 4, normal_noise(0.7)),
    Task("waves", "interaction", 10, NORMAL, functions.waves, 5, normal_noise(0.7)),
    engineering("ishigami", functions.ishigami, 3),
    engineering("sobol g", functions.sobol_g, 5),
    engineering("borehole", functions.borehole, 8),
    engineering("wing weight", functions.wing_weight, 10),
    engineering("robot arm", functions.robot_arm, 8),
    engineering("otl circuit", functions.otl_circuit, 6),
    correlated("neighbours 0.5", Inputs("normal", neighbours=0.5)),
    correlated("neighbours 0.9", Inputs("normal", neighbours=0.9)),
    correlated("decoy", Inputs("normal", decoy=True)),
    friedman("heavy tails", "odd noise", 10, heavy_noise(1.5, 3)),
    friedman("changing noise", "odd noise", 10, changing_noise(0.2, 3.0, 3)),
    of_latent("classes friedman", "binary", 10, UNIFORM, functions.friedman, 2.5),
    of_latent("classes linear", "binary", 20, NORMAL, functions.linear_sparse, 2.5),
    of_latent("counts friedman", "counts", 10, UNIFORM, functions.friedman, 0.7),
    of_latent("counts linear", "counts", 20, NORMAL, functions.linear_sparse, 0.7),
    friedman("friedman 200", "wide", 200, normal_noise(1.0)),
    friedman("friedman 1000", "wide", 1000, normal_noise(1.0)),
    Task("nothing", "nothing", 30, NORMAL, None, 0, normal_noise(1.0)),
)
TASKS = {task.name: task for task in ALL}
