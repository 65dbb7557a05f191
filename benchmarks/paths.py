"""A whole path of submodels: against scikit-learn's fits of the same ones, in folds on two cores, by projection."""

from __future__ import annotations

import time
import warnings

import numpy as np
from models import ScikitLearn
from table import AtLeast, Below, Row, duration
from timing import seconds

import gpsift as gs
from gpsift.paper.datasets import friedman

N_ROWS, N_FEATURES, N_FOLDS, JOBS = 300, 13, 10, 2
ALONE, SIDE_BY_SIDE = gs.Work(progress=False), gs.Work(jobs=JOBS, progress=False)
ML2 = gs.GP(hyper=gs.ML2())  # as the peer does: all features at once
PATH_MARK = AtLeast(10.0)
FOLDS_MARK = Below(0.6, "")
PROJECTION_MARK = Below(60.0, " s")


def path_rows(repeats: int, *, with_peer: bool) -> list[Row]:
    """Medians over rounds; each round takes everybody in turn on another data set."""
    case = f"n={N_ROWS} p={N_FEATURES}"
    ours, theirs, folds, projections = [], [], [], []
    for seed in range(repeats):
        toy = friedman(n=N_ROWS, p=N_FEATURES, seed=seed)
        began = time.perf_counter()
        path = gs.search(toy.X, toy.y, model=ML2, work=ALONE)
        ours.append(time.perf_counter() - began)
        if with_peer:
            theirs.append(sum(_peer_seconds(toy.X[:, path.order[:size]], toy.y) for size in range(1, N_FEATURES + 1)))
    for seed in range(2):
        toy = friedman(n=N_ROWS, p=N_FEATURES, seed=seed)
        folds.append(_folds_ratio(toy.X, toy.y))
        gp = ML2.fit(toy.X, toy.y)
        began = time.perf_counter()
        gs.forward_projection(gp, work=SIDE_BY_SIDE)
        projections.append(time.perf_counter() - began)
    rows = []
    if with_peer:
        ratio = float(np.median(np.array(theirs) / np.array(ours)))
        shown = duration(float(np.median(ours))), duration(float(np.median(theirs)))
        rows.append(Row(f"path with leave-one-out, {case}", "scikit-learn's 13 fits", *shown, ratio, PATH_MARK))
    rows.append(
        Row(
            f"{N_FOLDS}-fold path, {JOBS} processes",
            f"{N_FOLDS} x one path",
            "",
            "",
            float(np.median(folds)),
            FOLDS_MARK,
            "",
        )
    )
    seconds_ = float(np.median(projections))
    rows.append(Row(f"forward projection, {case}", "", duration(seconds_), "", seconds_, PROJECTION_MARK, " s"))
    return rows


def _peer_seconds(X: np.ndarray, y: np.ndarray) -> float:
    """One start of scikit-learn's search on standardised data, as ours has them."""
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of bounds that its length-scales reach
        return seconds(ScikitLearn(X, y).fit)


def _folds_ratio(X: np.ndarray, y: np.ndarray) -> float:
    gs.search(X, y, cv=N_FOLDS, sizes=[0], model=ML2, work=SIDE_BY_SIDE)  # the processes are started once
    whole = seconds(lambda: gs.search(X, y, model=ML2, work=ALONE))
    return seconds(lambda: gs.search(X, y, cv=N_FOLDS, model=ML2, work=SIDE_BY_SIDE)) / (N_FOLDS * whole)
