"""Simulation-based calibration of NUTS (Talts, Betancourt, Simpson, Vehtari and Gelman 2018, arXiv 1804.06788).

Hyperparameters are drawn from their prior, data from the model with them, and draws from the posterior given the data.
If prior, density and sampler fit together, the rank of the true value among L independent draws is uniform on 0 to L,
for every hyperparameter. Ranks and tests go to `calibration.json`, histograms to `calibration.png`.

    python3 experiments/nuts/calibration.py                                   # minutes on 2 cores
    python3 experiments/nuts/calibration.py --simulations 40 --out quick      # a quick look
    python3 experiments/nuts/calibration.py --wrong-jacobian --out wrong      # a fault that must show
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import scipy
from scipy import stats
from scipy.spatial.distance import cdist

import gpsift as gs
from gpsift._utils.parallel import Task, Work
from gpsift._utils.threads import blas_threads_for
from gpsift.gp.hyperparameters.problem import Problem
from gpsift.gp.inference import ExactInference
from gpsift.likelihoods import Gaussian

N_ROWS = 20
LABELS = ("lengthscale[x1]", "lengthscale[x2]", "signal_var", "constant_var", "noise_var")
# 99 of the draws, evenly spaced, so that they are nearly independent; their 100 possible ranks make 20 equal bins.
N_THINNED = 99
N_BINS = 20
SMALLEST_P = 0.01


class GivenUnits(Problem):
    """A problem whose priors are in the units of the data as they are, not of their spread, which the data decide."""

    @property
    def log_units(self) -> np.ndarray:
        return np.zeros(self.log_params.size)


class WrongJacobian(gs.MAP):
    """As if the logarithm of a variance were that of a standard deviation."""

    def log_jacobian(self, parameters: np.ndarray) -> np.ndarray:
        return np.ones(parameters.size)


def draw_from_the_model(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log hyperparameters from the priors of `MAP()`, then inputs and a target; by SciPy, nothing of gpsift."""
    lengthscale = stats.invgamma(1.0, scale=10.0).rvs(2, random_state=rng)
    signal_var, constant_var, noise_var = stats.t(4.0).rvs(3, random_state=rng) ** 2
    X = rng.normal(size=(N_ROWS, 2))
    K = signal_var * np.exp(-0.5 * cdist(X / lengthscale, X / lengthscale, "sqeuclidean")) + constant_var
    y = stats.multivariate_normal(cov=K + noise_var * np.eye(N_ROWS), allow_singular=True).rvs(random_state=rng)
    return np.log([*lengthscale, signal_var, constant_var, noise_var]), X, y


def posed(X: np.ndarray, y: np.ndarray) -> GivenUnits:
    """The problem whose posterior is sampled."""
    kernel = (gs.SquaredExponential() + gs.Constant()).for_features(2)
    return GivenUnits(kernel, Gaussian(), X, y, ExactInference(X, y), ("x1", "x2"))


def simulate(index: int, seed: int, draws: int, tune: int, prior: gs.MAP) -> dict[str, Any]:
    """Rank of each true log hyperparameter among its draws, and how well the chains mixed."""
    truth, X, y = draw_from_the_model(np.random.default_rng([seed, index]))
    problem = posed(X, y)
    sampler = gs.NUTS(
        draws=draws, tune=tune, chains=2, cores=1, seed=index, keep=N_THINNED, prior=prior, progress=False
    )
    with blas_threads_for(N_ROWS):
        found = sampler.estimate(problem).draws
    assert found.trace.posterior["parameter"].values.tolist() == list(LABELS)
    return {"ranks": (found.log_params < truth).sum(axis=0).tolist(), **found.diagnostics}


