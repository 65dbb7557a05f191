"""Posterior of the hyperparameters of a small Gaussian process by another sampler, on another code of the same density.

Random-walk Metropolis in the logarithms of the hyperparameters; density from SciPy's distributions alone, nothing of
gpsift. The summary goes to `metropolis.json`, which `tests/gp/test_nuts.py` holds NUTS against.

    python3 experiments/nuts/metropolis.py                 # minutes on 2 cores
    python3 experiments/nuts/metropolis.py --steps 5000    # a quick look
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import scipy
from joblib import Parallel, delayed
from scipy import stats
from scipy.spatial.distance import cdist

NAMES = ("lengthscale[x1]", "lengthscale[x2]", "signal_var", "constant_var", "noise_var")
# The priors that gpsift documents for `MAP`: densities of length-scales and of standard deviations.
LENGTHSCALE = stats.invgamma(1.0, scale=10.0)
MAGNITUDE = stats.t(4.0)  # folded at zero: a factor of two that a sampler does not see
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
N_BATCHES = 50


def make_data(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """25 rows of a bend in the first input and a slope in the second, standardised."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(25, 2))
    y = np.sin(2.0 * X[:, 0]) + 0.4 * X[:, 1] + 0.3 * rng.normal(size=25)
    return (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()


def log_density(log_params: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    """Log posterior density of (log l_1, log l_2, log s^2, log c^2, log noise^2), up to a constant."""
    lengthscale, variances = np.exp(log_params[:2]), np.exp(log_params[2:])
    signal_var, constant_var, noise_var = variances
    K = signal_var * np.exp(-0.5 * cdist(X / lengthscale, X / lengthscale, "sqeuclidean")) + constant_var
    likelihood = stats.multivariate_normal(cov=K + noise_var * np.eye(len(y)), allow_singular=True).logpdf(y)
    magnitudes = np.sqrt(variances)
    prior = LENGTHSCALE.logpdf(lengthscale).sum() + MAGNITUDE.logpdf(magnitudes).sum()
    jacobian = np.log(lengthscale).sum() + np.log(magnitudes).sum()  # dl / d log l = l; dv / d log v^2 = v / 2
    return float(likelihood + prior + jacobian)


def metropolis(X: np.ndarray, y: np.ndarray, steps: int, burn_in: int, seed: int) -> tuple[np.ndarray, float]:
    """A chain of `steps` after a burn-in, and its share of accepted proposals.

    The proposal is normal with 2.38^2 / d times the covariance of the burn-in so far (Haario, Saksman and Tamminen
    2001); after the burn-in it no longer changes.
    """
    rng = np.random.default_rng(seed)
    d = len(NAMES)
    current = np.array([0.0, 1.0, 0.0, -1.0, -2.0]) + rng.normal(size=d)
    height = log_density(current, X, y)
    factor = 0.3 * np.eye(d)
    chain, accepted = np.empty((burn_in + steps, d)), 0
    for i in range(burn_in + steps):
        if 1000 <= i <= burn_in and i % 500 == 0:
            covariance = np.cov(chain[i // 2 : i].T) + 1e-6 * np.eye(d)
            factor = 2.38 / np.sqrt(d) * np.linalg.cholesky(covariance)
        proposal = current + factor @ rng.standard_normal(d)
        proposed_height = log_density(proposal, X, y)
        if np.log(rng.uniform()) < proposed_height - height:
            current, height = proposal, proposed_height
            accepted += i >= burn_in
        chain[i] = current
    return chain[burn_in:], accepted / steps


def summary(chains: np.ndarray) -> dict[str, dict[str, list[float]]]:
    """Mean, sd and quantiles of each parameter, and their Monte Carlo standard errors by batches of each chain."""
    statistics = {"mean": lambda x: x.mean(axis=0), "sd": lambda x: x.std(axis=0)}
    for q in QUANTILES:
        statistics[f"q{100 * q:02.0f}"] = lambda x, q=q: np.quantile(x, q, axis=0)
    everything = chains.reshape(-1, chains.shape[-1])
    batches = np.concatenate([np.array_split(chain, N_BATCHES // len(chains)) for chain in chains])
    found = {}
    for name, statistic in statistics.items():
        spread = np.std([statistic(batch) for batch in batches], axis=0, ddof=1)
        found[name] = {
            "value": statistic(everything).round(5).tolist(),
            "error": (spread / np.sqrt(len(batches))).round(5).tolist(),
        }
    return found


def main() -> None:
    """Sample, summarise, store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60_000, help="of each chain, after the burn-in")
    parser.add_argument("--burn-in", type=int, default=10_000)
    parser.add_argument("--chains", type=int, default=5)
    parser.add_argument("--seed", type=int, default=2018)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("metropolis.json"))
    options = parser.parse_args()

    X, y = make_data(options.seed)
    runs = Parallel(n_jobs=options.jobs, verbose=10)(
        delayed(metropolis)(X, y, options.steps, options.burn_in, options.seed + 1 + chain)
        for chain in range(options.chains)
    )
    chains = np.array([chain for chain, _ in runs])
    result = {
        "made_by": "experiments/nuts/metropolis.py",
        "versions": {"numpy": np.__version__, "scipy": scipy.__version__},
        "seed": options.seed,
        "steps": options.steps,
        "burn_in": options.burn_in,
        "chains": options.chains,
        "accepted": [round(share, 3) for _, share in runs],
        "parameters": NAMES,
        "log_parameters": summary(chains),
        "X": X.tolist(),
        "y": y.tolist(),
    }
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    for name, (mean, sd) in zip(
        NAMES, np.transpose([result["log_parameters"][key]["value"] for key in ("mean", "sd")]), strict=True
    ):
        print(f"{name:16s} mean {mean:7.3f}  sd {sd:6.3f}")


if __name__ == "__main__":
    main()
