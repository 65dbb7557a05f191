"""The paper's protocol on a data set: random splits, full model, rankings, submodels, predictions of the test part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from gpsift._utils.notices import Notices
from gpsift._utils.parallel import Task, Work, fingerprint
from gpsift.gp import GP, DrawnGP, FittedGP
from gpsift.paper.datasets import Dataset
from gpsift.paper.reproduce.settings import Result, Settings
from gpsift.relevance import RATE, Measure, rank
from gpsift.selection.cross_validation import prediction_metrics
from gpsift.selection.data import Data
from gpsift.selection.projection import forward_projection
from gpsift.selection.submodels import SubmodelFit, fit_submodel, warm_start

# Beyond the paper: what it names as the stronger relatives, on the smaller regression sets.
EXTRA = ("RATE", "projection")
WITH_EXTRA = ("concrete", "housing", "automobile")
# A search by projection tries every candidate at every size; beyond this one the curves are flat.
LARGEST_EXTRA = 15
SUBMODEL_STARTS = 2


@dataclass(frozen=True, eq=False)
class Tables:
    """What the splits of a data set gave, tidy: one row for each number."""

    scores: pd.DataFrame  # split, method, feature, score, rank
    curves: pd.DataFrame  # split, method, size, and one column for each metric of the submodel's predictions
    reference: pd.DataFrame  # split, and the metrics of the full model with drawn hyperparameters
    n_train: int
    n_test: int


def random_split(n: int, n_train: int, split: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of the training and the test part of one split; the same whatever their number."""
    order = np.random.default_rng([seed, split]).permutation(n)
    return np.sort(order[:n_train]), np.sort(order[n_train:])


def run_splits(dataset: Dataset, settings: Settings, work: Work) -> Tables:
    """All splits of a data set."""
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
    with work.runner(dataset.name, total, identity(dataset, settings)) as runner:
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


def identity(dataset: Dataset, settings: Settings) -> Mapping[str, str]:
    """What the results depend on, for a checkpoint. Not on how many splits: more can follow."""
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
    """One split: the full model, the order by each measure, and the submodels along each order."""
    with Notices():
        full = _fit_full(train, model)
        scores = {name: rank(full, measure=measure).scores for name, measure in measures.items()}
        orders = {name: np.argsort(-values, kind="stable").tolist() for name, values in scores.items()}
        return {"scores": scores, "orders": orders, "curves": _curves(train, test, model, full, orders, largest)}


def extra_rankings(train: Data, test: Data, model: GP, largest: int) -> Result:
    """The same for RATE and for forward search by projection."""
    with Notices():
        full = _fit_full(train, model)
        path = forward_projection(full, max_size=largest)
        orders = {
            "RATE": np.argsort(-rank(full, measure=RATE()).scores, kind="stable").tolist(),
            "projection": [train.names.index(name) for name in path.order],
        }
        return {"orders": orders, "curves": _curves(train, test, model, full, orders, largest)}


def sampled_reference(train: Data, test: Data, model: GP) -> Result:
    """The full model with drawn hyperparameters: the dashed line."""
    columns = list(range(len(train.names)))
    with Notices():
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
    """Metrics of the submodels along each order; methods that agree on a set of features share its fit."""
    parent, known = warm_start(full, model.hyper), {}
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
