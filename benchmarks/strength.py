"""How often intervals hold the true strength of an input, and bands of curves the true average effect.

The true strength of input j is the score of a model that knows the function: the mean over the distribution of the
inputs of |df/dx_j| sd_j sqrt(I(f)), where I(f) is the Fisher information of an observation about the function, 1 / s^2
for normal noise. `rank(..., intervals=True)` draws it. The true average effect of an input at a value is the mean of
the function over the distribution of the other inputs; `effects` has a band for it.

For functions with steps no interval of a smooth kernel holds the strength; the column "rougher" says how often
`smoothness_check` finds that.

python benchmarks/strength.py run --sets 200 --out FILE    # --processes, --rows, --only; goes on where it stopped
python benchmarks/strength.py summary --out FILE           # coverage, bias and width for each function
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtr
from threadpoolctl import threadpool_limits

import gpsift as gs
from gpsift.gp import smoothness_check

LEVEL = 0.9
NORMAL_QUANTILE = 1.6448536269514722  # of a two-sided interval at this level
N_INPUTS = 8
N_POPULATION = 4000
STEP = 1e-5
# Curves are compared at every fourth of their values, with this many rows and more.
CURVE_STEP = 4
LEAST_CURVE_ROWS = 100


class Target(NamedTuple):
    """What is observed of the function f: a draw, and the Fisher information of an observation about f."""

    likelihood: str
    draw: Callable[[np.random.Generator, np.ndarray], np.ndarray]
    information: Callable[[np.ndarray], np.ndarray]


class Problem(NamedTuple):
    """A function of the inputs, its observations, the distribution of the inputs, and which of them matter."""

    function: Callable[[np.ndarray], np.ndarray]
    target: Target
    draw_inputs: Callable[[np.random.Generator, int], np.ndarray]
    relevant: tuple[int, ...]


def normal_noise(sd: float) -> Target:
    return Target("gaussian", lambda rng, f: f + sd * rng.normal(size=f.size), lambda f: np.full(f.size, sd**-2))


def student_noise(scale: float, df: float) -> Target:
    information = (df + 1.0) / (df + 3.0) / scale**2
    return Target(
        "student-t", lambda rng, f: f + scale * rng.standard_t(df, f.size), lambda f: np.full(f.size, information)
    )


def probit_information(f: np.ndarray) -> np.ndarray:
    return np.exp(-(f**2)) / (2.0 * np.pi) / (ndtr(f) * ndtr(-f))


CLASSES = Target("bernoulli", lambda rng, f: (rng.uniform(size=f.size) < ndtr(f)).astype(float), probit_information)
COUNTS = Target("poisson", lambda rng, f: rng.poisson(np.exp(f)).astype(float), np.exp)


def uniform(low: float, high: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda rng, n: rng.uniform(low, high, size=(n, N_INPUTS))


def normal(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(size=(n, N_INPUTS))


def friedman(X: np.ndarray) -> np.ndarray:
    return 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


def ishigami(X: np.ndarray) -> np.ndarray:
    return np.sin(X[:, 0]) + 7 * np.sin(X[:, 1]) ** 2 + 0.1 * X[:, 2] ** 4 * np.sin(X[:, 0])


def lines(X: np.ndarray) -> np.ndarray:
    return X[:, :4] @ np.array([1.0, 0.7, 0.4, 0.2])


def cosine_and_products(X: np.ndarray) -> np.ndarray:
    return 1.5 * np.cos(1.5 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.8 * X[:, 3] + 0.4 * X[:, 4]


def tanh_and_waves(X: np.ndarray) -> np.ndarray:
    return np.tanh(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.3 * X[:, 2] ** 2 + 0.5 * np.sin(2 * X[:, 3])


def steps(X: np.ndarray) -> np.ndarray:
    return np.tanh(8 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0)


def process(seed: int) -> Callable[[np.ndarray], np.ndarray]:
    """Draw a function of a Gaussian process with length-scales 1, 1.5, 3 and 6, as a sum of many cosines."""
    rng, m = np.random.default_rng([seed, 1]), 500
    frequency = rng.normal(size=(m, 4)) / [1.0, 1.5, 3.0, 6.0]
    phase, weight = rng.uniform(0, 2 * np.pi, m), rng.normal(size=m) * np.sqrt(2 / m)
    return lambda X: np.cos(X[:, :4] @ frequency.T + phase) @ weight


def problem_of(name: str, seed: int) -> Problem:
    five = (0, 1, 2, 3, 4)
    problems = {
        "Friedman": Problem(friedman, normal_noise(1.0), uniform(0, 1), five),
        "four lines": Problem(lines, normal_noise(1.0), normal, (0, 1, 2, 3)),
        "cosine, product, lines": Problem(cosine_and_products, normal_noise(0.5), normal, five),
        "Gaussian process": Problem(process(seed), normal_noise(0.3), normal, (0, 1, 2, 3)),
        "Ishigami": Problem(ishigami, normal_noise(1.0), uniform(-np.pi, np.pi), (0, 1, 2)),
        "tanh, line, square, sine": Problem(tanh_and_waves, normal_noise(0.5), normal, (0, 1, 2, 3)),
        "steps": Problem(steps, normal_noise(0.5), normal, (0, 1, 2)),
        "two classes": Problem(cosine_and_products, CLASSES, normal, five),
        "counts": Problem(lambda X: 0.7 + 0.5 * cosine_and_products(X), COUNTS, normal, five),
        "Student-t noise": Problem(cosine_and_products, student_noise(0.5, 4.0), normal, five),
    }
    return problems[name]


NAMES = (
    "Friedman",
    "four lines",
    "cosine, product, lines",
    "Gaussian process",
    "Ishigami",
    "tanh, line, square, sine",
    "steps",
    "two classes",
    "counts",
    "Student-t noise",
)


def strength_at(problem: Problem, X: np.ndarray) -> np.ndarray:
    """Return the strength of each input over some rows, (p,)."""
    root = np.sqrt(problem.target.information(problem.function(X)))
    moves = STEP * np.eye(N_INPUTS)
    slopes = [np.mean(root * np.abs(problem.function(X + move) - problem.function(X - move))) for move in moves]
    return np.array(slopes) / (2 * STEP) * X.std(axis=0)


def true_strength(problem: Problem) -> np.ndarray:
    """Return the strength of each input over the distribution of the inputs, (p,)."""
    return strength_at(problem, problem.draw_inputs(np.random.default_rng(0), N_POPULATION))


def average_effect(problem: Problem, j: int, values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the mean of the function over the distribution of the other inputs, with input j at each value.

    As the curves, it is less its average over the values of the input in some rows.
    """
    rng = np.random.default_rng(0)
    X = problem.draw_inputs(rng, N_POPULATION)
    means = []
    for value in [*values, np.resize(rows, N_POPULATION)]:
        X[:, j] = value
        means.append(problem.function(X).mean())
    return np.array(means[:-1]) - means[-1]


