"""Intervals of scores: their ends beside those of a sampler, how often they cover the truth, and what they cost.

python benchmarks/intervals.py nuts --out FILE                 # eight data sets; needs GPSIFT_DATA, and gpsift[nuts]
python benchmarks/intervals.py coverage --rows 80 --out FILE   # 200 simulated data sets
python benchmarks/intervals.py cost --out FILE                 # 300 rows, 13 inputs; Housing needs GPSIFT_DATA
python benchmarks/intervals.py summary --out FILE              # what is in the file, as a table

Every data set is a line of the file; what is in it already is left.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from effect_shares import friedman
from timing import one_thread

import gpsift as gs
from gpsift.gp.hyperparameters.laplace_approximation import default_prior
from gpsift.paper.datasets import load, paper_toy

LEVEL = 0.9
MEASURES = {"KL": gs.KL(), "VAR": gs.VAR(conditional="normal")}
# Length-scales of the process that the simulated data sets are drawn from; the last two inputs do next to nothing.
LENGTHSCALES = np.array([1.0, 1.5, 3.0, 6.0, 1e6, 1e6])
N_WORKING = 4
NOISE_SD = 0.3
N_SETS = 200
# A level that vanishes, for a model of the truth, which has none.
NO_LEVEL = 1e-8
# The sampler's chains, draws and tuning; as many draws become models.
CHAINS, DRAWS, TUNE, KEPT = 2, 750, 400, 500
# Rows and inputs of the data sets of `cost`, how often fit and intervals take turns, and how many sets of each kind.
COST_ROWS, COST_INPUTS, ROUNDS, SETS_EACH = 300, 13, 3, 2


class Rows(NamedTuple):
    X: np.ndarray
    y: np.ndarray


def of_paper(name: str, n: int | None, seed: int = 0) -> Rows:
    """A data set of the paper, or some of its rows."""
    data = load(name, download=False)
    rows = np.random.default_rng(seed).permutation(len(data.y))[:n]
    return Rows(data.X.to_numpy(float)[rows], data.y.to_numpy(float)[rows])


def of_scale(name: str, n: int) -> Rows:
    """Some rows of a larger data set."""
    from scale import data_set  # only here: it brings the peers, which coverage does without

    return Rows(*data_set(name, n))


def of_function(function: Callable[[np.ndarray], np.ndarray], X: np.ndarray, noise_sd: float) -> Rows:
    noise = noise_sd * np.random.default_rng(1).normal(size=len(X))
    return Rows(X, function(X) + noise)


def of_process(n: int, seed: int, lengthscales: np.ndarray = LENGTHSCALES) -> Rows:
    """A draw of a Gaussian process, with noise."""
    rng = np.random.default_rng([seed, n])
    X = rng.normal(size=(n, lengthscales.size))
    scaled = X / lengthscales
    K = np.exp(-0.5 * np.sum((scaled[:, None] - scaled) ** 2, axis=2))
    latent = np.linalg.cholesky(K + 1e-9 * np.eye(n)) @ rng.normal(size=n)
    return Rows(X, latent + NOISE_SD * rng.normal(size=n))


def toy_rows(n: int) -> Rows:
    toy = paper_toy("normal", n=n)
    return Rows(np.asarray(toy.X, dtype=float), np.asarray(toy.y, dtype=float))


def inputs(n: int, p: int) -> np.random.Generator:
    return np.random.default_rng([0, n, p])


DATA_SETS: dict[str, Callable[[], Rows]] = {
    "Concrete": lambda: of_paper("concrete", None),
    "Housing": lambda: of_paper("housing", 120),
    "Auto MPG": lambda: of_scale("autompg", 100),
    "Airfoil": lambda: of_scale("airfoil", 100),
    "the paper's toy": lambda: toy_rows(100),
    "Friedman": lambda: of_function(friedman, inputs(100, 10).uniform(size=(100, 10)), 1.0),
    "draw of a process": lambda: of_process(80, 0),
    "sine and line": lambda: of_function(
        lambda X: np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1], inputs(60, 4).normal(size=(60, 4)), NOISE_SD
    ),
}


def of_inputs(seed: int, function: Callable[[np.ndarray], np.ndarray], noise_sd: float) -> Rows:
    """Uniform inputs, as many as `cost` has, and a function of them with noise."""
    rng = np.random.default_rng([seed, COST_ROWS, COST_INPUTS])
    X = rng.uniform(size=(COST_ROWS, COST_INPUTS))
    return Rows(X, function(X) + noise_sd * rng.normal(size=COST_ROWS))


COST_SETS: dict[str, Callable[[int], Rows]] = {
    "Friedman": lambda seed: of_inputs(seed, friedman, 1.0),
    "Housing": lambda seed: of_paper("housing", COST_ROWS, seed),
    "draw of a process": lambda seed: of_process(
        COST_ROWS, seed, np.pad(LENGTHSCALES[:N_WORKING], (0, COST_INPUTS - N_WORKING), constant_values=1e6)
    ),
    "13 lines": lambda seed: of_inputs(seed, lambda X: X @ np.linspace(1.0, 3.0, COST_INPUTS), 1.0),
    "three lines": lambda seed: of_inputs(seed, lambda X: X[:, :3] @ np.array([4.0, 2.0, 1.0]), 0.5),
    "one wave": lambda seed: of_inputs(seed, lambda X: np.sin(6.0 * X[:, 0]), 0.3),
    "noise alone": lambda seed: of_inputs(seed, lambda X: 0.0 * X[:, 0], 1.0),
}


def costs(kind: str, seed: int) -> dict[str, Any]:
    """Processor seconds of a default fit and of the intervals of its KL scores, in turns."""
    X, y = COST_SETS[kind](seed)
    gs.rank(gs.GP().fit(X, y), X).interval()  # the first time costs more
    seconds = []
    for _ in range(ROUNDS):
        fitted, of_fit = timed(lambda: gs.GP().fit(X, y))
        ranking = gs.rank(fitted, X)
        seconds.append([of_fit, timed(ranking.interval)[1]])
    return {"cost": kind, "number": seed, "inputs_used": len(fitted.used), "seconds": seconds}


def beside_nuts(name: str) -> dict[str, Any]:
    """How far the ends of intervals are from those of NUTS under the same prior, as shares of its widths."""
    X, y = DATA_SETS[name]()
    fitted, seconds = timed(lambda: gs.GP().fit(X, y))
    sampler = gs.NUTS(draws=DRAWS, tune=TUNE, chains=CHAINS, keep=KEPT, prior=default_prior(), progress=False, cores=1)
    sampled, sampling_seconds = timed(lambda: gs.GP(hyper=sampler).fit(X, y))
    found: dict[str, Any] = {
        "set": name,
        "n": len(y),
        "p": X.shape[1],
        "r_hat": float(sampled.diagnostics["r_hat"]),
        "ess": float(sampled.diagnostics["ess"]),
        "fit_seconds": seconds,
        "nuts_seconds": sampling_seconds,
    }
    for label, measure in MEASURES.items():
        ours, found[f"{label}_seconds"] = timed(lambda m=measure: gs.rank(fitted, X, m, intervals=True))
        theirs = gs.rank(sampled, X, measure).interval(LEVEL)
        found["k_hat"] = ours.k_hat
        found[label] = ends_apart(ends_of_draws(ours), theirs).tolist()
    return found


def ends_of_draws(ranking: gs.Ranking) -> np.ndarray:
    """The central interval of the draws alone, (p, 2): that of a ranking has the score of the fit in it as well."""
    assert ranking.draws is not None
    return np.quantile(ranking.draws, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2], axis=0).T


def ends_apart(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Mean distance of the two ends of each interval, (p,), as a share of the width of theirs."""
    return np.mean(np.abs(ours - theirs), axis=1) / np.diff(theirs, axis=1)[:, 0]


