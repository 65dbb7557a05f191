"""Scores of ARD, KL and VAR on two splits of Housing by plain loops over GPy's predictions.

    python experiments/paper/gpy_reference.py --data FOLDER

Hyperparameters are those of our fits; everything else is written out here: standardisation, predictions (GPy's), the KL
divergence of the paper's equation, and the normal conditionals by one linear solve for each input. The result is stored
in gpy_reference.json beside this file.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import GPy
import numpy as np

from gpsift.gp import GP
from gpsift.paper.datasets import load
from gpsift.paper.reproduce.experiments import Settings, random_split

SPLITS = (0, 1)
DELTA = 1e-4
N_NODES = 11
LARGEST_CONDITION = 100.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with the data")
    arguments = parser.parse_args()
    settings = Settings(out=Path())
    housing = load("housing", folder=arguments.data)
    record = []
    for split in SPLITS:
        train, _ = random_split(len(housing.y), housing.n_train, split, settings.seed)
        X, y = housing.X.iloc[train], housing.y.iloc[train]
        values = dict(GP(hyper=settings.hyper).fit(X, y).hyperparameters)
        scores = loop_scores(standardised(X.to_numpy(float)), standardised(y.to_numpy(float)), values, list(X.columns))
        record.append({"split": split, "hyperparameters": values, "scores": scores})
        print(split, {name: np.round(each, 3).tolist() for name, each in scores.items()})
    path = Path(__file__).with_suffix(".json")
    path.write_text(json.dumps(record, indent=1) + "\n")


def standardised(values: np.ndarray) -> np.ndarray:
    return (values - values.mean(axis=0)) / values.std(axis=0)


def loop_scores(X: np.ndarray, y: np.ndarray, values: dict[str, float], names: list[str]) -> dict[str, list[float]]:
    n, p = X.shape
    lengthscale = np.array([values[f"lengthscale[{name}]"] for name in names])
    kernel = GPy.kern.RBF(p, variance=values["signal_var"], lengthscale=lengthscale, ARD=True)
    kernel += GPy.kern.Bias(p, variance=values["constant_var"])
    model = GPy.models.GPRegression(X, y[:, None], kernel, noise_var=values["noise_var"])
    means, variances = (each[:, 0] for each in model.predict(X))
    kl = np.zeros((n, p))
    for i in range(n):
        for j in range(p):
            moved = X[i].copy()
            moved[j] += DELTA
            mean, var = (each.item() for each in model.predict(moved[None, :]))
            divergence = 0.5 * np.log(var / variances[i]) + (variances[i] + (means[i] - mean) ** 2) / (2.0 * var) - 0.5
            kl[i, j] = np.sqrt(2.0 * max(divergence, 0.0)) / DELTA
    var_scores = np.zeros((n, p))
    covariance = ridged(np.cov(X, rowvar=False))
    nodes, weights = np.polynomial.hermite.hermgauss(N_NODES)
    for j in range(p):
        others = np.arange(p) != j
        slope = np.linalg.solve(covariance[np.ix_(others, others)], covariance[others, j])
        sd = np.sqrt(covariance[j, j] - covariance[j, others] @ slope)
        for i in range(n):
            points = np.repeat(X[i][None, :], N_NODES, axis=0)
            points[:, j] = X[i, others] @ slope + np.sqrt(2.0) * sd * nodes
            f = model.predict_noiseless(points)[0][:, 0]
            average = weights @ f / np.sqrt(np.pi)
            var_scores[i, j] = weights @ (f - average) ** 2 / np.sqrt(np.pi)
    return {
        "ARD": (1.0 / lengthscale).tolist(),
        "KL": kl.mean(axis=0).tolist(),
        "VAR": var_scores.mean(axis=0).tolist(),
    }


def ridged(covariance: np.ndarray) -> np.ndarray:
    """The smallest multiple of the identity added that brings the condition number to 100."""
    eigenvalues = np.linalg.eigvalsh(covariance)
    ridge = max(0.0, (eigenvalues[-1] - LARGEST_CONDITION * eigenvalues[0]) / (LARGEST_CONDITION - 1.0))
    return covariance + ridge * np.eye(len(covariance))


if __name__ == "__main__":
    main()