def histogram_test(ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Counts in equal bins (bin, parameter), and the p-value of a chi-square test of their uniformity."""
    edges = np.linspace(0, N_THINNED + 1, N_BINS + 1)
    counts = np.array([np.histogram(column, edges)[0] for column in ranks.T]).T
    return counts, stats.chisquare(counts, axis=0).pvalue


def picture(counts: np.ndarray, p_values: np.ndarray, path: Path) -> None:
    """Histograms of ranks, with the band that holds 99 % of the counts of a uniform rank."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    low, mean, high = stats.binom(counts[:, 0].sum(), 1.0 / N_BINS).ppf([0.005, 0.5, 0.995])
    figure, axes = plt.subplots(1, len(LABELS), figsize=(13, 2.8), sharey=True, layout="constrained")
    left = np.linspace(0, N_THINNED + 1, N_BINS + 1)[:-1]
    for ax, label, column, p_value in zip(axes, LABELS, counts.T, p_values, strict=True):
        ax.axhspan(low, high, color="0.88", zorder=0)
        ax.axhline(mean, color="0.6", lw=1, zorder=1)
        ax.bar(left, column, width=(N_THINNED + 1) / N_BINS, align="edge", color="C0", edgecolor="white", zorder=2)
        ax.set(title=f"{label}, p = {p_value:.2g}", xlabel="rank of the truth", xlim=(0, N_THINNED + 1))
    axes[0].set_ylabel("simulations")
    figure.savefig(path, dpi=110)


def main() -> None:
    """Simulate, test, store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulations", type=int, default=320)
    parser.add_argument("--draws", type=int, default=500, help="of each of 2 chains")
    parser.add_argument("--tune", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1804)
    parser.add_argument("--wrong-jacobian", action="store_true", help="sample from a density with a fault")
    parser.add_argument("--checkpoint", type=Path, help="file that keeps what is done, to go on after a break")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("calibration"), help="path without suffix")
    options = parser.parse_args()

    itself = {"lengthscale": gs.InverseGamma(1.0, 10.0), "noise": gs.HalfT(4.0, 1.0)}  # densities of no logarithm
    prior = WrongJacobian(**itself) if options.wrong_jacobian else gs.MAP()
    tasks = [
        Task(str(index), (index, options.seed, options.draws, options.tune, prior))
        for index in range(options.simulations)
    ]
    identity = {"seed": str(options.seed), "draws": f"{options.tune} + {options.draws}", "prior": repr(prior)}
    work = Work(jobs=options.jobs, checkpoint=options.checkpoint, progress=True)
    with work.runner("simulations", len(tasks), identity) as runner:
        results = runner.run(simulate, tasks)
    ranks = np.array([result["ranks"] for result in results])
    counts, p_values = histogram_test(ranks)
    # More sensitive to a shift of all ranks than counts in bins are.
    shift = [stats.kstest((column + 0.5) / (N_THINNED + 1), "uniform").pvalue for column in ranks.T]
    r_hat, ess, divergences = (np.array([result[key] for result in results]) for key in ("r_hat", "ess", "divergences"))
    record = {
        "made_by": "experiments/nuts/calibration.py",
        "versions": {"gpsift": gs.__version__, "numpy": np.__version__, "scipy": scipy.__version__},
        "options": {
            key: str(value) for key, value in vars(options).items() if key not in ("out", "jobs", "checkpoint")
        },
        "p_values": dict(zip(LABELS, p_values.round(4).tolist(), strict=True)),
        "kolmogorov_p_values": dict(zip(LABELS, np.round(shift, 4).tolist(), strict=True)),
        "r_hat": {"median": float(np.median(r_hat)), "largest": float(r_hat.max())},
        "ess": {"median": float(np.median(ess)), "smallest": float(ess.min())},
        "simulations_with_ess_below_100": int((ess < 100).sum()),
        "simulations_with_divergences": int((divergences > 0).sum()),
        "divergences": int(divergences.sum()),
        "ranks": ranks.tolist(),
    }
    options.out.with_suffix(".json").write_text(json.dumps(record) + "\n")
    picture(counts, p_values, options.out.with_suffix(".png"))
    for label, p_value in record["p_values"].items():
        print(f"{label:16s} chi-square p = {p_value:.4f}, Kolmogorov p = {record['kolmogorov_p_values'][label]:.4f}")
    print({key: value for key, value in record.items() if key not in ("ranks", "p_values", "kolmogorov_p_values")})
    print("uniform" if min(p_values) > SMALLEST_P else f"NOT uniform: a p-value is below {SMALLEST_P}")


if __name__ == "__main__":
    main()
