"""Analyses to write pages of: small fits on generated data, in every shape that a page must show."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

import gpsift as gs
from gpsift.app.analysis.analysis import Analysis
from gpsift.app.analysis.parts import add_effects
from gpsift.app.findings import Finding, FindingKind

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "\"quoted\" & 'single' <b>",
    "long " * 39 + "name!",
    "температура воздуха",
    "湿度 <!-- {{ 7*7 }}",
)


def rankings(gp, X, *, groups=None, points=None):
    """KL, VAR and, where columns stand alone, ARD."""
    chosen = {"groups": groups or None, "categorical": list(groups or ()), "points": points}
    found = {"KL": gs.rank(gp, X, gs.KL(), **chosen), "VAR": gs.rank(gp, X, gs.VAR(), **chosen)}
    if not groups:
        found["ARD"] = gs.rank(gp, X, gs.ARD())
    return found


@cache
def regression() -> Analysis:
    """Eight columns of the same strength, from straight to bent: ARD disagrees. With search and stability."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, size=(90, 8)), columns=[f"x{j}" for j in range(1, 9)])
    parts = np.sin(np.linspace(np.pi / 10, np.pi, 8) * X.to_numpy())
    y = (parts / parts.std(axis=0))[:, [0, 3, 5, 7]].sum(axis=1) + 0.3 * rng.normal(size=90)
    gp = gs.GP(hyper=gs.MAP()).fit(X, y)
    return Analysis(
        source="toy.csv",
        target="outcome",
        task="regression",
        rows=X.assign(outcome=y),
        X=X,
        y=y,
        model=gp,
        rankings=rankings(gp, X),
        path=gs.search(X, y, model=gs.GP(hyper=gs.MAP())),
        stability=gs.stability(X, y, n_splits=6, train_size=60, model=gs.GP(hyper=gs.MAP())),
        cautions=(Finding(FindingKind.COLUMNS_GO_TOGETHER, {"pairs": (("x1", "x2", 0.97),)}),),
        command="gpsift analyse toy.csv --target outcome",
        seed=3,
        seconds=1.25,
    )


@cache
def noise() -> Analysis:
    """A target that has nothing to do with the columns."""
    X = pd.DataFrame(np.random.default_rng(1).normal(size=(60, 3)), columns=["a", "b", "c"])
    y = np.random.default_rng(0).normal(size=60)
    gp = gs.GP(hyper=gs.Fixed(lengthscale=0.5, signal_var=1.0, noise_var=0.01)).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gs.GPSiftWarning)
        found = rankings(gp, X)
    return Analysis("noise.csv", "y", "regression", X, X, y, gp, found)


@cache
def classes(n_classes: int = 2) -> Analysis:
    """Classes, one of the columns a category, coded by indicators."""
    rng = np.random.default_rng(2)
    colour = rng.integers(3, size=70)
    rows = pd.DataFrame({"size": rng.normal(size=70), "weight": rng.normal(size=70)})
    rows["colour"] = np.array(["blue", "green", "red"])[colour]
    X = rows[["size", "weight"]].assign(**{f"colour={k}": (colour == k).astype(float) for k in range(3)})
    level = rows["size"] + 1.5 * (colour == 1) + 0.3 * rng.normal(size=70)
    y = np.digitize(level, np.quantile(level, np.arange(1, n_classes) / n_classes))
    gp = gs.GP(likelihood="bernoulli" if n_classes == 2 else "softmax", hyper=gs.MAP()).fit(X, y)
    groups = {"colour": [name for name in X if name.startswith("colour=")]}
    return Analysis(
        source="classes.csv",
        target="kind",
        task="classification",
        rows=rows,
        X=X,
        y=y,
        model=gp,
        rankings=rankings(gp, X, groups=groups),
        classes=(*("low <i>", "middle")[: n_classes - 1], "top"),
        groups=groups,
    )


@cache
def counts() -> Analysis:
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(50, 2)), columns=["rate", "other"])
    y = rng.poisson(np.exp(1 + 0.6 * X["rate"])).astype(float)
    gp = gs.GP(likelihood="poisson", hyper=gs.MAP()).fit(X, y)
    return Analysis("counts.csv", "visits", "counts", X, X, y, gp, rankings(gp, X))


def hostile() -> Analysis:
    """Names and values that try to leave their place in the page."""
    return _renamed(HOSTILE)


