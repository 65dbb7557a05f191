"""The protocols of the paper's experiments, and their settings: the paper's where it states them, otherwise ours.

On a data set, each random split gives a full model, a ranking by each measure, and submodels along each ranking that
predict the test part. The toys have eight equally relevant features, from nearly linear to a full wave, with and
without irrelevant ones.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gpsift._utils.parallel import Task, Work, fingerprint
from gpsift._utils.threads import blas_threads_for
from gpsift._utils.warnings import collect_warnings
from gpsift.gp import GP, MAP, ML2, DrawnGP, FittedGP, HalfT, InverseGamma
from gpsift.gp.hyperparameters.nuts import NUTS
from gpsift.paper.datasets import Dataset, paper_toy
from gpsift.paper.datasets.toys import FREQUENCIES, Law, sine_amplitudes
from gpsift.relevance import ARD, KL, RATE, VAR, Measure, rank
from gpsift.relevance.conditionals import Covariance
from gpsift.selection.cross_validation import prediction_metrics
from gpsift.selection.data import Data
from gpsift.selection.projection import forward_projection
from gpsift.selection.submodels import SubmodelFit, fit_submodel, parent_start

# Inverse gamma densities have their mode at scale / (shape + 1): 5 standard deviations of a feature, and 0.83.
LENGTHSCALE_PRIORS = {"long": InverseGamma(1.0, 10.0), "short": InverseGamma(5.0, 5.0)}
# The result of a task: numbers, text, lists and arrays by name.
Result = dict[str, Any]
QUICK_LIMITS = {"splits": 2, "toys": 3, "nuts_splits": 1, "extra_splits": 1, "largest_size": 3}
# Rows of a toy; and rows and features of the tables whose cost is measured while the other of the two grows.
N_TRAIN = 300
COST_MIDDLE = {"n": N_TRAIN, "p": 8}
METHODS = ("ARD", "KL", "VAR")


@dataclass(frozen=True)
class Settings:
    """Settings of the experiments: their size, their models, and the folder of the results."""

    out: Path  # the folder of the results
    splits: int = 50  # of each data set, as in the paper
    toys: int = 200  # data sets of each toy, as in the paper; a quarter of that where it says 50
    quick: bool = False  # a smoke run: few splits, small sizes, few draws
    resume: bool = False  # go on with what is in `out`; otherwise start anew
    prior: str = "long"  # of `LENGTHSCALE_PRIORS`: the paper is silent on it
    covariance: Covariance = "ridge"  # of the inputs, for VAR; the authors' code adds a diagonal
    log_crime: bool = True  # whether the target of Crime is logged
    coding: str = "default"  # of Automobile
    nuts_splits: int = 10  # on which the full model is sampled
    extra_splits: int = 20  # on which projection and RATE are tried too
    largest_size: int = 30
    seed: int = 0
    folder: Path | None = None  # where the data are, if not to be fetched
    work: Work = Work(jobs=2)  # finished parts are kept in `out` by themselves

    def limited(self, name: str) -> int:
        """Return a number of the settings, reduced in a quick run."""
        value = int(getattr(self, name))
        return min(value, QUICK_LIMITS[name]) if self.quick else value

    @property
    def hyper(self) -> MAP:
        """The paper's MAP: half-t magnitudes, inverse-gamma length-scales."""
        return MAP(
            lengthscale=LENGTHSCALE_PRIORS[self.prior],
            signal=HalfT(4.0, 1.0),
            noise=HalfT(4.0, 1.0),
            starts=1 if self.quick else 3,
            seed=self.seed,
        )

    @property
    def nuts(self) -> NUTS:
        """The sampler of the dashed line: 100 draws become models."""
        draws, tune, keep = (20, 30, 10) if self.quick else (400, 400, 100)
        return NUTS(draws=draws, tune=tune, chains=2, keep=keep, seed=self.seed, prior=self.hyper, progress=False)

    @property
    def measures(self) -> dict[str, Measure]:
        """The three methods of the paper, with its step."""
        return {"ARD": ARD(), "KL": KL(delta=1e-4), "VAR": VAR(covariance=self.covariance, conditional="normal")}


# Methods beyond those of the paper, which it names as the stronger relatives; on the smaller regression sets.
EXTRA = ("RATE", "projection")
WITH_EXTRA = ("concrete", "housing", "automobile")
# A search by projection tries every candidate at every size; beyond this one the curves are flat.
LARGEST_EXTRA = 15
SUBMODEL_STARTS = 2


