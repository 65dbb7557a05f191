"""Recovery of known truth: which way of ordering features finds those that made the data?

Few rows, many idle features, noise: 100 rows, 50 features, of which 8 (the paper's toy, normal inputs, noise sd 1) or 5
(Friedman's function, noise sd 3) are used, all inputs uncorrelated or equicorrelated at 0.5. One Gaussian process is
fitted to each data set, and every method orders the features of that same model. Two scores: the share of true features
among the first k, k being their number, and the area under the ROC curve (AUC) of the method's scores.

Decided before the run: the main table is that of ``ML2()``, since it was what ``GP()`` did by default; ``MAP()`` is
the second. Expected: KL and VAR are above ARD, with a 95 % interval of the paired difference clear of 0, on at least
three of the four settings.

The second part asks for the number of features: the size that each rule of `suggest_size` takes along the KL path.

    python experiments/recovery/recovery.py --jobs 2          # all of it, about an hour of one core; needs shap
    python experiments/recovery/recovery.py --quick --out /tmp/recovery
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from report import report
from sklearn.inspection import permutation_importance
from sklearn.metrics import r2_score, roc_auc_score

import gpsift as gs
from gpsift._utils.parallel import Task
from gpsift._utils.warnings import collect_warnings
from gpsift.paper.datasets import friedman, paper_toy
from gpsift.paper.datasets.toys import Toy
from gpsift.selection.path import RULES
from gpsift.sklearn import GPRegressor

SEED = 2019
N_TRAIN = N_FRESH = 100
P = 50
PROJECTION_SIZES = 12  # a few more than there are true features: all 50 would take minutes a data set
PERMUTATIONS = 10
SHAP_BACKGROUND, SHAP_ROWS, SHAP_SAMPLES = 20, 25, 500
LARGEST_PATH = 15

TOY = partial(paper_toy, "normal", p=P, noise_sd=1.0)
FRIEDMAN = partial(friedman, p=P, noise_sd=3.0)
SETTINGS: dict[str, Callable[..., Toy]] = {
    "toy, r = 0": partial(TOY, correlation=0.0),
    "toy, r = 0.5": partial(TOY, correlation=0.5),
    "Friedman, r = 0": partial(FRIEDMAN, correlation=0.0),
    "Friedman, r = 0.5": partial(FRIEDMAN, correlation=0.5),
}
# The priors of the stored tables: densities of length-scales and noise themselves, not of their logarithms.
HYPERS = {"ML2": gs.ML2(), "MAP": gs.MAP(lengthscale=gs.InverseGamma(1.0, 10.0), noise=gs.HalfT(4.0, 1.0))}
MEASURES = {
    "KL": gs.KL(),
    "VAR": gs.VAR(conditional="normal"),
    "ARD": gs.ARD(),
    "RATE": gs.RATE(),
    "DGSM": gs.Derivative(kind="squared"),
}
# Data sets of each setting, by how long a method takes; the first entry is for ML2, the second for MAP.
DATA_SETS = {
    "measures": (50, 50),
    "permutation": (50, 50),
    "shap": (10, 10),
    "loo": (20, 20),
    "5-fold": (10, 10),
    "projection": (10, 0),
}
QUICK = ("measures", "permutation", "loo")

Result = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Data:
    """Training rows and fresh rows of one function, and which columns it uses: the numbers of its features, or 0."""

    X: np.ndarray
    y: np.ndarray
    X_fresh: np.ndarray
    y_fresh: np.ndarray
    truth: np.ndarray
    noise_sd: float

    @classmethod
    def make(cls, setting: str, number: int) -> Data:
        train = SETTINGS[setting](n=N_TRAIN, seed=[SEED, number, 0])
        fresh = SETTINGS[setting](n=N_FRESH, seed=[SEED, number, 1])
        # Friedman's true features are the first five. In another order nobody gains by taking the first of equals.
        columns = np.random.default_rng([SEED, number, 2]).permutation(P)
        truth = np.cumsum(train.relevant) * train.relevant
        return cls(train.X[:, columns], train.y, fresh.X[:, columns], fresh.y, truth[columns], train.noise_sd)


def work(method: str, setting: str, number: int, hyper: str) -> Result:
    """One method on one data set: scores by name, or sizes by rule."""
    with collect_warnings():
        data = Data.make(setting, number)
        if method in ("loo", "5-fold"):
            return {"sizes": sizes(data, gs.GP(hyper=HYPERS[hyper]), None if method == "loo" else 5)}
        model = GPRegressor(hyper=HYPERS[hyper]).fit(data.X, data.y)
        return SCORERS[method](model, data, number)


def by_measures(model: GPRegressor, data: Data, _number: int) -> Result:
    """Scores of gpsift's measures at the training rows, and how good the model is."""
    gp, fresh = model.gp_, model.gp_.predict(data.X_fresh)
    fit = {
        "r2": r2_score(data.y_fresh, fresh.mean),
        "loo_r2": gp.quality.loo_r2,
        "error": np.sqrt(np.mean((data.y_fresh - fresh.mean) ** 2 / fresh.var)),  # 1 where uncertainty is honest
        "noise": np.sqrt(gp.noise_var) / data.noise_sd,
        "explains": bool(gp.explains),
        "starts_agree": bool(gp.report.starts_agree),
    }
    return {"scores": {name: gs.rank(gp, measure=measure).scores for name, measure in MEASURES.items()}, "fit": fit}