def covered(n: int, seed: int) -> dict[str, Any]:
    """Which intervals cover the score that the true hyperparameters have."""
    X, y = of_process(n, seed)
    true = gs.Fixed(lengthscale=LENGTHSCALES, signal_var=1.0, constant_var=NO_LEVEL, noise_var=NOISE_SD**2)
    truth = gs.rank(gs.GP(hyper=true, standardize=False).fit(X, y), X, gs.KL()).scores
    ranking = gs.rank(gs.GP().fit(X, y), X, gs.KL(), intervals=True)
    low, high = ranking.interval(LEVEL).T
    is_in = (low <= truth) & (truth <= high)
    low, high = ends_of_draws(ranking).T
    by_draws = (low <= truth) & (truth <= high)
    beyond = (ranking.scores > 0) & ((ranking.scores < low) | (ranking.scores > high))
    return {
        "n": n,
        "seed": seed,
        "covered": is_in.tolist(),
        "covered_by_draws": by_draws.tolist(),
        "beyond": beyond.tolist(),
        "k_hat": ranking.k_hat,
    }


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    found = call()
    return found, time.process_time() - start


def records(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def keep(file: Path, record: dict[str, Any]) -> None:
    with file.open("a") as stream:
        stream.write(json.dumps(record) + "\n")


def nuts(file: Path, names: list[str]) -> None:
    done = {record.get("set") for record in records(file)}
    for name in names:
        if name not in done:
            keep(file, beside_nuts(name))


def coverage(file: Path, n: int, seeds: range) -> None:
    done = {(record.get("n"), record.get("seed")) for record in records(file)}
    for seed in seeds:
        if (n, seed) not in done:
            keep(file, covered(n, seed))


def cost(file: Path) -> None:
    done = {(record.get("cost"), record.get("number")) for record in records(file)}
    for kind in COST_SETS:
        for number in range(SETS_EACH):
            if (kind, number) not in done:
                keep(file, costs(kind, number))


def summary(file: Path) -> str:
    found = records(file)
    made_by = {"set": nuts_table, "seed": coverage_table, "cost": cost_table}
    of_kinds = {kind: [record for record in found if kind in record] for kind in made_by}
    tables = [made_by[kind](chosen) for kind, chosen in of_kinds.items() if chosen]
    return "\n\n".join(table.to_string(float_format=lambda value: f"{value:.3f}") for table in tables)


def nuts_table(found: list[dict[str, Any]]) -> pd.DataFrame:
    frame = pd.DataFrame(found).set_index("set")
    for label in MEASURES:
        frame[f"{label}, largest"] = frame[label].map(max)
        frame[label] = frame[label].map(np.mean)
    return frame


def coverage_table(found: list[dict[str, Any]]) -> pd.DataFrame:
    """Of each number of rows; the mean is that of the inputs that do something."""
    rows = {}
    for n in sorted({record["n"] for record in found}):
        ours = [record for record in found if record["n"] == n]
        is_in, k_hat = np.array([record["covered"] for record in ours]), np.array([record["k_hat"] for record in ours])
        of_inputs = {
            f"l = {length:g}": share for length, share in zip(LENGTHSCALES[:N_WORKING], is_in.mean(0), strict=False)
        }
        rows[n] = {
            "sets": len(ours),
            "mean": is_in[:, :N_WORKING].mean(),
            "by draws": np.array([record["covered_by_draws"] for record in ours])[:, :N_WORKING].mean(),
            "scores beyond": np.sum([record["beyond"] for record in ours]),
            **of_inputs,
            "k-hat > 0.7": np.mean(k_hat > 0.7),
        }
    return pd.DataFrame(rows).T


def cost_table(found: list[dict[str, Any]]) -> pd.DataFrame:
    """Seconds in the median, and how many fits the intervals take: the median over rounds, and the largest."""
    rows = {}
    for record in found:
        of_fit, of_intervals = np.array(record["seconds"]).T
        ratios = of_intervals / of_fit
        rows[f"{record['cost']} {record['number']}"] = {
            "inputs used": record["inputs_used"],
            "fit, s": np.median(of_fit),
            "intervals, s": np.median(of_intervals),
            "in fits": np.median(ratios),
            "in fits, largest": ratios.max(),
        }
    return pd.DataFrame(rows).T


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=("nuts", "coverage", "cost", "summary"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=list(DATA_SETS), choices=list(DATA_SETS), help="of `nuts`")
    parser.add_argument("--rows", type=int, default=80, help="of each data set of `coverage`")
    parser.add_argument("--first", type=int, default=0, help="number of the first data set of `coverage`")
    parser.add_argument("--sets", type=int, default=N_SETS, help="of `coverage`")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", gs.GPSiftWarning)
    with one_thread():
        if chosen.table == "nuts":
            nuts(chosen.out, chosen.only)
        elif chosen.table == "coverage":
            coverage(chosen.out, chosen.rows, range(chosen.first, chosen.first + chosen.sets))
        elif chosen.table == "cost":
            cost(chosen.out)
        else:
            print(summary(chosen.out))


if __name__ == "__main__":
    main()
