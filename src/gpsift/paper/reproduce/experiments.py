"""Run the protocols of the paper's experiments, with the settings of the paper, and ours if it does not state them.

On each random split of a data set a full model is fitted, each measure ranks its features, and submodels along each
ranking predict the test part. The toys have eight equally relevant features, from nearly linear to a full period of a
sine, with and without irrelevant ones.
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
from gpsift.selection.submodels import Fitted, SubmodelFit, fit_submodel, parent_start

# Inverse gamma densities have their mode at scale / (shape + 1): 5 standard deviations of a feature, and 0.83.
LENGTHSCALE_PRIORS = {"long": InverseGamma(1.0, 10.0), "short": InverseGamma(5.0, 5.0)}
QUICK_LIMITS = {"splits": 2, "toys": 3, "nuts_splits": 1, "extra_splits": 1, "largest_size": 3}
# Rows of a toy. COST_MIDDLE has the rows of tables whose features vary, and the features of tables whose rows vary.
N_TRAIN = 300
COST_MIDDLE = {"n": N_TRAIN, "p": 8}
OURS = ("KL", "VAR")
METHODS = ("ARD", *OURS)
# Methods that the paper names as stronger but does not run. They are tried on the smaller regression sets.
EXTRA = ("RATE", "projection")
WITH_EXTRA = ("concrete", "housing", "automobile")
# The largest size of a search by projection, which tries every candidate at every size. The curves are flat beyond it.
LARGEST_EXTRA = 15
SUBMODEL_STARTS = 2
LAWS: tuple[Law, ...] = ("uniform", "normal")
MANY_FEATURES = 50
DELTAS = (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
# The paper averages 200 data sets in the main text and 50 in the supplement.
SUPPLEMENT_SHARE = 4
COST_ROWS = (150, 300, 600, 1200)
COST_FEATURES = (4, 8, 16, 32)
COST_REPEATS = 5
# The result of a task: numbers, text, lists and arrays by name.
Result = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """Settings of the experiments: their size, their models, and the folder of the results."""

    out: Path  # the folder of the results
    splits: int = 50  # of each data set, as in the paper
    toys: int = 200  # data sets of each toy, as in the paper; a quarter of that where the paper has 50
    quick: bool = False  # a quick run: few splits, small sizes, few draws
    resume: bool = False  # continue from what is in `out`; otherwise start anew
    prior: str = "long"  # of `LENGTHSCALE_PRIORS`; the paper does not state it
    covariance: Covariance = "ridge"  # of the inputs, for VAR; the authors' code adds a diagonal
    log_crime: bool = True  # whether the target of Crime is logged
    coding: str = "default"  # of Automobile
    nuts_splits: int = 10  # on which the full model is sampled
    extra_splits: int = 20  # on which projection and RATE are tried too
    largest_size: int = 30
    seed: int = 0
    folder: Path | None = None  # of the data, if they are not to be downloaded
    work: Work = Work(jobs=2)  # without a checkpoint: each experiment has its own in `out`

    def limit(self, name: str) -> int:
        """Return a number of the settings, which is smaller in a quick run."""
        value = int(getattr(self, name))
        return min(value, QUICK_LIMITS[name]) if self.quick else value

    @property
    def hyper(self) -> MAP:
        """The paper's MAP: half-t magnitudes, inverse-gamma length-scales."""
        magnitude = HalfT(4.0, 1.0)
        lengthscale = LENGTHSCALE_PRIORS[self.prior]
        return MAP(lengthscale=lengthscale, signal=magnitude, noise=magnitude, starts=self.starts, seed=self.seed)

    @property
    def toy_hyper(self) -> ML2:
        """The maximum of the evidence, for the toys."""
        return ML2(starts=self.starts, seed=self.seed)

    @property
    def starts(self) -> int:
        """Starts of each search for hyperparameters."""
        return 1 if self.quick else 3

    @property
    def nuts(self) -> NUTS:
        """The sampler of the full model, of which 100 draws become models."""
        draws, tune, keep = (20, 30, 10) if self.quick else (400, 400, 100)
        return NUTS(draws=draws, tune=tune, chains=2, keep=keep, seed=self.seed, prior=self.hyper, progress=False)

    @property
    def measures(self) -> dict[str, Measure]:
        """The three methods of the paper, with the step size of the paper."""
        return {"ARD": ARD(), "KL": KL(delta=1e-4), "VAR": VAR(covariance=self.covariance, conditional="normal")}

    @property
    def splits_identity(self) -> dict[str, str]:
        """The settings that results of splits depend on, for a checkpoint. Their number is not one of them."""
        return {
            "hyperparameters": repr(self.hyper),
            "sampler": repr(self.nuts),
            "measures": ", ".join(measure.label for measure in self.measures.values()),
            "sizes": f"up to {self.limit('largest_size')}",
            "seed": str(self.seed),
        }

    @property
    def toys_identity(self) -> dict[str, str]:
        """The settings that results on toys depend on, for a checkpoint."""
        return {"toy": f"n = {N_TRAIN}", "starts": str(self.starts), "seed": str(self.seed)}

    def toy_seed(self, number: int) -> int:
        """Return the seed of a toy."""
        return 10_000 * self.seed + number


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
    model = GP(likelihood="bernoulli" if dataset.is_classification else "gaussian", hyper=settings.hyper)
    largest = min(len(data.names), settings.limit("largest_size"))
    n_splits, n_nuts = settings.limit("splits"), settings.limit("nuts_splits")
    n_extra = min(settings.limit("extra_splits"), n_splits) if dataset.name in WITH_EXTRA else 0
    parts = {}
    for split in range(max(n_splits, n_nuts)):
        train, test = random_split(data.y.size, dataset.n_train, split, settings.seed)
        parts[split] = (data.take(train), data.take(test))
    tasks = [Task(f"split {s}", (*parts[s], model, settings.measures, largest)) for s in range(n_splits)]
    sampled_tasks = [Task(f"sampled {s}", (*parts[s], replace(model, hyper=settings.nuts))) for s in range(n_nuts)]
    options = ({"RATE": RATE()}, min(largest, LARGEST_EXTRA), True)
    extra_tasks = [Task(f"extra {s}", (*parts[s], model, *options)) for s in range(n_extra)]
    identity = {
        "data": f"{dataset.name} {fingerprint(data.X, data.y)}",
        "training rows": str(dataset.n_train),
        **settings.splits_identity,
    }
    with work.runner(dataset.name, len(tasks) + len(sampled_tasks) + len(extra_tasks), identity) as runner:
        results = runner.run(compare_rankings, tasks)
        extra = runner.run(compare_rankings, extra_tasks)
        drawn = runner.run(score_sampled_model, sampled_tasks)
    scores = [
        {"split": split, "method": method, "feature": name, "score": score, "rank": int(place)}
        for split, result in enumerate(results)
        for method, values in result["scores"].items()
        for name, score, place in zip(data.names, values, np.argsort(result["orders"][method]) + 1, strict=True)
    ]
    curves = [
        {"split": split, "method": method, **point}
        for found in (results, extra)
        for split, result in enumerate(found)
        for method, curve in result["curves"].items()
        for point in curve
    ]
    reference = [{"split": split, **result} for split, result in enumerate(drawn)]
    return Tables(
        scores=pd.DataFrame(scores),
        curves=pd.DataFrame(curves),
        reference=pd.DataFrame(reference, columns=None if reference else ["split"]),
        n_train=dataset.n_train,
        n_test=data.y.size - dataset.n_train,
    )


