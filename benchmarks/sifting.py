"""What `Sift` finds among many inputs, what it switches on where there is nothing, and what it costs.

python benchmarks/sifting.py wide       # Friedman's function among 50 to 10,000 inputs, and of the five alone
python benchmarks/sifting.py nothing    # targets that have nothing to do with the inputs
python benchmarks/sifting.py products   # a product of two inputs without effects of their own
python benchmarks/sifting.py costs      # processor time beside the search of all length-scales at once
python benchmarks/sifting.py all
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from effect_shares import friedman
from sklearn.metrics import roc_auc_score
from timing import one_thread

import gpsift as gs

N_TRUE, N_TEST = 5, 500
WIDE = ((100, 50), (100, 200), (100, 500), (200, 10_000))


def drawn(n: int, p: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Friedman's function of the first five of p uniform inputs, with noise of standard deviation 1."""
    X = rng.uniform(size=(n, p))
    return X, friedman(X) + rng.normal(size=n)


def timed(model: gs.GP, X: np.ndarray, y: np.ndarray) -> tuple[gs.FittedGP, float]:
    start = time.process_time()
    gp = model.fit(X, y)
    return gp, time.process_time() - start


def wide(seeds: int) -> None:
    """AUC of KL, and how far the density of new rows is behind that of the true five inputs alone."""
    for n, p in WIDE:
        found = []
        for seed in range(seeds):
            rng = np.random.default_rng([seed, p])
            (X, y), (X_new, y_new) = drawn(n, p, rng), drawn(N_TEST, p, rng)
            gp, seconds = timed(gs.GP(hyper=gs.Sift()), X, y)
            true = gs.GP(hyper=gs.Sift().prior).fit(X[:, :N_TRUE], y).predict(X_new[:, :N_TRUE])
            auc = roc_auc_score(np.arange(p) < N_TRUE, gs.rank(gp).scores)
            density, of_true = (each.log_density(y_new).mean() for each in (gp.predict(X_new), true))
            found.append((auc, density, density - of_true, seconds))
        auc, density, behind, seconds = np.median(found, axis=0)
        print(
            f"n = {n}, p = {p}: AUC {auc:.3f}, density {density:.3f}, {behind:+.3f} to the true five, {seconds:.2f} s"
        )


def nothing(seeds: int) -> None:
    """In how many data sets without signal anything is switched on."""
    for p in (10, 30, 100, 1000):
        on = 0
        for seed in range(seeds):
            rng = np.random.default_rng([seed, p, 7])
            gp = gs.GP(hyper=gs.Sift()).fit(rng.normal(size=(100, p)), rng.normal(size=100))
            on += bool(gp.report.sift.active)
        print(f"nothing, n = 100, p = {p}: something switched on in {on} of {seeds}")


def products(seeds: int) -> None:
    """In how many data sets both factors of a product are found."""
    found = 0
    for seed in range(seeds):
        rng = np.random.default_rng([seed, 3])
        X = rng.normal(size=(100, 100))
        y = X[:, 3] * X[:, 50] + 0.3 * rng.normal(size=100)
        found += {"x4", "x51"} <= set(gs.GP(hyper=gs.Sift()).fit(X, y).report.sift.active)
    print(f"a product, n = 100, p = 100: found in {found} of {seeds}")


def costs(seeds: int) -> None:
    """Median processor time of ML2 and of Sift on the same data, in turn."""
    for likelihood, n, p in (("gaussian", 300, 8), ("bernoulli", 200, 10), ("bernoulli", 200, 30)):
        taken = []
        for seed in range(seeds):
            X, y = drawn(n, p, np.random.default_rng(seed))
            y = (y > 14.4).astype(float) if likelihood == "bernoulli" else y
            taken.append([timed(gs.GP(hyper=hyper, likelihood=likelihood), X, y)[1] for hyper in (gs.ML2(), gs.Sift())])
        ml2, sift = np.median(taken, axis=0)
        ratio = np.median([second / first for first, second in taken])
        print(f"{likelihood}, n = {n}, p = {p}: ML2 {ml2:.2f} s, Sift {sift:.2f} s, ratio {ratio:.2f}")


TABLES = {"wide": (wide, 12), "nothing": (nothing, 50), "products": (products, 20), "costs": (costs, 5)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=[*TABLES, "all"])
    parser.add_argument("--seeds", type=int, help="data sets of each line")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", gs.GPSiftWarning)
    for name in TABLES if chosen.table == "all" else [chosen.table]:
        table, seeds = TABLES[name]
        with one_thread():
            table(chosen.seeds or seeds)


if __name__ == "__main__":
    main()