@dataclass(frozen=True, eq=False)
class Tables:
    """Results of all splits of a data set, as tidy tables: one row for each number."""

    scores: pd.DataFrame  # split, method, feature, score, rank
    curves: pd.DataFrame  # split, method, size, and one column for each metric of the submodel's predictions
    reference: pd.DataFrame  # split, and the metrics of the full model with drawn hyperparameters
    n_train: int
    n_test: int


def random_split(n: int, n_train: int, split: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return row numbers of the training and the test part of a split; they do not depend on the number of splits."""
    order = np.random.default_rng([seed, split]).permutation(n)
    return np.sort(order[:n_train]), np.sort(order[n_train:])


def run_splits(dataset: Dataset, settings: Settings, work: Work) -> Tables:
    """Run all splits of a data set."""
    data = Data(dataset.X.to_numpy(float), dataset.y.to_numpy(float), tuple(dataset.X.columns), {})
    likelihood = "bernoulli" if dataset.is_classification else "gaussian"
    model = GP(likelihood=likelihood, hyper=settings.hyper)
    largest = min(len(data.names), settings.limited("largest_size"))
    n_splits, n_nuts = settings.limited("splits"), settings.limited("nuts_splits")
    n_extra = min(settings.limited("extra_splits"), n_splits) if dataset.name in WITH_EXTRA else 0
    parts = {}
    for split in range(max(n_splits, n_nuts)):
        train, test = random_split(data.y.size, dataset.n_train, split, settings.seed)
        parts[split] = (data.take(train), data.take(test))
    tasks = [Task(f"split {s}", (*parts[s], model, settings.measures, largest)) for s in range(n_splits)]
    sampled = [Task(f"sampled {s}", (*parts[s], replace(model, hyper=settings.nuts))) for s in range(n_nuts)]
    beyond = [Task(f"extra {s}", (*parts[s], model, min(largest, LARGEST_EXTRA))) for s in range(n_extra)]
    total = len(tasks) + len(sampled) + len(beyond)
    with work.runner(dataset.name, total, _splits_identity(dataset, settings)) as runner:
        results = runner.run(compare_rankings, tasks)
        extra = runner.run(extra_rankings, beyond)
        drawn = runner.run(sampled_reference, sampled)
    return Tables(
        scores=_score_table(results, data.names),
        curves=pd.concat([_curve_table(results), _curve_table(extra)], ignore_index=True),
        reference=pd.DataFrame(
            [{"split": split, **result} for split, result in enumerate(drawn)], columns=None if drawn else ["split"]
        ),
        n_train=dataset.n_train,
        n_test=data.y.size - dataset.n_train,
    )


def _splits_identity(dataset: Dataset, settings: Settings) -> Mapping[str, str]:
    """Name for a checkpoint what the results of splits depend on. The number of splits is not part: more can follow."""
    return {
        "data": f"{dataset.name} {fingerprint(dataset.X.to_numpy(float), dataset.y.to_numpy(float))}",
        "training rows": str(dataset.n_train),
        "hyperparameters": repr(settings.hyper),
        "sampler": repr(settings.nuts),
        "measures": ", ".join(measure.label for measure in settings.measures.values()),
        "sizes": f"up to {settings.limited('largest_size')}",
        "seed": str(settings.seed),
    }


def compare_rankings(train: Data, test: Data, model: GP, measures: Mapping[str, Measure], largest: int) -> Result:
    """Run one split: the full model, the order by each measure, and the submodels along each order."""
    with collect_warnings():
        full = _fit_full(train, model)
        scores = {name: rank(full, measure=measure).scores for name, measure in measures.items()}
        orders = {name: np.argsort(-values, kind="stable").tolist() for name, values in scores.items()}
        return {"scores": scores, "orders": orders, "curves": _curves(train, test, model, full, orders, largest)}


def extra_rankings(train: Data, test: Data, model: GP, largest: int) -> Result:
    """Run one split with the orders by RATE and by forward search with projection."""
    with collect_warnings():
        full = _fit_full(train, model)
        path = forward_projection(full, max_size=largest)
        orders = {
            "RATE": np.argsort(-rank(full, measure=RATE()).scores, kind="stable").tolist(),
            "projection": [train.names.index(name) for name in path.order],
        }
        return {"orders": orders, "curves": _curves(train, test, model, full, orders, largest)}


def sampled_reference(train: Data, test: Data, model: GP) -> Result:
    """Evaluate the full model with drawn hyperparameters, the dashed line of the figures."""
    columns = list(range(len(train.names)))
    with collect_warnings():
        fitted = fit_submodel(train, model, columns, parent=None, starts=None)
        assert isinstance(fitted, DrawnGP)
        return {
            **_metrics(SubmodelFit.of(fitted, columns, test, len(train.names)), test, model),
            **dict(fitted.diagnostics),
        }


def _fit_full(train: Data, model: GP) -> FittedGP:
    fitted = fit_submodel(train, model, list(range(len(train.names))), parent=None, starts=None)
    assert isinstance(fitted, FittedGP)
    return fitted


def _curves(
    train: Data, test: Data, model: GP, full: FittedGP, orders: Mapping[str, Sequence[int]], largest: int
) -> dict[str, list[dict[str, float]]]:
    """Evaluate the submodels along each order; orders that agree on a set of features share its fit."""
    parent, known = parent_start(full, model.hyper), {}
    everything = tuple(range(len(train.names)))
    known[everything] = _metrics(SubmodelFit.of(full, everything, test, len(train.names)), test, model)
    curves: dict[str, list[dict[str, float]]] = {}
    for name, order in orders.items():
        curves[name] = []
        for size in range(1, min(largest, len(order)) + 1):
            columns = tuple(sorted(order[:size]))
            if columns not in known:
                fitted = fit_submodel(train, model, columns, parent=parent, starts=SUBMODEL_STARTS)
                known[columns] = _metrics(SubmodelFit.of(fitted, columns, test, len(train.names)), test, model)
            curves[name].append({"size": size, **known[columns]})
    return curves


def _metrics(fit: SubmodelFit, test: Data, model: GP) -> dict[str, Any]:
    classes = model.likelihood == "bernoulli"
    found = dict(prediction_metrics(test.y, fit.mean, classes=classes))
    return {"mlpd": float(np.mean(fit.lpd)), "mse": float(np.mean((test.y - fit.mean) ** 2)), **found}


def _score_table(results: Sequence[Result], names: Sequence[str]) -> pd.DataFrame:
    rows = []
    for split, result in enumerate(results):
        for method, scores in result["scores"].items():
            ranks = np.argsort(result["orders"][method]) + 1
            rows += [
                {"split": split, "method": method, "feature": name, "score": score_, "rank": int(place)}
                for name, score_, place in zip(names, scores, ranks, strict=True)
            ]
    return pd.DataFrame(rows)


def _curve_table(results: Sequence[Result]) -> pd.DataFrame:
    rows = [
        {"split": split, "method": method, **point}
        for split, result in enumerate(results)
        for method, curve in result["curves"].items()
        for point in curve
    ]
    return pd.DataFrame(rows)


LAWS: tuple[Law, ...] = ("uniform", "normal")
MANY_FEATURES = 50
DELTAS = (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
# The paper averages 200 data sets in the main text and 50 in the supplement.
SUPPLEMENT_SHARE = 4
COST_ROWS = (150, 300, 600, 1200)
COST_FEATURES = (4, 8, 16, 32)
COST_REPEATS = 5


def _toys_identity(settings: Settings) -> Mapping[str, str]:
    """Name for a checkpoint what the results on toys depend on."""
    return {"toy": f"n = {N_TRAIN}", "starts": str(_hyper(settings).starts), "seed": str(settings.seed)}


def run_toys(settings: Settings, work: Work) -> pd.DataFrame:
    """Rank many toys; columns are law, p, data set, method, feature, whether it is relevant, score."""
    n_toys, n_many = settings.limited("toys"), max(1, settings.limited("toys") // SUPPLEMENT_SHARE)
    wanted = [(law, 8, number) for law in LAWS for number in range(n_toys)]
    wanted += [(law, MANY_FEATURES, number) for law in LAWS for number in range(n_many)]
    tasks = [
        Task(f"{law} {p} {number}", (law, p, _seed(settings, number), _hyper(settings))) for law, p, number in wanted
    ]
    results = _run(toy_scores, tasks, settings, work, "toys")
    relevant = {p: paper_toy(n=2, p=p).relevant for p in (8, MANY_FEATURES)}
    rows = [
        {
            "law": law,
            "p": p,
            "data_set": number,
            "method": method,
            "feature": j + 1,
            "relevant": bool(relevant[p][j]),
            "score": value,
        }
        for (law, p, number), result in zip(wanted, results, strict=True)
        for method, scores in result.items()
        for j, value in enumerate(scores)
    ]
    return pd.DataFrame(rows)


def run_deltas(settings: Settings, work: Work) -> pd.DataFrame:
    """Rank toys by KL with steps of many sizes; columns are delta, data set, feature, score."""
    n_toys = max(1, settings.limited("toys") // SUPPLEMENT_SHARE)
    tasks = [Task(f"delta {number}", (_seed(settings, number), _hyper(settings))) for number in range(n_toys)]
    results = _run(delta_scores, tasks, settings, work, "step sizes")
    rows = [
        {"delta": float(delta), "data_set": number, "feature": j + 1, "score": value}
        for number, result in enumerate(results)
        for delta, scores in result.items()
        for j, value in enumerate(scores)
    ]
    return pd.DataFrame(rows)


def run_pointwise(settings: Settings) -> pd.DataFrame:
    """Compute KL at every point of one normal toy; columns are feature, x, relevance, slope of the true function."""
    toy = paper_toy("normal", n=N_TRAIN, seed=_seed(settings, 0))
    with collect_warnings():
        ranking = rank(_fit(toy.X, toy.y, _hyper(settings)), measure=KL(delta=1e-4, units="raw"))
    assert ranking.pointwise is not None
    amplitudes = sine_amplitudes("normal")
    parts = []
    for j in range(8):
        x = toy.X[:, j]
        slope = np.abs(amplitudes[j] * FREQUENCIES[j] * np.cos(FREQUENCIES[j] * x))
        parts.append(pd.DataFrame({"feature": j + 1, "x": x, "relevance": ranking.pointwise[:, j], "slope": slope}))
    return pd.concat(parts, ignore_index=True)


def run_cost(settings: Settings) -> pd.DataFrame:
    """Time each measure after the fit, as the fastest of several; columns are method, n, p, seconds."""
    rows_, features = (COST_ROWS[:2], COST_FEATURES[:2]) if settings.quick else (COST_ROWS, COST_FEATURES)
    sizes = [(n, COST_MIDDLE["p"]) for n in rows_]
    sizes += [(COST_MIDDLE["n"], p) for p in features if p != COST_MIDDLE["p"]]
    found = []
    for n, p in sizes:
        rng = np.random.default_rng([settings.seed, n, p])
        X = rng.normal(size=(n, p))
        y = np.sin(X).sum(axis=1) + 0.3 * rng.normal(size=n)
        # One step of the search is enough: the cost of a ranking does not depend on the hyperparameters.
        with collect_warnings():
            gp = _fit(X, y, ML2(starts=1, max_iterations=1))
        for method, measure in (("KL", KL()), ("VAR", VAR(conditional="normal"))):
            seconds = min(_seconds(gp, measure) for _ in range(COST_REPEATS))
            found.append({"method": method, "n": n, "p": p, "seconds": seconds})
    return pd.DataFrame(found)


def toy_scores(law: Law, p: int, seed: int, hyper: ML2) -> Result:
    """Score one toy by the three methods."""
    with collect_warnings():
        toy = paper_toy(law, n=N_TRAIN, p=p, seed=seed)
        gp = _fit(toy.X, toy.y, hyper)
        measures = {"ARD": ARD(), "KL": KL(delta=1e-4), "VAR": VAR(conditional="normal")}
        return {name: rank(gp, measure=measure).scores for name, measure in measures.items()}


def delta_scores(seed: int, hyper: ML2) -> Result:
    """Score one uniform toy by KL with steps of many sizes."""
    with collect_warnings():
        toy = paper_toy("uniform", n=N_TRAIN, seed=seed)
        gp = _fit(toy.X, toy.y, hyper)
        return {str(delta): rank(gp, measure=KL(delta=delta)).scores for delta in DELTAS}


def _fit(X: np.ndarray, y: np.ndarray, hyper: ML2) -> FittedGP:
    fitted = GP(hyper=hyper).fit(X, y)
    assert isinstance(fitted, FittedGP)
    return fitted


def _hyper(settings: Settings) -> ML2:
    return ML2(starts=1 if settings.quick else 3, seed=settings.seed)


def _seed(settings: Settings, number: int) -> int:
    return 10_000 * settings.seed + number


def _run(function: Any, tasks: Sequence[Task], settings: Settings, work: Work, title: str) -> list[Result]:
    with work.runner(title, len(tasks), _toys_identity(settings)) as runner:
        return runner.run(function, tasks)


def _seconds(gp: FittedGP, measure: Any) -> float:
    with blas_threads_for(0):  # one thread, whatever the size: exponents, not speed
        began = time.perf_counter()
        measure.relevance(gp, gp.inputs.training_points)
        return time.perf_counter() - began
