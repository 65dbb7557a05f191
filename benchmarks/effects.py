"""The shape of effects: what it costs, how near shares are to the truth, which pairs are found, what bands cover.

python benchmarks/effects.py costs                # processor time on one core
python benchmarks/effects.py shares               # Ishigami's, Sobol's g, Friedman's and borehole, and sampling
python benchmarks/effects.py pairs --seeds 50     # which pairs are found, and what is found where there are none
python benchmarks/effects.py bands --seeds 200    # how often the band of a curve holds the true average effect
python benchmarks/effects.py shap                 # beside shap's KernelExplainer, if it is installed
python benchmarks/effects.py all

Sampling is SALib's, of first-order and total indices, over several independent sequences of points.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from effect_shares import friedman
from scipy.stats import qmc
from timing import one_thread

import gpsift as gs

Function = Callable[[np.ndarray], np.ndarray]
G_WEIGHTS = np.array([0.0, 1.0, 4.5, 9.0, 99.0, 99.0])
N_SAMPLED = 2**12
N_SEQUENCES = 8
# Ranges of the inputs of the borehole.
BOREHOLE = {
    "rw": (0.05, 0.15),
    "r": (100.0, 50000.0),
    "Tu": (63070.0, 115600.0),
    "Hu": (990.0, 1110.0),
    "Tl": (63.1, 116.0),
    "Hl": (700.0, 820.0),
    "L": (1120.0, 1680.0),
    "Kw": (9855.0, 12045.0),
}


def ishigami(X: np.ndarray) -> np.ndarray:
    return np.sin(X[:, 0]) + 7 * np.sin(X[:, 1]) ** 2 + 0.1 * X[:, 2] ** 4 * np.sin(X[:, 0])


def sobol_g(X: np.ndarray) -> np.ndarray:
    return np.prod((np.abs(4 * X - 2) + G_WEIGHTS) / (1 + G_WEIGHTS), axis=1)


def taken(call: Callable[[], object], times: int = 3) -> float:
    """The least processor time of some calls, in seconds."""
    found = []
    for _ in range(times):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found)


def costs(_: int) -> None:
    """After the fit, on one core; all features are on."""
    print("\n| what | n | p | seconds | has to be below |\n|---|---|---|---|---|")
    for n, p in ((300, 10), (1000, 20)):
        gp = all_on(n, p)
        small = n == 300
        calls: dict[str, tuple[Callable[[], object], str]] = {
            "all shares and pairs": (partial(gs.variance_shares, gp), "0.15" if small else "4"),
            "pairs with their evidence": (partial(gs.interactions, gp), ""),
            "curves of all features": (partial(gs.effects, gp), "0.2" if small else ""),
            "SHAP values of 300 rows": (partial(gs.explain, gp, gp.inputs.X[:300]), "1" if small else ""),
        }
        for what, (call, limit) in calls.items():
            print(f"| {what} | {n} | {p} | {taken(call):.3f} | {limit} |")


def all_on(n: int, p: int) -> gs.FittedGP:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, p))
    hyper = gs.Fixed(lengthscale=2.0, signal_var=2.0, noise_var=0.1)
    return gs.GP(hyper=hyper).fit(X, friedman(X) + rng.normal(size=n))


def borehole(U: np.ndarray) -> np.ndarray:
    """Flow of water through a borehole (Harper and Gupta 1983), of inputs scaled to [0, 1]."""
    low, high = np.array(list(BOREHOLE.values())).T
    rw, r, Tu, Hu, Tl, Hl, L, Kw = (low + (high - low) * U).T
    log_ratio = np.log(r / rw)
    return 2 * np.pi * Tu * (Hu - Hl) / (log_ratio * (1 + 2 * L * Tu / (log_ratio * rw**2 * Kw) + Tu / Tl))


def shares(_: int) -> None:
    """Closed forms beside sampling of the same fitted mean, and beside the function itself."""
    print(
        "\n| function | n | index | from sampling of the mean | in its standard errors | from sampling the function |"
    )
    print("|---|---|---|---|---|---|")
    tasks: list[tuple[str, Function, float, float, int, int, float]] = [
        ("Ishigami's", ishigami, -np.pi, np.pi, 3, 300, 0.0),
        ("Sobol's g", sobol_g, 0.0, 1.0, 6, 400, 0.0),
        ("Friedman's", friedman, 0.0, 1.0, 8, 200, 1.0),
        ("borehole", borehole, 0.0, 1.0, 8, 200, 0.0),
    ]
    for name, function, low, high, p, n, noise in tasks:
        X = low + (high - low) * qmc.Sobol(p, rng=np.random.default_rng(1)).random(n)
        gp = gs.GP(hyper=gs.ML2(starts=2)).fit(X, function(X) + noise * np.random.default_rng(0).normal(size=n))
        nodes, weights = np.polynomial.legendre.leggauss(32)
        margin = 0.5 * (low + high) + 0.5 * (high - low) * nodes, weights
        closed = gs.variance_shares(gp, margins=dict.fromkeys(gp.inputs.names, margin))
        of_mean = sampled(lambda rows, gp=gp: gp.predict(rows).mean, low, high, p)
        of_function = sampled(function, low, high, p)
        for index, ours in (("first", closed.first), ("total", closed.total)):
            (mean, se), (truth, _) = of_mean[index], of_function[index]
            apart = np.abs(ours - mean)
            in_errors = (apart / np.maximum(se, 1e-6)).max()
            print(
                f"| {name} | {n} | {index} | {apart.max():.4f} | {in_errors:.1f} | {np.abs(ours - truth).max():.4f} |"
            )


def sampled(function: Function, low: float, high: float, p: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """First-order and total indices by sampling, with standard errors over independent sequences of points."""
    found = [by_salib(function, low, high, p, seed) for seed in range(N_SEQUENCES)]
    indices = {index: np.array([each[key] for each in found]) for index, key in (("first", "S1"), ("total", "ST"))}
    return {
        index: (values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(N_SEQUENCES))
        for index, values in indices.items()
    }


def by_salib(function: Function, low: float, high: float, p: int, seed: int) -> Mapping[str, np.ndarray]:
    from SALib.analyze import sobol as estimates
    from SALib.sample import sobol as points

    problem = {"num_vars": p, "names": [f"x{j + 1}" for j in range(p)], "bounds": [[low, high]] * p}
    rows = points.sample(problem, N_SAMPLED, calc_second_order=False, seed=seed)
    return estimates.analyze(problem, function(rows), calc_second_order=False, num_resamples=2, seed=seed)


def autoregressive(n: int, p: int, r: float, rng: np.random.Generator) -> np.ndarray:
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = r * X[:, j - 1] + np.sqrt(1 - r * r) * X[:, j]
    return X


def pair_design(name: str, n: int, p: int, seed: int) -> tuple[np.ndarray, np.ndarray, set[tuple[int, int]]]:
    """Inputs, target and the pairs that act together."""
    rng = np.random.default_rng([seed, n])
    e = rng.standard_normal(n)
    if name == "Friedman's function":
        X = rng.uniform(size=(n, p))
        return X, friedman(X) + e, {(0, 1)}
    if name == "two products":
        X = rng.standard_normal((n, p))
        f = 1.5 * X[:, 0] * X[:, 1] + X[:, 2] * np.sin(1.5 * X[:, 3]) + 1.5 * np.cos(1.5 * X[:, 4])
        return X, f + 0.7 * e, {(0, 1), (2, 3)}
    if name == "a product, AR(0.5)":
        X = autoregressive(n, p, 0.5, rng)
        f = 1.5 * X[:, 0] + 1.5 * np.sin(1.5 * X[:, 2]) + X[:, 4] * X[:, 6] + 0.7 * X[:, 6]
        return X, f + 0.7 * e, {(4, 6)}
    if name == "a sum of curves":
        X = rng.uniform(-1.7, 1.7, size=(n, p))
        f = 2 * np.sin(1.5 * X[:, 0]) + X[:, 1] ** 2 + 1.5 * X[:, 2] + 1.5 * np.abs(X[:, 3])
        return X, f + 0.7 * e, set()
    return rng.standard_normal((n, p)), e, set()


DESIGNS = ("Friedman's function", "two products", "a product, AR(0.5)", "a sum of curves", "noise")


def pairs(seeds: int) -> None:
    """n = 200, p = 10: how often the true pairs are first, all found, and something else is found."""
    fits = {"Sift()": gs.Sift(), "MAP(starts=1)": gs.MAP(starts=1)}
    print("\n| design | fit | sets | true pairs first | all found | a false one found | least true | largest false |")
    print("|---|---|---|---|---|---|---|---|")
    for name in DESIGNS:
        for label, hyper in fits.items():
            rows = np.array([judged(name, hyper, seed) for seed in range(seeds)])
            first, every, false = rows[:, :3].mean(axis=0)
            truth = "| | " if np.isnan(rows[:, 3]).all() else f"| {first:.0%} | {every:.0%} "
            least = "" if np.isnan(rows[:, 3]).all() else f"{rows[:, 3].min():.3g}"
            print(f"| {name} | {label} | {seeds} {truth}| {false:.0%} | {least} | {rows[:, 4].max():.3g} |", flush=True)


def judged(name: str, hyper: object, seed: int) -> tuple[float, ...]:
    """Whether the true pairs are first, all found, others found; the least true evidence and the largest false one."""
    X, y, truth = pair_design(name, 200, 10, seed)
    found = gs.interactions(gs.GP(hyper=hyper).fit(X, y))
    is_true = np.zeros(found.share.shape, dtype=bool)
    for pair in truth:
        is_true[pair] = True
    upper = np.triu_indices(10, 1)
    share, evidence, is_true = found.share[upper], found.evidence[upper], is_true[upper]
    first = np.argsort(-share, kind="stable")[: len(truth)]
    least = evidence[is_true].min() if truth else np.nan
    largest = evidence[~is_true].max()
    return float(is_true[first].all()), float(least >= 5), float(largest >= 5), least, largest


def bands(seeds: int) -> None:
    """Friedman's function, n = 150, p = 6: how often 90 % intervals of curves hold the true average effect."""
    print("\n| bands | sets | active inputs | an idle one | width, active |\n|---|---|---|---|---|", flush=True)
    held: dict[bool, list[tuple[float, float, float]]] = {False: [], True: []}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X = rng.uniform(size=(150, 6))
        gp = gs.GP().fit(X, friedman(X) + rng.standard_normal(150))
        for intervals, found in held.items():
            found.append(held_by_bands(gs.effects(gp, features=range(6), intervals=intervals), X))
    for intervals, label in ((False, "at the fitted hyperparameters"), (True, "pooled, `intervals=True`")):
        active, idle, width = np.mean(held[intervals], axis=0)
        print(f"| {label} | {seeds} | {active:.1%} | {idle:.1%} | {width:.3f} |", flush=True)