def by_permutation(model: GPRegressor, data: Data, number: int) -> Result:
    """Loss of R2 when a column is shuffled: on fresh rows, whose targets no other method sees, and on training rows."""
    rows = {"permutation, fresh": (data.X_fresh, data.y_fresh), "permutation, training": (data.X, data.y)}
    loss = partial(permutation_importance, model, scoring="r2", n_repeats=PERMUTATIONS, random_state=number)
    return {"scores": {name: loss(X, y).importances_mean for name, (X, y) in rows.items()}}


def by_shap(model: GPRegressor, data: Data, number: int) -> Result:
    """Mean absolute Shapley value of the predicted mean at the first training rows, by KernelSHAP as it comes."""
    import shap

    np.random.seed(number)  # noqa: NPY002 - shap draws its coalitions from the global generator
    explainer = shap.KernelExplainer(model.predict, shap.kmeans(data.X, SHAP_BACKGROUND))
    values = explainer.shap_values(data.X[:SHAP_ROWS], nsamples=SHAP_SAMPLES, silent=True)
    return {"scores": {"SHAP": np.abs(values).mean(axis=0)}}


def by_projection(model: GPRegressor, _data: Data, _number: int) -> Result:
    """How early a feature enters in forward search; those that do not are tied at the end."""
    path = gs.forward_projection(model.gp_, max_size=PROJECTION_SIZES)
    scores = np.zeros(P)
    scores[list(path.columns(PROJECTION_SIZES))] = np.arange(PROJECTION_SIZES, 0, -1)
    return {"scores": {"projection": scores}}


SCORERS = {
    "measures": by_measures,
    "permutation": by_permutation,
    "shap": by_shap,
    "projection": by_projection,
}


def sizes(data: Data, model: gs.GP, cv: int | None) -> Result:
    """The size that each rule takes along the path of KL; None where none qualifies."""
    path = gs.search(data.X, data.y, "kl", model=model, sizes=LARGEST_PATH, cv=cv, work=gs.Work(jobs=1, progress=False))
    return {rule: gs.suggest_size(path, rule).size for rule in RULES}


def judged(scores: Sequence[float], truth: np.ndarray) -> Result:
    """Share of the true features among the first k, which of them, and AUC."""
    k = int(truth.max())
    found = truth[np.argsort(-np.asarray(scores), kind="stable")[:k]]
    found = np.sort(found[found > 0])
    return {"share": found.size / k, "auc": roc_auc_score(truth > 0, scores), "found": " ".join(map(str, found))}


def run(options: argparse.Namespace) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """All tasks, as tidy tables of scores, chosen sizes and fits."""
    wanted = [
        (method, setting, number, hyper)
        for method in DATA_SETS
        if method in options.methods
        for place, hyper in enumerate(HYPERS)
        for number in range(min(DATA_SETS[method][place], options.seeds))
        for setting in options.settings
    ]
    identity = {"experiment": f"recovery, seed {SEED}, n = {N_TRAIN}, p = {P}", "gpsift": gs.__version__}
    how = gs.Work(jobs=options.jobs, checkpoint=options.out / "checkpoint.sqlite", progress=True)
    with how.runner("recovery", len(wanted), identity) as runner:
        results = runner.run(work, [Task(" ".join(map(str, each)), each) for each in wanted])
    scores, chosen, fits = [], [], []
    for (method, setting, number, hyper), result in zip(wanted, results, strict=True):
        where = {"hyper": hyper, "setting": setting, "seed": number}
        truth = Data.make(setting, number).truth
        for name, values in result.get("scores", {}).items():
            scores.append({**where, "method": name, **judged(values, truth)})
        for rule, size in result.get("sizes", {}).items():
            chosen.append({**where, "cv": method, "rule": rule, "size": size, "truth": int(truth.max())})
        if "fit" in result:
            fits.append({**where, **result["fit"]})
    return pd.DataFrame(scores), pd.DataFrame(chosen), pd.DataFrame(fits)


def main() -> None:
    """Run, judge, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS), metavar="SETTING", help="; ".join(SETTINGS)
    )
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=DATA_SETS,
        default=list(DATA_SETS),
        metavar="METHOD",
        help=f"of {', '.join(DATA_SETS)}; the tables need measures, for ARD",
    )
    parser.add_argument("--seeds", type=int, default=50, help="data sets of each setting, at most; slow methods: fewer")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder of tables and picture")
    parser.add_argument("--resume", action="store_true", help="go on with what is in the folder")
    parser.add_argument("--quick", action="store_true", help="three data sets, fast methods: a minute")
    options = parser.parse_args()
    if options.quick:
        options.seeds = min(options.seeds, 3)
        options.methods = [method for method in options.methods if method in QUICK]
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.resume:
        (options.out / "checkpoint.sqlite").unlink(missing_ok=True)
    scores, chosen, fits = run(options)
    report(scores, chosen, fits, options.out)


if __name__ == "__main__":
    main()