@cache
def _renamed(names: tuple[str, ...]) -> Analysis:
    rng = np.random.default_rng(4)
    X = pd.DataFrame(rng.normal(size=(40, len(names))), columns=list(names))
    y = X.iloc[:, 0] + np.sin(X.iloc[:, 1]) + X.iloc[:, 2:].sum(axis=1) + 0.1 * rng.normal(size=40)
    gp = gs.GP(hyper=gs.MAP()).fit(X, y)
    bad = "<script>alert(3)</script>"
    return Analysis(
        source=f"{bad}.csv",
        target=f"target {bad}",
        task="regression",
        rows=X.set_axis([f"{bad} {i}" for i in range(40)], axis=0),
        X=X.set_axis([f"{bad} {i}" for i in range(40)], axis=0),
        y=y.to_numpy(),
        model=gp,
        rankings=rankings(gp, X),
        path=gs.search(X, y, model=gs.GP(hyper=gs.MAP())),
        stability=gs.stability(X, y, n_splits=3, train_size=30, model=gs.GP(hyper=gs.MAP())),
        cautions=(Finding(FindingKind.AT_LIMIT, {"parameters": (bad, bad)}),),
        command=f"gpsift analyse '{bad}'",
    )


@cache
def sized(n: int, p: int, n_fit: int = 200) -> Analysis:
    """Many rows or columns; the model saw some of the rows and its hyperparameters were given, so it is quick."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.normal(size=(n, p)), columns=[f"measurement {j}" for j in range(p)])
    y = np.sin(X.iloc[:, 0]) + X.iloc[:, 1] + 0.1 * rng.normal(size=n)
    gp = gs.GP(hyper=gs.Fixed(lengthscale=np.geomspace(2, 200, p), noise_var=0.05)).fit(X[:n_fit], y[:n_fit])
    found = {"KL": gs.rank(gp, X), "ARD": gs.rank(gp, X, gs.ARD())}
    return Analysis("large.csv", "y", "regression", X.assign(y=y), X, y.to_numpy(), gp, found)


def wide() -> Analysis:
    """More columns than are shown at once."""
    return sized(300, 60)


def intervals() -> Analysis:
    """Scores with intervals, from draws by hand."""
    base = regression()
    ranking = base.leading
    draws = ranking.scores * np.linspace(0.5, 1.5, 101)[:, None]
    return replace(base, rankings={**base.rankings, "KL": replace(ranking, draws=draws)})


def drawn() -> Analysis:
    """A model whose hyperparameters were drawn."""
    base = regression()
    names = ["x1", "x4", "x6"]
    sampler = gs.NUTS(draws=40, tune=80, chains=2, keep=8, seed=0, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gs.GPSiftWarning)  # so few draws are no good chain, but they make a page
        gp = gs.GP(hyper=sampler).fit(base.X[names], base.y)
    found = {"KL": gs.rank(gp, base.X[names]), "ARD": gs.rank(gp, base.X[names], gs.ARD())}
    return replace(base, X=base.X[names], model=gp, rankings=found, path=None, stability=None)


@cache
def acting(n_classes: int = 0) -> Analysis:
    """Columns that act in several ways, two of them together, one a category; with how they act."""
    rng = np.random.default_rng(6)
    colour = rng.integers(3, size=80)
    rows = pd.DataFrame(rng.uniform(-1, 1, size=(80, 3)), columns=["slope", "bend <b>", "switch"])
    rows["colour"] = np.array(["blue", "green", "<i>red"])[colour]
    X = rows[["slope", "bend <b>", "switch"]].assign(
        **{f"colour={k}": (colour == i) * 1.0 for i, k in enumerate(("blue", "green", "<i>red"))}
    )
    level = 2 * X["slope"] * X["switch"] + X["slope"] + 2 * X["bend <b>"] ** 2 + (colour == 1)
    y = (level > level.median()).astype(int) if n_classes else level + 0.1 * rng.normal(size=80)
    known = {"likelihood": "bernoulli"} if n_classes else {}
    noise = {} if n_classes else {"noise_var": 0.02}
    gp = gs.GP(hyper=gs.Fixed(lengthscale=1.5, signal_var=1.0, **noise), **known).fit(X, y)
    groups = {"colour": [name for name in X if name.startswith("colour=")]}
    found = Analysis(
        source="acting.csv",
        target="outcome",
        task="classification" if n_classes else "regression",
        rows=rows,
        X=X,
        y=y.to_numpy(),
        model=gp,
        rankings=rankings(gp, X, groups=groups),
        classes=("no", "yes")[:n_classes],
        groups=groups,
    )
    return add_effects(found, work=gs.Work(progress=False))
