"""How often intervals hold the true strength of an input: those of `rank`, and draws of the function itself.

The true strength of input j is the mean of |df/dx_j| over the distribution of the inputs, per standard deviation of
the input and of the noise: the KL score of a model that knows the function. Three kinds of intervals are compared:

- *scores*: scores of models with drawn hyperparameters, with the posterior mean as the function (`Ranking.interval`);
- *functions*: for each draw of the hyperparameters a function is drawn from its posterior, and scored at the rows as if
  it were known. A function is drawn pathwise (Wilson et al. 2020): a draw from the prior, made of random Fourier
  features, plus the correction k(x, X) (K + s^2 I)^-1 (y - prior(X) - noise). Each of `PRIORS` gives hyperparameters;
- *functions and rows*: the rows have random weights besides, those of the Bayesian bootstrap (Rubin 1981), since the
  rows are a sample, too.

Intervals are also compared with the strength at the rows alone, in which the inputs are as they are.

python benchmarks/strength.py run --sets 40 --out FILE     # --processes, --rows, --only; goes on where it stopped
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
from scipy.linalg import cho_factor, cho_solve
from threadpoolctl import threadpool_limits

import gpsift as gs
from gpsift._utils.priors import GammaPrior, InverseGamma
from gpsift.gp.hyperparameters.laplace_approximation import LaplaceApproximation
from gpsift.gp.refit import open_problem

LEVEL = 0.9
N_DRAWS = 96
N_FEATURES = 600
N_INPUTS = 8
N_POPULATION = 4000
STEP = 1e-5
LEVEL_PRIOR = GammaPrior(4.0, 4.0)
# Length-scale priors of the drawn hyperparameters; the first is that of today's intervals.
PRIORS = {
    f"IG(1, {scale:g})": gs.MAP(lengthscale=InverseGamma(1.0, scale), constant=LEVEL_PRIOR, starts=1)
    for scale in (1.0, 2.0)
}


class Problem(NamedTuple):
    """A function of the inputs, the standard deviation of its noise, its inputs, and which of them it depends on."""

    function: Callable[[np.ndarray], np.ndarray]
    noise_sd: float
    draw_inputs: Callable[[np.random.Generator, int], np.ndarray]
    relevant: tuple[int, ...]


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
    rng = np.random.default_rng([seed, 1])
    frequency = rng.normal(size=(2000, 4)) / [1.0, 1.5, 3.0, 6.0]
    phase, weight = rng.uniform(0, 2 * np.pi, 2000), rng.normal(size=2000) * np.sqrt(2 / 2000)
    return lambda X: np.cos(X[:, :4] @ frequency.T + phase) @ weight


def problem_of(name: str, seed: int) -> Problem:
    problems = {
        "Friedman": Problem(friedman, 1.0, uniform(0, 1), (0, 1, 2, 3, 4)),
        "four lines": Problem(lines, 1.0, normal, (0, 1, 2, 3)),
        "cosine, product, lines": Problem(cosine_and_products, 0.5, normal, (0, 1, 2, 3, 4)),
        "Gaussian process": Problem(process(seed), 0.3, normal, (0, 1, 2, 3)),
        "Ishigami": Problem(ishigami, 1.0, uniform(-np.pi, np.pi), (0, 1, 2)),
        "tanh, line, square, sine": Problem(tanh_and_waves, 0.5, normal, (0, 1, 2, 3)),
        "steps": Problem(steps, 0.5, normal, (0, 1, 2)),
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
)


def strength_at(problem: Problem, X: np.ndarray) -> np.ndarray:
    """Return the strength of each input over some rows, (p,)."""
    moves = STEP * np.eye(N_INPUTS)
    slopes = [np.abs(problem.function(X + move) - problem.function(X - move)).mean() for move in moves]
    return np.array(slopes) / (2 * STEP) * X.std(axis=0) / problem.noise_sd


def true_strength(problem: Problem) -> np.ndarray:
    """Return the strength of each input over the distribution of the inputs, (p,)."""
    return strength_at(problem, problem.draw_inputs(np.random.default_rng(0), N_POPULATION))


def drawn_strengths(fitted: gs.gp.FittedGP, prior: gs.MAP, seed: int) -> np.ndarray:
    """Return strengths (2, s, p) of functions from the posterior, at the rows and with random weights of these."""
    rng = np.random.default_rng([seed, 2])
    _, problem = open_problem(fitted)
    approximation = LaplaceApproximation.fit(problem, problem.log_params, prior)
    places = approximation.sample(N_DRAWS, seed)
    strengths = np.zeros((2, N_DRAWS, fitted.inputs.n_features))
    open_columns = list(fitted.open_columns)
    for number, draw in enumerate(approximation.at(places)):
        kernel, likelihood = problem.split(draw.log_params)
        slopes = np.abs(drawn_gradient(kernel, float(likelihood.noise_var), problem.X, problem.y, rng))
        weights = rng.dirichlet(np.ones(len(slopes)))
        sd = np.sqrt(weights @ problem.X**2 - (weights @ problem.X) ** 2)
        both = np.array([slopes.mean(axis=0), sd * (weights @ slopes)])
        strengths[:, number, open_columns] = both / np.sqrt(likelihood.noise_var)
    return strengths


def drawn_gradient(
    kernel: gs.kernels.Kernel, noise_var: float, X: np.ndarray, y: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return the gradient at the rows of one function from the posterior, (n, p)."""
    n, p = X.shape
    radial, level = kernel.product_terms(p)
    lengthscale, signal_var = np.asarray(radial.lengthscale), radial.variance
    frequency = rng.normal(size=(N_FEATURES, p)) / lengthscale
    angle = X @ frequency.T + rng.uniform(0, 2 * np.pi, N_FEATURES)
    weight = rng.normal(size=N_FEATURES) * np.sqrt(2 * signal_var / N_FEATURES)
    prior = np.cos(angle) @ weight + np.sqrt(level.variance) * rng.normal()
    U = X / lengthscale
    K = signal_var * np.exp(-0.5 * ((U[:, None] - U) ** 2).sum(axis=-1))
    factor = cho_factor(K + level.variance + noise_var * np.eye(n), lower=True)
    correction = cho_solve(factor, y - prior - np.sqrt(noise_var) * rng.normal(size=n))
    # d k(x_i, x_k) / dx_ij = -K_ik (x_ij - x_kj) / l_j^2
    weighted = K * correction
    moved = (weighted.sum(axis=1)[:, None] * X - weighted @ X) / lengthscale**2
    return -(np.sin(angle) * weight) @ frequency - moved