def held_by_bands(curves: gs.Effects, X: np.ndarray) -> tuple[float, float, float]:
    """The share of values at which 90 % bands hold the truth, of active inputs and of the idle one, and their width."""
    inside: dict[str, np.ndarray] = {}
    for curve in curves:
        truth = true_curve(X, int(curve.name[1:]) - 1, curve.x)
        inside[curve.name] = np.abs(curve.mean - truth) <= 1.645 * curve.sd + 1e-12
    active = [name for name in inside if name != "x6"]
    width = np.mean([2 * 1.645 * curves[name].sd.mean() for name in active])
    return float(np.mean([inside[name] for name in active])), float(inside["x6"].mean()), float(width)


def true_curve(X: np.ndarray, j: int, values: np.ndarray) -> np.ndarray:
    """Averages of the function itself over the rows, less the average over the column's own values."""

    def at(value: float) -> float:
        moved = X.copy()
        moved[:, j] = value
        return float(friedman(moved).mean())

    return np.array([at(value) for value in values]) - np.mean([at(value) for value in X[:, j]])


def shap_values(_: int) -> None:
    """KernelExplainer on the same model, with rows drawn from the margins as its background."""
    try:
        import shap
    except ImportError:
        print("\nshap is not installed.")
        return
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 10))
    gp = gs.GP(hyper=gs.MAP(starts=1)).fit(X, friedman(X) + rng.normal(size=300))
    background = np.column_stack([rng.permutation(column) for column in X.T])[:100]
    ours = taken(lambda: gs.explain(gp))
    start = time.process_time()
    explainer = shap.KernelExplainer(lambda rows: gp.predict(rows).mean, background)
    theirs = explainer.shap_values(X[:5], silent=True)
    seconds = (time.process_time() - start) * 300 / 5
    apart = np.abs(theirs - gs.explain(gp, X[:5]).values)
    print(f"\nSHAP values of 300 rows: {ours:.3f} s; KernelExplainer by default {seconds:.0f} s (from 5 rows),")
    print(f"{seconds / ours:.0f} times as long; apart by {apart.max():.2f} at most and {apart.mean():.3f} on average,")
    print(f"where values have a spread of {gs.explain(gp).values.std():.2f}.")


SECTIONS = {"costs": costs, "shares": shares, "pairs": pairs, "bands": bands, "shap": shap_values}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("section", nargs="?", default="all", choices=[*SECTIONS, "all"])
    parser.add_argument("--seeds", type=int, default=50)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    with one_thread():
        for name, section in SECTIONS.items():
            if asked.section in (name, "all"):
                section(asked.seeds)


if __name__ == "__main__":
    main()
