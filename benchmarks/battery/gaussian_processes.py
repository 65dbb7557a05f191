"""Methods of `gpsift`: one fit for each way to find hyperparameters, ranked by every measure."""

from __future__ import annotations

import numpy as np
from scipy.stats import bernoulli, norm, poisson

import gpsift as gs
from benchmarks.battery.answers import Answer
from benchmarks.battery.tasks import DataSet

MEASURES: dict[str, gs.Measure] = {
    "KL": gs.KL(),
    "VAR": gs.VAR(conditional="normal"),
    "VAR residuals": gs.VAR(conditional="residuals"),
}

# The search fits a model for each size, which takes too long for more inputs than this.
MOST_SEARCHED = 30


def ml2(data: DataSet) -> Answer:
    return ranked(gs.GP(hyper=gs.ML2(), likelihood=data.likelihood), data)


def map_fit(data: DataSet) -> Answer:
    return ranked(gs.GP(hyper=gs.MAP(), likelihood=data.likelihood), data)


def sift(data: DataSet) -> Answer:
    return ranked(gs.GP(hyper=gs.Sift(), likelihood=data.likelihood), data)


def map_linear(data: DataSet) -> Answer:
    return ranked(gs.GP(with_linear_term(data), gs.MAP(), likelihood=data.likelihood), data)


def sift_linear(data: DataSet) -> Answer:
    return ranked(gs.GP(with_linear_term(data), gs.Sift(), likelihood=data.likelihood), data)


def search(data: DataSet) -> Answer:
    """Submodels of growing size by KL, and the suggested one of them; no ranking of its own."""
    model = gs.GP(hyper=gs.MAP(), likelihood=data.likelihood)
    path = gs.search(data.X, data.y, gs.KL(), model=model)
    size = gs.suggest_size(path).size
    selected = np.zeros(data.X.shape[1], bool)
    names = path.features(selected.size if size is None else size)
    selected[[int(name.removeprefix("x")) - 1 for name in names]] = True
    return Answer(selected=selected)


def with_linear_term(data: DataSet) -> gs.kernels.Kernel:
    """With a variance of the slope of each input, so that each can be switched off."""
    return gs.SquaredExponential() + gs.Linear(np.ones(data.X.shape[1])) + gs.Constant()


def ranked(model: gs.GP, data: DataSet) -> Answer:
    """The order by every measure; the inputs that are switched on, where the fit switches; density at the test rows."""
    gp = model.fit(data.X, data.y)
    # By the order rather than the scores: inputs that are switched off all score 0, and their slopes order them.
    rankings = {name: -gs.rank(gp, measure=measure).ranks.astype(float) for name, measure in MEASURES.items()}
    selected = np.isin(gp.inputs.names, gp.report.sift.active) if isinstance(model.hyper, gs.Sift) else None
    return Answer(rankings, selected, lambda: mean_density(gp, data))


def mean_density(gp: gs.FittedGP, data: DataSet, columns: np.ndarray | None = None) -> float:
    """Mean log density of the test rows."""
    X = data.X_test if columns is None else data.X_test[:, columns]
    return float(np.mean(gp.predict(X).log_density(data.y_test)))


def density_of_selected(data: DataSet, selected: np.ndarray) -> float:
    """Mean log density of the test rows by a model of the selected inputs alone, fitted by `MAP`."""
    if not np.any(selected):
        return density_without_inputs(data)
    gp = gs.GP(hyper=gs.MAP(starts=1), likelihood=data.likelihood).fit(data.X[:, selected], data.y)
    return mean_density(gp, data, selected)


def density_without_inputs(data: DataSet) -> float:
    """Mean log density of the test rows by the distribution of the target with the moments of the rows learnt from."""
    mean = np.mean(data.y)
    if data.likelihood == "gaussian":
        return float(np.mean(norm.logpdf(data.y_test, mean, np.std(data.y))))
    law = bernoulli if data.likelihood == "bernoulli" else poisson
    return float(np.mean(law.logpmf(data.y_test, mean)))
