"""How near sparse models are to exact ones: their scores, and how well they predict.

python benchmarks/agreement.py points --points 25 50 100 200 400 --out FOLDER    # against exact fits to 2000 rows
python benchmarks/agreement.py ways --device cuda                                    # all ways, 10,000 rows, a GPU
python benchmarks/agreement.py ways --device cuda --way taken                        # the one that a fit takes
python benchmarks/agreement.py near                                                  # at given hyperparameters
python benchmarks/agreement.py likelihoods                                           # classes, counts, on made data

The first three need GPSIFT_DATA, the folder with scale/.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scale import data_set
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from timing import one_thread, seconds

import gpsift as gs
from gpsift.gp.hyperparameters import Hyper
from gpsift.gp.sparse.search import SparseSearch

# Data sets on which an exact fit is possible without a GPU, with the number of rows that it takes.
POINTS = {"airfoil": 1503, "pumadyn32nm": 2000, "protein": 2000}
WAYS = ("kin40k", "pol", "protein", "elevators", "nycflights")
WAYS_ROWS, WAYS_TEST_ROWS, WAYS_POINTS = 10_000, 4000, 256
# Ways to be sparse, and what their posterior may be: neighbours where None, inducing points only where 0.
CHOICES = (("taken", None), ("by_bound", 0), ("by_neighbours", 0), ("by_neighbours", None))
# Rows at which VAR is compared in `ways`; KL is at all.
VAR_ROWS = 2000
# Features are near copies of each other from this correlation on.
COPIES = 0.95
NEAR = ("airfoil", "pol", "kin40k", "protein")
NEAR_DATA_ROWS, NEAR_SEARCHED, NEAR_POINTS = 3000, 1500, 200
NEAR_CHOICES = tuple({"near_rows": k} for k in (0, 100, 200, 400, 600))
HYPERS = {"default": gs.Sift(), "ml2": gs.ML2(starts=2)}
MADE_ROWS, MADE_POINTS = 300, (15, 30, 60, 100)
# Features above this share of the top score are the ones that a reader would keep.
KEPT = 0.1
MARK = 0.05
MEASURES = (gs.KL(), gs.VAR(conditional="normal"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("section", choices=("points", "ways", "near", "likelihoods"))
    parser.add_argument("--points", type=int, nargs="+", default=[200], help="inducing points of `points`")
    parser.add_argument("--only", help="one data set")
    parser.add_argument("--device", help="where the matrices of `ways` live")
    parser.add_argument("--way", help="one of the ways of `ways`: taken, by_bound, by_neighbours")
    parser.add_argument("--hyper", choices=HYPERS, default="default", help="hyperparameters of `ways`")
    parser.add_argument("--out", type=Path, help="a folder for the table and the picture of `points`")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    if chosen.section == "ways":
        for name in [chosen.only] if chosen.only else WAYS:
            ways(name, HYPERS[chosen.hyper], chosen.device, chosen.way)
        return
    if chosen.section == "near":
        with one_thread():
            for name in [chosen.only] if chosen.only else NEAR:
                near(name)
        return
    if chosen.section == "likelihoods":
        with one_thread():
            likelihoods()
        return
    with one_thread():
        names = [chosen.only] if chosen.only else POINTS
        table = pd.concat([points(name, chosen.points) for name in names], ignore_index=True)
    if chosen.out is not None:
        chosen.out.mkdir(parents=True, exist_ok=True)
        table.to_csv(chosen.out / "agreement.csv", index=False, float_format="%.6g")
        picture(table).savefig(chosen.out / "agreement.png", dpi=150, bbox_inches="tight")


def points(name: str, sizes: Sequence[int]) -> pd.DataFrame:
    """Own sparse fits against an own exact one, for growing numbers of inducing points."""
    X, y = data_set(name, POINTS[name])
    exact, spent = timed(lambda: gs.GP(hyper=gs.ML2(), inference="exact").fit(X, y))
    print(f"{name}: exact, {spent:.0f} s, evidence {exact.log_marginal_likelihood:.1f}", flush=True)
    references, rows = scores(exact), []
    for m in sizes:
        sparse, spent = timed(lambda: gs.GP(hyper=gs.ML2(), inference=gs.Sparse(m=m)).fit(X, y))  # noqa: B023
        row = {"data": name, "m": m, "seconds": spent, **compared(sparse, references)}
        row |= {"objective": sparse.log_marginal_likelihood, "searched_rows": sparse.report.n_rows_searched}
        rows.append(row)
        print("  ".join(f"{key} {_short(value)}" for key, value in row.items()), flush=True)
    return pd.DataFrame(rows)


def ways(name: str, hyper: Hyper, device: str | None, only_way: str | None) -> None:
    """Inducing points and neighbours, hyperparameters by either and as taken, against exact inference."""
    X, y = data_set(name, None)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:WAYS_ROWS], order[WAYS_ROWS : WAYS_ROWS + WAYS_TEST_ROWS]
    groups = near_copies(X[train])
    print(f"{name}: near copies {groups}", flush=True)

    def exact(rows: np.ndarray) -> gs.FittedGP:
        return gs.GP(inference="exact", device=device, hyper=hyper).fit(X[rows], y[rows])

    reference, spent = timed(lambda: exact(train))
    references = asked(reference, X[train], groups)
    first, second = (asked(exact(train[half::2]), X[train], groups) for half in (0, 1))
    halves = {label: f"{_off(first[label], second[label]):.3f}" for label in references}
    print(
        f"{name}: exact {spent:.0f} s, density {density(reference, X[test], y[test]):.4f}, halves {halves}", flush=True
    )
    for way, near_rows in CHOICES:
        if only_way not in (None, way):
            continue
        model = gs.GP(hyper=hyper, inference=gs.Sparse(m=WAYS_POINTS, near_rows=near_rows))
        with only(way):
            sparse, spent = timed(lambda: model.fit(X[train], y[train]))  # noqa: B023
        found: dict[str, object] = {"density": density(sparse, X[test], y[test]), "elpd": sparse.quality.elpd}
        found |= {"seconds": spent, "blocks": sparse.report.n_blocks}
        found |= {label: _off(scores, references[label]) for label, scores in asked(sparse, X[train], groups).items()}
        listed = "  ".join(f"{key} {_short(value)}" for key, value in found.items())
        print(f"{name}: {way}{', points only' if near_rows == 0 else ''} {listed}", flush=True)


def asked(model: gs.FittedGP, X: np.ndarray, groups: dict[str, list[str]]) -> dict[str, np.ndarray]:
    """Scores of single features by KL and VAR, and by KL with near copies as one."""
    return {
        "KL": gs.rank(model, X, measure=gs.KL()).scores,
        "KL, copies as one": gs.rank(model, X, measure=gs.KL(), groups=groups).scores,
        "VAR": gs.rank(model, X[:VAR_ROWS], measure=gs.VAR()).scores,
    }


def near_copies(X: np.ndarray) -> dict[str, list[str]]:
    """Features that are joined by correlations, as groups."""
    close = np.abs(np.corrcoef(X.T)) > COPIES
    _, part = connected_components(csr_matrix(close))
    members = [[f"x{j + 1}" for j in np.flatnonzero(part == label)] for label in range(part.max() + 1)]
    return {" ".join(names): names for names in members if len(names) > 1}


def near(name: str) -> None:
    """More and more rows near a block against exact inference, at the hyperparameters of exact inference on some."""
    X, y = data_set(name, None)
    order = np.random.default_rng(0).permutation(len(y))[:NEAR_DATA_ROWS]
    X, y = X[order], y[order]
    found = gs.GP(inference="exact", hyper=gs.ML2(starts=1)).fit(X[:NEAR_SEARCHED], y[:NEAR_SEARCHED])
    signal, constant = found.kernel.terms
    hyper = gs.Fixed(signal.lengthscale, signal.signal_var, found.likelihood.noise_var, constant.constant_var)
    exact = gs.GP(inference="exact", hyper=hyper).fit(X, y)
    print(f"{name}: {len(y)} rows, exact, elpd {exact.quality.elpd:.1f}", flush=True)
    references = scores(exact)
    for choice in NEAR_CHOICES:
        sparse = gs.GP(inference=gs.Sparse(m=NEAR_POINTS, **choice), hyper=hyper).fit(X, y)
        row = {**choice, "elpd": sparse.quality.elpd, **compared(sparse, references)}
        print(f"{name}: " + "  ".join(f"{key} {_short(value)}" for key, value in row.items()), flush=True)


def likelihoods() -> None:
    """Sparse fits for other likelihoods than Gaussian noise, against dense ones."""
    rng = np.random.default_rng(0)
    X, hours = rng.normal(size=(MADE_ROWS, 4)), rng.uniform(1.0, 10.0, MADE_ROWS)
    f = np.sin(2.0 * X[:, 0]) + 0.7 * X[:, 1]
    chance, rate = 1.0 / (1.0 + np.exp(-2.0 * f)), np.exp(f)
    counts, trials = rng.poisson(hours * rate), np.full(MADE_ROWS, 10.0)
    cases: dict[str, tuple[str, np.ndarray, dict[str, np.ndarray], tuple[str, ...]]] = {
        "Bernoulli, probit": ("bernoulli", rng.random(MADE_ROWS) < chance, {}, ("ep",)),
        "Bernoulli, logit": ("logit", rng.random(MADE_ROWS) < chance, {}, ("ep", "laplace")),
        "binomial": ("binomial", rng.binomial(10, chance), {"trials": trials}, ("laplace",)),
        "Poisson": ("poisson", counts, {"exposure": hours}, ("laplace",)),
        "negative binomial": ("negative-binomial", counts, {"exposure": hours}, ("laplace",)),
        "gamma": ("gamma", rate * rng.gamma(4.0, 0.25, MADE_ROWS), {}, ("laplace",)),
    }
    for name, (likelihood, y, sizes, inferences) in cases.items():
        for inference in inferences:
            dense = gs.GP(hyper=gs.ML2(), likelihood=likelihood, inference=inference).fit(X, y.astype(float), **sizes)
            for m in MADE_POINTS:
                sparse = gs.GP(hyper=gs.ML2(), likelihood=likelihood, inference=gs.Sparse(m=m)).fit(
                    X, y.astype(float), **sizes
                )
                found = {"m": m, **compared(sparse, scores(dense))}
                found |= {"elpd, dense": dense.quality.elpd, "sparse": sparse.quality.elpd}
                listed = "  ".join(f"{key} {_short(value)}" for key, value in found.items())
                print(f"{name}, {inference}: {listed}", flush=True)


@contextmanager
def only(way: str) -> Iterator[None]:
    """Let fits have one of the two ways to their hyperparameters; "taken" leaves both."""
    both = SparseSearch.candidates
    if way == "by_bound":
        SparseSearch.candidates = lambda self: [self.maximise_bound()]
    elif way == "by_neighbours":
        SparseSearch.candidates = lambda self: [self.maximise_vecchia(self.maximise_bound().estimate)]
    try:
        yield
    finally:
        SparseSearch.candidates = both


def timed(fit: Callable[[], gs.FittedGP]) -> tuple[gs.FittedGP, float]:
    fitted: list[gs.FittedGP] = []
    spent = seconds(lambda: fitted.append(fit()))
    return fitted[0], spent


def scores(model: gs.FittedGP) -> list[np.ndarray]:
    return [gs.rank(model, measure=measure).scores for measure in MEASURES]


def compared(model: gs.FittedGP, references: Sequence[np.ndarray]) -> dict[str, float | bool]:
    """The largest difference relative to the top score, and whether the same features are above a tenth of it."""
    found: dict[str, float | bool] = {}
    for measure, values, expected in zip(MEASURES, scores(model), references, strict=True):
        name = type(measure).__name__
        found[f"{name} off"] = _off(values, expected)
        found[f"{name} same set"] = np.array_equal(values > KEPT * values.max(), expected > KEPT * expected.max())
    return found


def density(model: gs.FittedGP, X: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean(model.predict(X).log_density(y)))


def picture(table: pd.DataFrame) -> plt.Figure:
    figure, axes = plt.subplots(1, len(MEASURES), figsize=(8.0, 3.2), sharex=True, sharey=True)
    for axis, measure in zip(axes, MEASURES, strict=True):
        for name, part in table.groupby("data", sort=False):
            axis.plot(part.m, part[f"{type(measure).__name__} off"], marker="o", markersize=3.5, label=name)
        axis.axhline(MARK, color="0.4", linestyle="--", linewidth=1.0)
        axis.set(xscale="log", yscale="log", xlabel="inducing points", title=type(measure).__name__)
        axis.set_xticks(sorted(set(table.m)), [str(m) for m in sorted(set(table.m))], minor=False)
        axis.minorticks_off()
    axes[0].set_ylabel("largest difference / top score")
    axes[0].legend()
    figure.tight_layout()
    return figure


def _off(scores: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, relative to the top score."""
    return float(np.abs(scores - expected).max() / expected.max())


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