def measured(name: str, n: int, seed: int) -> dict[str, Any]:
    """Fit one data set, and return the true strengths with their intervals, and how often bands hold the effects."""
    warnings.simplefilter("ignore")
    problem = problem_of(name, seed)
    rng = np.random.default_rng([seed, n, NAMES.index(name)])
    X = problem.draw_inputs(rng, n)
    y = problem.target.draw(rng, problem.function(X))
    with threadpool_limits(1):
        fitted, fit_seconds = timed(lambda: gs.GP(likelihood=problem.target.likelihood).fit(X, y))
        ranking, seconds = timed(lambda: gs.rank(fitted, X, intervals=True))
        has_curves = problem.target.likelihood == "gaussian" and n >= LEAST_CURVE_ROWS
        curves = curve_coverage(problem, fitted) if has_curves else {}
        rougher = smoothness_check(fitted) is not None
    found = {
        "true": true_strength(problem),
        "score": ranking.scores,
        "low": ranking.interval(LEVEL)[:, 0],
        "median": ranking.strength,
        "high": ranking.interval(LEVEL)[:, 1],
    }
    return {
        "name": name,
        "n": n,
        "seed": seed,
        "relevant": list(problem.relevant),
        "fit_seconds": round(fit_seconds, 3),
        "seconds": round(seconds, 3),
        "k_hat": ranking.k_hat,
        "rougher": rougher,
        **curves,
        **{key: values.round(5).tolist() for key, values in found.items()},
    }


