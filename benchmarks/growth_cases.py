"""What `growth.py` measures, each case in a process of its own.

python benchmarks/growth_cases.py KIND ROWS COLUMNS SEED prints processor seconds, evaluations of the evidence, its
value at the end and the peak of memory, as JSON.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Table = tuple[np.ndarray, np.ndarray]
Answer = dict[str, float]
COUNTED = ("evidence", "log_evidence", "slope")
CLASSES = ("bernoulli", "softmax", "poisson")


def main() -> None:
    kind, n, p, seed = sys.argv[1], *map(int, sys.argv[2:])
    warnings.simplefilter("ignore")
    print(json.dumps(CASES[kind](n, p, seed)))


def timed(work: Callable[[], Any]) -> tuple[Any, Answer]:
    """What some work returns; its processor seconds, and the peak of memory so far."""
    start = time.process_time()
    found = work()
    seconds = time.process_time() - start
    return found, {"seconds": seconds, "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0}


def default_fit(kind: str) -> Callable[[int, int, int], Answer]:
    """A fit with all defaults, of a likelihood by its name."""

    def run(n: int, p: int, seed: int) -> Answer:
        import gpsift as gs

        calls = counted_calls()
        X, y = friedman(n, p, seed) if kind == "gaussian" else classes(kind, n, p, seed)
        model, found = timed(lambda: gs.GP(likelihood=kind).fit(X, y))
        return {**found, "evaluations": calls["all"], "height": model.inferred.log_evidence}

    return run


def command(name: str, *options: str) -> Callable[[int, int, int], Answer]:
    """A whole command, with what it takes to start it."""

    def run(n: int, p: int, seed: int) -> Answer:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "table.csv")
            names = ",".join([*(f"x{j + 1}" for j in range(p)), "y"])
            np.savetxt(path, np.column_stack(friedman(n, p, seed)), delimiter=",", header=names, comments="")
            told = [sys.executable, "-m", "gpsift", name, str(path), "--target", "y", "--jobs", "1", *options]
            subprocess.run(told, check=True, capture_output=True)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds, megabytes = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024.0
        return {"seconds": seconds, "megabytes": megabytes, "evaluations": np.nan, "height": np.nan}

    return run


def searched(name: str, **options: Any) -> Callable[[int, int, int], Answer]:
    """A fit by a library of `models.py`, judged by one plain formula."""

    def run(n: int, p: int, seed: int) -> Answer:
        import models
        from toys import NORMAL, toy

        X, y = toy(NORMAL, seed, n=n, p=p)
        model = getattr(models, name)(X, y, **options)
        _, found = timed(model.fit)
        return {**found, "evaluations": np.nan, "height": models.log_evidence(X, y, model.log_params)}

    return run


def ours(n: int, p: int, seed: int) -> Answer:
    """Our default fit, to compare those libraries with."""
    import gpsift as gs

    return searched("Gpsift", gp=gs.GP())(n, p, seed)


def selected_by_fits(n: int, p: int, seed: int) -> Answer:
    """scikit-learn's forward selection around its own Gaussian process, while a feature gains 0.01 of R squared."""
    from sklearn.feature_selection import SequentialFeatureSelector
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    X, y = friedman(n, p, seed)
    model = GaussianProcessRegressor(ConstantKernel() * RBF() + WhiteKernel(), normalize_y=True)
    selector = SequentialFeatureSelector(model, n_features_to_select="auto", tol=0.01, cv=5)
    _, found = timed(lambda: selector.fit(X, y))
    return {**found, "evaluations": np.nan, "height": np.nan}


def scored(n: int, p: int, seed: int) -> Answer:
    """KL and VAR of all rows, after the fit."""
    import gpsift as gs

    model = gs.GP().fit(*friedman(n, p, seed))
    _, found = timed(lambda: (gs.rank(model, measure=gs.KL()), gs.rank(model, measure=gs.VAR())))
    return {**found, "evaluations": np.nan, "height": np.nan}


def explained_by_samples(n: int, p: int, seed: int) -> Answer:
    """SHAP's `KernelExplainer` of the same model at all rows, with its own choices and 100 rows as background."""
    import shap

    import gpsift as gs

    X, y = friedman(n, p, seed)
    model = gs.GP().fit(X, y)
    explainer = shap.KernelExplainer(lambda rows: model.predict(rows).mean, shap.sample(X, 100, random_state=seed))
    _, found = timed(lambda: explainer.shap_values(X, silent=True))
    return {**found, "evaluations": np.nan, "height": np.nan}


def counted_calls() -> Counter[str]:
    """How often an engine is asked for the evidence from now on."""
    from gpsift.gp import inference

    calls: Counter[str] = Counter()
    for engine in (
        inference.ExactInference,
        inference.EPInference,
        inference.LaplaceInference,
        inference.SoftmaxInference,
    ):
        for name in COUNTED:
            if name in dir(engine):
                setattr(engine, name, counted(getattr(engine, name), calls))
    return calls


def counted(method: Callable[..., Any], calls: Counter[str]) -> Callable[..., Any]:
    def asked(*arguments: Any) -> Any:
        calls["all"] += 1
        return method(*arguments)

    return asked


def friedman(n: int, p: int, seed: int) -> Table:
    """Friedman's function of the first five of p uniform inputs, with noise of standard deviation 1."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, p))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, f + rng.normal(size=n)


def classes(likelihood: str, n: int, p: int, seed: int) -> Table:
    """A curve along one input and a product of two others, behind the link; the other inputs do nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    f = 1.5 * np.sin(1.5 * X[:, 0]) + X[:, 1] * X[:, 2]
    if likelihood == "bernoulli":
        return X, (f + rng.normal(size=n) > 0).astype(float)
    if likelihood == "poisson":
        return X, rng.poisson(np.exp(0.5 + 0.7 * f)).astype(float)
    scores = np.column_stack([2.0 * f, 2.0 * X[:, 1] - X[:, 0] ** 2, -X[:, 2] - 1.0])
    return X, np.argmax(scores + rng.gumbel(size=(n, 3)), axis=1).astype(float)


CASES: dict[str, Callable[[int, int, int], Answer]] = {
    "fit": default_fit("gaussian"),
    "select": command("select"),
    "stability": command("stability"),
    **{name: default_fit(name) for name in CLASSES},
    "default": ours,
    **{name: searched(name) for name in ("GPy", "BoTorch", "ScikitLearn")},
    "SequentialFeatureSelector": selected_by_fits,
    "scores": scored,
    "KernelExplainer": explained_by_samples,
}


if __name__ == "__main__":
    main()
