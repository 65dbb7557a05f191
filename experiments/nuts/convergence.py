"""How well the chains of NUTS mix on 300 rows of real and generated data, and which modes they move between.

Figures go to `convergence.json`, one entry for each data set and seed, replacing those of an earlier run; traces of the
parameters that mix worst go to `traces-NAME.png`.

    export GPSIFT_DATA=...                                             # folder with boston_housing.csv and the others
    python3 experiments/nuts/convergence.py housing --seeds 0 1 2      # minutes each on 2 cores
    python3 experiments/nuts/convergence.py concrete generated
    python3 experiments/nuts/convergence.py housing --split 2 --modes  # other rows, and the modes of the posterior
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
import warnings
from pathlib import Path
from typing import Any

import arviz
import matplotlib as mpl
import numpy as np
import pandas as pd
from scipy.optimize import minimize

import gpsift as gs
from gpsift._utils.threads import blas_threads_for
from gpsift.gp.hyperparameters.nuts import log_posterior
from gpsift.gp.hyperparameters.problem import Problem

FILES = {"housing": "boston_housing.csv", "concrete": "scale/concrete.csv.gz"}
N_ROWS = 300
N_CLIMBS = 60
SAME_MODE = 0.1  # nats


def read(name: str, folder: Path | None, split: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Inputs and target of 300 random rows."""
    rng = np.random.default_rng(split)
    if name == "generated":  # of the size of Housing: two bends, two slopes, nine inputs that do nothing
        X = pd.DataFrame(rng.normal(size=(N_ROWS, 13)), columns=[f"x{j + 1}" for j in range(13)])
        y = np.sin(2 * X["x1"]) + np.cos(X["x2"]) + 0.5 * X["x3"] - 0.3 * X["x4"] + 0.3 * rng.normal(size=N_ROWS)
        return X, y.to_numpy()
    if folder is None:
        raise SystemExit("Say where the data are: --data FOLDER, or the environment variable GPSIFT_DATA.")
    table = pd.read_csv(folder / FILES[name])
    rows = rng.permutation(len(table))[:N_ROWS]
    return table.iloc[rows, :-1], table.iloc[rows, -1].to_numpy(float)


def cpu_seconds() -> float:
    """Of this process and of those that it started and that ended; unlike the clock's, they do not count neighbours."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def figures(trace: arviz.InferenceData) -> dict[str, Any]:
    """r-hat and effective sample sizes of all log parameters."""
    r_hat = arviz.rhat(trace, var_names=["log_params"])["log_params"]
    bulk, tail = (arviz.ess(trace, var_names=["log_params"], method=m)["log_params"] for m in ("bulk", "tail"))
    return {
        "r_hat": round(float(r_hat.max()), 4),
        "worst": str(r_hat["parameter"].values[r_hat.values.argmax()]),
        "ess_bulk": round(float(bulk.min())),
        "ess_tail": round(float(tail.min())),
        "median_ess": round(float(bulk.median())),
        "divergences": int(trace.sample_stats["diverging"].sum()),
        "evaluations_per_draw": round(float(trace.sample_stats["n_steps"].mean()), 1),
    }


def modes(X: pd.DataFrame, y: np.ndarray, trace: arviz.InferenceData) -> list[dict[str, Any]]:
    """Modes of the density that is sampled, by climbing from draws: their heights and the share of draws below each."""
    inputs = ((X - X.mean()) / X.std(ddof=0)).to_numpy()
    kernel = (gs.SquaredExponential() + gs.Constant()).for_features(inputs.shape[1])
    problem = Problem.exact(kernel, inputs, (y - y.mean()) / y.std(), tuple(X.columns))
    density = log_posterior(problem.stateless(), gs.MAP())
    draws = trace.posterior["log_params"].stack(sample=("chain", "draw")).transpose("sample", ...).values

    def negative(log_params: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = density(log_params)
        return -value, -gradient

    found: list[dict[str, Any]] = []
    for start in draws[np.linspace(0, len(draws) - 1, N_CLIMBS).astype(int)]:
        with blas_threads_for(N_ROWS):
            end = minimize(negative, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-10})
        for mode in found:
            if abs(mode["height"] + end.fun) < SAME_MODE and np.allclose(mode["log_params"], end.x, atol=0.3):
                mode["share"] += 1.0 / N_CLIMBS
                break
        else:
            found.append({"height": -float(end.fun), "share": 1.0 / N_CLIMBS, "log_params": end.x})
    return sorted(found, key=lambda mode: -mode["height"])


def picture(trace: arviz.InferenceData, path: Path, n_shown: int = 4) -> None:
    """Chains and histograms of the log parameters with the largest r-hat."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    r_hat = arviz.rhat(trace, var_names=["log_params"])["log_params"]
    shown = np.argsort(-r_hat.values)[:n_shown]
    figure, axes = plt.subplots(
        n_shown, 2, figsize=(11, 1.6 * n_shown), width_ratios=[4, 1], sharey="row", layout="constrained"
    )
    for (ax, side), index in zip(axes, shown, strict=True):
        values = trace.posterior["log_params"].values[:, :, index]
        for chain in values:
            ax.plot(chain, lw=0.4)
            side.hist(chain, bins=50, orientation="horizontal", histtype="step", lw=0.9)
        ax.set(title=f"log {r_hat['parameter'].values[index]}, r-hat {r_hat.values[index]:.3f}", xlim=(0, len(chain)))
        ax.title.set_fontsize(9)
        side.set_xticks([])
    axes[-1, 0].set_xlabel("draw")
    figure.savefig(path, dpi=100)