def compare_rankings(
    train: Data, test: Data, model: GP, measures: Mapping[str, Measure], largest: int, with_projection: bool = False
) -> Result:
    """Run one split: the full model, orders by measures and by forward projection, submodels along each order."""
    with collect_warnings():
        full = _fit_full(train, model)
        assert isinstance(full, FittedGP)
        scores = {name: rank(full, measure=measure).scores for name, measure in measures.items()}
        orders = {name: np.argsort(-values, kind="stable").tolist() for name, values in scores.items()}
        if with_projection:
            path = forward_projection(full, max_size=largest)
            orders["projection"] = [train.names.index(name) for name in path.order]
        curves = _score_submodels(train, test, model, full, orders, largest)
        return {"scores": scores, "orders": orders, "curves": curves}


def score_sampled_model(train: Data, test: Data, model: GP) -> Result:
    """Score the full model with sampled hyperparameters, which is the dashed line of the figures."""
    with collect_warnings():
        fitted = _fit_full(train, model)
        assert isinstance(fitted, DrawnGP)
        return {**_score(fitted, list(range(len(train.names))), test, model), **dict(fitted.diagnostics)}


def _fit_full(train: Data, model: GP) -> Fitted:
    return fit_submodel(train, model, list(range(len(train.names))), parent=None, starts=None)


