"""How near shares of variance are to the truth: VAR by its normal conditional and by residuals, and squared KL.

python benchmarks/effect_shares.py --seeds 10    # prints a table in Markdown; about three minutes

A task is a function of inputs that are made from normal ones, z ~ N(0, R), by a function of each column. Its total
effects E Var(f | all but x_j) come from the conditionals of z, which are known. The error of a measure is the sum over
the features of |share - true share|, where shares are scores divided by their sum; the table has means over the seeds.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri
from timing import one_thread
from toys import FREQUENCIES, UNIFORM

import gpsift as gs

ROWS = (100, 300)
TRUTH_ROWS, TRUTH_NODES = 2000, 50
MEASURES = {
    "normal": lambda gp: gs.rank(gp, measure=gs.VAR(conditional="normal")).scores,
    "residuals": lambda gp: gs.rank(gp, measure=gs.VAR(conditional="residuals")).scores,
    "KL squared": lambda gp: gs.rank(gp, measure=gs.KL()).scores ** 2,
}


@dataclass(frozen=True)
class Task:
    name: str
    function: Callable[[np.ndarray], np.ndarray]
    column: Callable[[np.ndarray], np.ndarray]  # from a normal column to an input
    n_features: int
    autocorrelation: float = 0.0
    noise_sd: float = 0.3

    @property
    def correlation(self) -> np.ndarray:
        places = np.arange(self.n_features)
        return self.autocorrelation ** np.abs(np.subtract.outer(places, places))

    def normals(self, n: int, rng: np.random.Generator) -> np.ndarray:
        return rng.multivariate_normal(np.zeros(self.n_features), self.correlation, size=n)

    @cached_property
    def true_shares(self) -> np.ndarray:
        Z, P = self.normals(TRUTH_ROWS, np.random.default_rng(99)), np.linalg.inv(self.correlation)
        nodes = ndtri((np.arange(TRUTH_NODES) + 0.5) / TRUTH_NODES)
        effects = np.empty(self.n_features)
        for j in range(self.n_features):
            moved = np.repeat(Z, TRUTH_NODES, axis=0)
            center = Z[:, j] - Z @ P[:, j] / P[j, j]
            moved[:, j] = np.add.outer(center, nodes / np.sqrt(P[j, j])).ravel()
            values = self.function(self.column(moved)).reshape(TRUTH_ROWS, TRUTH_NODES)
            effects[j] = values.var(axis=1).mean()
        return effects / effects.sum()

    def errors(self, n: int, seed: int) -> list[float]:
        rng = np.random.default_rng(seed)
        X = self.column(self.normals(n, rng))
        gp = gs.GP(hyper=gs.MAP()).fit(X, self.function(X) + self.noise_sd * rng.standard_normal(n))
        scores = [measured(gp) for measured in MEASURES.values()]
        return [float(np.abs(each / each.sum() - self.true_shares).sum()) for each in scores]


def waves(X: np.ndarray) -> np.ndarray:
    return (np.sin(FREQUENCIES * X) / np.sqrt(UNIFORM.sine_var)).sum(axis=1)


def friedman(X: np.ndarray) -> np.ndarray:
    return 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


def parabola(X: np.ndarray) -> np.ndarray:
    return 20 * (X[:, 0] - 0.5) ** 2 + 10 * X[:, 1]


def bends(X: np.ndarray) -> np.ndarray:
    return 2 * np.sin(X[:, 0]) + X[:, 1] + 0.5 * X[:, 2] ** 2 + 0.5 * X[:, 3] * X[:, 4]


def saturating(X: np.ndarray) -> np.ndarray:
    return 2 * np.log1p(X[:, 0]) + 0.7 * X[:, 1] + np.sin(2 * X[:, 2]) + 0.3 * X[:, 3] * X[:, 0] / (1 + X[:, 0])


TASKS = (
    Task("the paper's toy, uniform", waves, lambda Z: 2 * ndtr(Z) - 1, 8),
    Task("Friedman's function, uniform, p = 10", friedman, ndtr, 10, noise_sd=1.0),
    Task("20 (x1 - 1/2)² + 10 x2, uniform", parabola, ndtr, 2, noise_sd=1.0),
    Task("bends and a product, normal, AR 0.9", bends, lambda Z: Z, 6, 0.9),
    Task("saturating, log-normal", saturating, np.exp, 6),
    Task("saturating, log-normal of AR 0.6", saturating, np.exp, 6, 0.6),
    Task("Friedman's function, uniform of AR 0.6", friedman, ndtr, 10, 0.6, noise_sd=1.0),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    n_seeds = parser.parse_args().seeds
    warnings.simplefilter("ignore", gs.GPSiftWarning)
    print(f"| inputs and function | n | {' | '.join(MEASURES)} |\n|---|---|{'---|' * len(MEASURES)}")
    with one_thread():
        for task in TASKS:
            for n in ROWS:
                errors = np.mean([task.errors(n, seed) for seed in range(n_seeds)], axis=0)
                print(f"| {task.name} | {n} | {' | '.join(f'{error:.2f}' for error in errors)} |", flush=True)


if __name__ == "__main__":
    main()
