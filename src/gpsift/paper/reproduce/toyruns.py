"""The paper's toys: eight equally relevant features from nearly linear to a full wave, with and without idle ones."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from gpsift._utils.notices import Notices
from gpsift._utils.parallel import Task, Work
from gpsift._utils.threads import blas_threads_for
from gpsift.gp import GP, ML2, FittedGP
from gpsift.paper.datasets import paper_toy
from gpsift.paper.datasets.toys import FREQUENCIES, Law, sine_amplitudes
from gpsift.paper.reproduce.settings import COST_MIDDLE, N_TRAIN, Result, Settings
from gpsift.relevance import ARD, KL, VAR, rank

LAWS: tuple[Law, ...] = ("uniform", "normal")
MANY_FEATURES = 50
DELTAS = (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
# The paper averages 200 data sets in the main text and 50 in the supplement.
SUPPLEMENT_SHARE = 4
COST_ROWS = (150, 300, 600, 1200)
COST_FEATURES = (4, 8, 16, 32)
COST_REPEATS = 5


def identity(settings: Settings) -> Mapping[str, str]:
    """What the results depend on, for a checkpoint."""
    return {"toy": f"n = {N_TRAIN}", "starts": str(_hyper(settings).starts), "seed": str(settings.seed)}


def run_toys(settings: Settings, work: Work) -> pd.DataFrame:
    """Scores on many data sets: law, p, data set, method, feature, whether it is relevant, score."""
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
    """KL scores by the size of the step: delta, data set, feature, score."""
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
    """KL relevance at every point of one toy with normal inputs: feature, x, relevance, slope of the true function."""
    toy = paper_toy("normal", n=N_TRAIN, seed=_seed(settings, 0))
    with Notices():
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
    """Seconds of each measure after the fit, the fastest of several: method, n, p, seconds."""
    rows_, features = (COST_ROWS[:2], COST_FEATURES[:2]) if settings.quick else (COST_ROWS, COST_FEATURES)
    sizes = [(n, COST_MIDDLE["p"]) for n in rows_]
    sizes += [(COST_MIDDLE["n"], p) for p in features if p != COST_MIDDLE["p"]]
    found = []
    for n, p in sizes:
        rng = np.random.default_rng([settings.seed, n, p])
        X = rng.normal(size=(n, p))
        y = np.sin(X).sum(axis=1) + 0.3 * rng.normal(size=n)
        # One step of the search will do: the cost of a ranking does not depend on the hyperparameters.
        with Notices():
            gp = _fit(X, y, ML2(starts=1, max_iterations=1))
        for method, measure in (("KL", KL()), ("VAR", VAR(conditional="normal"))):
            seconds = min(_seconds(gp, measure) for _ in range(COST_REPEATS))
            found.append({"method": method, "n": n, "p": p, "seconds": seconds})
    return pd.DataFrame(found)


def toy_scores(law: Law, p: int, seed: int, hyper: ML2) -> Result:
    """Scores of the three methods on one toy."""
    with Notices():
        toy = paper_toy(law, n=N_TRAIN, p=p, seed=seed)
        gp = _fit(toy.X, toy.y, hyper)
        measures = {"ARD": ARD(), "KL": KL(delta=1e-4), "VAR": VAR(conditional="normal")}
        return {name: rank(gp, measure=measure).scores for name, measure in measures.items()}


def delta_scores(seed: int, hyper: ML2) -> Result:
    """KL scores of one uniform toy for steps of many sizes."""
    with Notices():
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
    with work.runner(title, len(tasks), identity(settings)) as runner:
        return runner.run(function, tasks)


def _seconds(gp: FittedGP, measure: Any) -> float:
    with blas_threads_for(0):  # one thread, whatever the size: exponents, not speed
        began = time.perf_counter()
        measure.relevance(gp, gp.inputs.training_points)
        return time.perf_counter() - began