def curve_coverage(problem: Problem, fitted: gs.gp.FittedGP) -> dict[str, float]:
    """Return how often 90 % bands hold the true average effect, over values of all curves of relevant inputs."""
    used = [j for j in problem.relevant if j in fitted.used]
    held: dict[str, list[np.ndarray]] = {"curves_function": [], "curves_both": []}
    by_name = {curve.name: curve for curve in gs.effects(fitted, features=used, intervals=True)}
    for alone in gs.effects(fitted, features=used):
        j, x = fitted.inputs.names.index(alone.name), alone.x[::CURVE_STEP]
        truth = average_effect(problem, j, x, fitted.inputs.X[:, j])
        for kind, curve in zip(held, (alone, by_name[alone.name]), strict=True):
            error = np.abs(curve.mean[::CURVE_STEP] - truth)
            held[kind].append(error <= NORMAL_QUANTILE * curve.sd[::CURVE_STEP])
    return {kind: float(np.mean(found)) if found else float("nan") for kind, found in held.items()}


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    found = call()
    return found, time.process_time() - start


def run(out: Path, names: list[str], rows: list[int], n_sets: int, processes: int, seconds: float) -> None:
    """Measure all data sets that the file lacks, until the time is over."""
    known = {(record["name"], record["n"], record["seed"]) for record in records(out)}
    wanted = [(name, n, seed) for seed in range(n_sets) for n in rows for name in names]
    with ProcessPoolExecutor(processes) as pool, out.open("a") as stream:
        started = time.monotonic()
        tasks = [pool.submit(measured, *task) for task in wanted if task not in known]
        try:
            for task in as_completed(tasks, timeout=seconds):
                stream.write(json.dumps(task.result()) + "\n")
                stream.flush()
        except TimeoutError:
            print(f"stopped after {time.monotonic() - started:.0f} s")
            pool.shutdown(wait=False, cancel_futures=True)
            for process in pool._processes.values():
                process.terminate()


def records(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def summary(file: Path) -> pd.DataFrame:
    """Return coverage over the relevant inputs and of the worst one, and the medians over the truth."""
    lines = []
    frame = pd.DataFrame(records(file))
    for (n, name), some in frame.groupby(["n", "name"], sort=False):
        relevant = some["relevant"].iloc[0]
        true, score, low, median, high = (
            np.array(some[key].tolist()) for key in ("true", "score", "low", "median", "high")
        )
        held = ((low <= true) & (true <= high))[:, relevant]
        inert = np.setdiff1d(np.arange(true.shape[1]), relevant)
        lines.append(
            {
                "rows": n,
                "function": name,
                "sets": len(some),
                "coverage": held.mean(),
                "worst input": held.mean(axis=0).min(),
                "median / truth": np.median(median[:, relevant] / true[:, relevant]),
                "score / truth": np.median(score[:, relevant] / true[:, relevant]),
                "width / truth": np.median((high - low)[:, relevant] / true[:, relevant]),
                "inert low < 0.05 of top": np.mean(low[:, inert] < 0.05 * median.max(axis=1, keepdims=True)),
                "score in interval": np.mean(((low <= score) & (score <= high))[:, relevant]),
                "curves, function": some["curves_function"].mean(),
                "curves, both": some["curves_both"].mean(),
                "rougher": some["rougher"].mean(),
                "in fits": np.median(some["seconds"] / some["fit_seconds"]),
            }
        )
    return pd.DataFrame(lines).sort_values(["rows", "function"], kind="stable")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("run", "summary"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=list(NAMES), choices=NAMES)
    parser.add_argument("--rows", type=int, nargs="*", default=[80, 200])
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this time")
    chosen = parser.parse_args()
    if chosen.action == "run":
        run(chosen.out, chosen.only, chosen.rows, chosen.sets, chosen.processes, chosen.seconds)
    else:
        print(summary(chosen.out).to_string(index=False, float_format=lambda value: f"{value:.2f}"))


if __name__ == "__main__":
    main()