def main() -> None:
    """Fit, measure, store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="+", choices=("housing", "concrete", "generated"))
    parser.add_argument("--data", type=Path, default=os.environ.get("GPSIFT_DATA"), help="folder of the data")
    parser.add_argument("--split", type=int, default=0, help="which 300 rows: seed of their permutation")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--draws", type=int, default=gs.NUTS().draws)
    parser.add_argument("--tune", type=int, default=gs.NUTS().tune)
    parser.add_argument("--chains", type=int, default=gs.NUTS().chains)
    parser.add_argument("--target-accept", type=float, default=gs.NUTS().target_accept)
    parser.add_argument("--modes", action="store_true", help="look for the modes of the posterior")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder")
    options = parser.parse_args()

    store = options.out / "convergence.json"
    record = json.loads(store.read_text()) if store.exists() else {}
    for name in options.sets:
        X, y = read(name, None if options.data is None else Path(options.data), options.split)
        for seed in options.seeds:
            sampler = gs.NUTS(
                draws=options.draws,
                tune=options.tune,
                chains=options.chains,
                target_accept=options.target_accept,
                seed=seed,
            )
            began, cpu_began = time.perf_counter(), cpu_seconds()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", gs.GPSiftWarning)  # what they say is measured here
                gp = gs.GP(hyper=sampler).fit(X, y)
            seconds = time.perf_counter() - began
            trace = gp.to_arviz()
            entry = {
                "chains": options.chains,
                "tune": options.tune,
                "draws": options.draws,
                "target_accept": options.target_accept,
                "seconds": round(seconds),
                "cpu_seconds": round(cpu_seconds() - cpu_began),
                "mode_heights": [round(height, 2) for height in gp.report.objectives],
                **figures(trace),
            }
            print(name, f"split {options.split} seed {seed}:", entry, flush=True)
            record[f"{name}, split {options.split}, seed {seed}"] = entry
            store.write_text(json.dumps(record, indent=1) + "\n")
        picture(trace, options.out / f"traces-{name}{options.split or ''}.png")
        if options.modes:
            labels = trace.posterior["parameter"].values
            found = modes(X, y, trace)
            table = pd.DataFrame([mode["log_params"] for mode in found], columns=labels).round(2)
            table.insert(0, "height", [round(mode["height"], 2) for mode in found])
            table.insert(1, "share", [round(mode["share"], 2) for mode in found])
            table.to_csv(options.out / f"modes-{name}{options.split or ''}.csv", index=False)
            print(table.T.to_string())


if __name__ == "__main__":
    main()