def measured(name: str, n: int, seed: int) -> dict[str, Any]:
    """Fit one data set, and return the true strengths with the intervals and medians of every kind."""
    warnings.simplefilter("ignore")
    problem = problem_of(name, seed)
    rng = np.random.default_rng([seed, n, NAMES.index(name)])
    X = problem.draw_inputs(rng, n)
    y = problem.function(X) + problem.noise_sd * rng.normal(size=n)
    with threadpool_limits(1):
        fitted, fit_seconds = timed(lambda: gs.GP().fit(X, y))
        ranking = gs.rank(fitted, X)
        interval, seconds = timed(lambda: ranking.interval(LEVEL))
        kinds = {"scores": found_by(interval[:, 0], ranking.scores, interval[:, 1], seconds)}
        for label, prior in PRIORS.items():
            drawn, seconds = timed(lambda prior=prior: drawn_strengths(fitted, prior, seed))
            for kind, strengths in zip(("functions", "functions and rows"), drawn, strict=True):
                ends = np.quantile(strengths, [0.5 - LEVEL / 2, 0.5, 0.5 + LEVEL / 2], axis=0)
                kinds[f"{kind}, {label}"] = found_by(*ends, seconds)
    return {
        "name": name,
        "n": n,
        "seed": seed,
        "relevant": list(problem.relevant),
        "true": true_strength(problem).round(5).tolist(),
        "true at rows": strength_at(problem, X).round(5).tolist(),
        "fit_seconds": round(fit_seconds, 3),
        "kinds": kinds,
    }


def found_by(low: np.ndarray, middle: np.ndarray, high: np.ndarray, seconds: float) -> dict[str, Any]:
    """Return an interval of each input, and the time that they took, as plain numbers."""
    ends = {"low": low, "middle": middle, "high": high}
    return {name: values.round(5).tolist() for name, values in ends.items()} | {"seconds": round(seconds, 3)}


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
    """Return coverage over the relevant inputs and of the worst one, and the middle of the intervals over the truth."""
    lines = []
    frame = pd.DataFrame(records(file))
    for (n, name), some in frame.groupby(["n", "name"], sort=False):
        relevant = some["relevant"].iloc[0]
        true, at_rows = np.array(some["true"].tolist()), np.array(some["true at rows"].tolist())
        for kind in some["kinds"].iloc[0]:
            low, middle, high = (
                np.array([each[kind][key] for each in some["kinds"]]) for key in ("low", "middle", "high")
            )
            held = ((low <= true) & (true <= high))[:, relevant]
            held_at_rows = ((low <= at_rows) & (at_rows <= high))[:, relevant]
            inert = np.setdiff1d(np.arange(true.shape[1]), relevant)
            lines.append(
                {
                    "rows": n,
                    "function": name,
                    "intervals": kind,
                    "sets": len(some),
                    "coverage": held.mean(),
                    "worst input": held.mean(axis=0).min(),
                    "coverage at the rows": held_at_rows.mean(),
                    "middle / truth": np.median(middle[:, relevant] / true[:, relevant]),
                    "width / truth": np.median((high - low)[:, relevant] / true[:, relevant]),
                    "inert low < 0.05 of top": np.mean(low[:, inert] < 0.05 * middle.max(axis=1, keepdims=True)),
                    "in fits": np.median([each[kind]["seconds"] for each in some["kinds"]] / some["fit_seconds"]),
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