def _score_submodels(
    train: Data, test: Data, model: GP, full: Fitted, orders: Mapping[str, Sequence[int]], largest: int
) -> dict[str, list[dict[str, float]]]:
    """Score the submodels along each order; submodels with the same features are fitted once."""
    parent, all_columns = parent_start(full, model.hyper), tuple(range(len(train.names)))
    known = {all_columns: _score(full, all_columns, test, model)}
    curves: dict[str, list[dict[str, float]]] = {}
    for name, order in orders.items():
        curves[name] = []
        for size in range(1, min(largest, len(order)) + 1):
            columns = tuple(sorted(order[:size]))
            if columns not in known:
                fitted = fit_submodel(train, model, columns, parent=parent, starts=SUBMODEL_STARTS)
                known[columns] = _score(fitted, columns, test, model)
            curves[name].append({"size": size, **known[columns]})
    return curves


def _score(fitted: Fitted, columns: Sequence[int], test: Data, model: GP) -> dict[str, Any]:
    fit = SubmodelFit.of(fitted, columns, test, len(test.names))
    found = prediction_metrics(test.y, fit.mean, classes=model.likelihood == "bernoulli")
    return {"mlpd": float(np.mean(fit.lpd)), "mse": float(np.mean((test.y - fit.mean) ** 2)), **found}


def run_toys(settings: Settings, work: Work) -> pd.DataFrame:
    """Rank many toys; columns are law, p, data set, method, feature, whether it is relevant, score."""
    n_toys = settings.limit("toys")
    counts = {8: n_toys, MANY_FEATURES: max(1, n_toys // SUPPLEMENT_SHARE)}
    wanted = [(law, p, number) for p, n in counts.items() for law in LAWS for number in range(n)]
    options = [(law, p, settings.toy_seed(number), settings.toy_hyper) for law, p, number in wanted]
    tasks = [Task(" ".join(map(str, name)), arguments) for name, arguments in zip(wanted, options, strict=True)]
    with work.runner("toys", len(tasks), settings.toys_identity) as runner:
        results = runner.run(score_toy, tasks)
    relevant = {p: paper_toy(n=2, p=p).relevant.tolist() for p in counts}
    rows = [
        (law, p, number, method, feature, relevant[p][feature - 1], score)
        for (law, p, number), result in zip(wanted, results, strict=True)
        for method, scores in result.items()
        for feature, score in enumerate(scores, start=1)
    ]
    return pd.DataFrame(rows, columns=["law", "p", "data_set", "method", "feature", "relevant", "score"])


def score_toy(law: Law, p: int, seed: int, hyper: ML2) -> Result:
    """Score the features of one toy by the three methods."""
    toy = paper_toy(law, n=N_TRAIN, p=p, seed=seed)
    measures = {"ARD": ARD(), "KL": KL(delta=1e-4), "VAR": VAR(conditional="normal")}
    with collect_warnings():
        gp = GP(hyper=hyper).fit(toy.X, toy.y)
        return {name: rank(gp, measure=measure).scores for name, measure in measures.items()}


def run_deltas(settings: Settings, work: Work) -> pd.DataFrame:
    """Rank toys by KL with steps of many sizes; columns are delta, data set, feature, score."""
    numbers = range(max(1, settings.limit("toys") // SUPPLEMENT_SHARE))
    tasks = [Task(f"delta {number}", (settings.toy_seed(number), settings.toy_hyper)) for number in numbers]
    with work.runner("step sizes", len(tasks), settings.toys_identity) as runner:
        results = runner.run(score_deltas, tasks)
    rows = [
        (float(delta), number, feature, score)
        for number, result in enumerate(results)
        for delta, scores in result.items()
        for feature, score in enumerate(scores, start=1)
    ]
    return pd.DataFrame(rows, columns=["delta", "data_set", "feature", "score"])


def score_deltas(seed: int, hyper: ML2) -> Result:
    """Score the features of one uniform toy by KL with steps of many sizes."""
    toy = paper_toy("uniform", n=N_TRAIN, seed=seed)
    with collect_warnings():
        gp = GP(hyper=hyper).fit(toy.X, toy.y)
        return {str(delta): rank(gp, measure=KL(delta=delta)).scores for delta in DELTAS}


def run_pointwise(settings: Settings) -> pd.DataFrame:
    """Compute KL at every point of one normal toy; columns are feature, x, relevance, slope of the true function."""
    toy = paper_toy("normal", n=N_TRAIN, seed=settings.toy_seed(0))
    with collect_warnings():
        ranking = rank(GP(hyper=settings.toy_hyper).fit(toy.X, toy.y), measure=KL(delta=1e-4, units="raw"))
    assert ranking.pointwise is not None
    parts = []
    for j, (amplitude, frequency) in enumerate(zip(sine_amplitudes("normal"), FREQUENCIES, strict=True)):
        x = toy.X[:, j]
        slope = np.abs(amplitude * frequency * np.cos(frequency * x))
        parts.append(pd.DataFrame({"feature": j + 1, "x": x, "relevance": ranking.pointwise[:, j], "slope": slope}))
    return pd.concat(parts, ignore_index=True)


def run_cost(settings: Settings) -> pd.DataFrame:
    """Time each measure after the fit, as the fastest of several; columns are method, n, p, seconds."""
    rows, features = (COST_ROWS[:2], COST_FEATURES[:2]) if settings.quick else (COST_ROWS, COST_FEATURES)
    sizes = [(n, COST_MIDDLE["p"]) for n in rows]
    sizes += [(COST_MIDDLE["n"], p) for p in features if p != COST_MIDDLE["p"]]
    found = []
    for n, p in sizes:
        rng = np.random.default_rng([settings.seed, n, p])
        X = rng.normal(size=(n, p))
        y = np.sin(X).sum(axis=1) + 0.3 * rng.normal(size=n)
        # One step of the search is enough: the cost of a ranking does not depend on the hyperparameters.
        with collect_warnings():
            gp = GP(hyper=ML2(starts=1, max_iterations=1)).fit(X, y)
        assert isinstance(gp, FittedGP)
        for method, measure in (("KL", KL()), ("VAR", VAR(conditional="normal"))):
            times = []
            for _ in range(COST_REPEATS):
                with blas_threads_for(0):  # one thread for all sizes, so that times can be compared
                    began = time.perf_counter()
                    measure.relevance(gp, gp.inputs.training_points)
                    times.append(time.perf_counter() - began)
            found.append({"method": method, "n": n, "p": p, "seconds": min(times)})
    return pd.DataFrame(found)
