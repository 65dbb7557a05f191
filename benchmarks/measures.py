"""KL and VAR of all points and features after the fit, against a loop of single predictions of GPy.

Both models have the same given hyperparameters, so that the numbers can be compared. gpsift is timed twice: the first
`rank` of a fresh fit, which pays for what later ones reuse, and a later one.
"""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from evaluation import typical_log_params
from models import Gpsift, GPy
from table import AtLeast, Below, Row, duration
from timing import SAMPLE_SECONDS, median_ratio, seconds
from toys import NORMAL, toy

import gpsift as gs

SIZES = ((300, 8), (400, 102))
MARKS = {
    "KL": {(300, 8): AtLeast(500.0), (400, 102): AtLeast(3000.0)},
    "VAR": {(300, 8): AtLeast(200.0), (400, 102): AtLeast(300.0)},
}
DELTA = 1e-4
N_NODES = 11
# The loops visit this many points at the most and are scaled up: each point costs the same.
LOOP_POINTS = {(300, 8): 300, (400, 102): 20}
MEMORY_MARK = Below(1.0, " GiB")

Predict = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def kl_loop(predict: Predict, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """sqrt(2 KL) / delta between the predictions at x and at x + delta e_j, one prediction for each."""
    scores = np.empty((rows.size, X.shape[1]))
    for i, row in enumerate(rows):
        mean, var = predict(X[row][None])
        for j in range(X.shape[1]):
            moved = X[row][None].copy()
            moved[0, j] += DELTA
            mean_moved, var_moved = predict(moved)
            u = (var - var_moved) / var_moved
            kl = 0.5 * (u - np.log1p(u) + (mean - mean_moved) ** 2 / var_moved)
            scores[i, j] = np.sqrt(2.0 * max(kl.item(), 0.0)) / DELTA
    return scores


def var_loop(predict: Predict, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Variance of the mean along the conditional of feature j given the others, one prediction of its nodes each."""
    t, weights = np.polynomial.hermite.hermgauss(N_NODES)
    weights = weights / np.sqrt(np.pi)
    P = np.linalg.inv(np.cov(X, rowvar=False))
    conditional_mean = X - (X - X.mean(axis=0)) @ P / np.diag(P)
    offsets = np.sqrt(2.0) * np.outer(1.0 / np.sqrt(np.diag(P)), t)
    scores = np.empty((rows.size, X.shape[1]))
    for i, row in enumerate(rows):
        for j in range(X.shape[1]):
            nodes = np.repeat(X[row][None], N_NODES, axis=0)
            nodes[:, j] = conditional_mean[row, j] + offsets[j]
            mean = predict(nodes)[0][:, 0]
            scores[i, j] = weights @ (mean - weights @ mean) ** 2
    return scores


def measure_rows(has_gpy: bool, repeats: int) -> list[Row]:
    rows = []
    for n, p in SIZES:
        X, y = toy(NORMAL, seed=0, n=n, p=p)
        log_params = typical_log_params(p)
        if has_gpy:
            rows += _loop_rows(X, y, log_params, repeats)
    rows += _evaluation_rows(X, y, log_params, repeats)
    return [*rows, memory_row()]


def fixed_gp(X: np.ndarray, y: np.ndarray, log_params: np.ndarray) -> gs.FittedGP:
    """gpsift's model at these parameters."""
    signal_var, constant_var, noise_var = np.exp(log_params[-3:])
    lengthscale = np.exp(log_params[:-3])
    given = gs.Fixed(lengthscale=lengthscale, signal_var=signal_var, constant_var=constant_var, noise_var=noise_var)
    return gs.GP(hyper=given, standardize=False).fit(X, y)


def _loop_rows(X: np.ndarray, y: np.ndarray, log_params: np.ndarray, repeats: int) -> list[Row]:
    size = X.shape
    n, p = size
    points = np.sort(np.random.default_rng(0).choice(n, size=LOOP_POINTS[size], replace=False))
    peer = GPy(X, y)
    peer.set(log_params)
    rows = []
    for name, measure, loop, compare in (
        ("KL", gs.KL(), kl_loop, check_same_kl),
        ("VAR", gs.VAR(n_nodes=N_NODES, conditional="normal"), var_loop, check_same_var),
    ):
        single_predictions = functools.partial(loop, peer.model.predict, X, points)
        compare(fixed_gp(X, y, log_params), points, single_predictions())
        first, later, theirs = np.empty((3, repeats))
        for repeat in range(repeats):
            first[repeat], later[repeat] = rank_seconds(X, y, log_params, measure)
            theirs[repeat] = seconds(single_predictions) * n / points.size
        peer_name = "GPy loop" if points.size == n else f"GPy loop ({points.size} of {n} points, scaled up)"
        for when, ours in (("first rank", first), ("later rank", later)):
            medians = duration(float(np.median(ours))), duration(float(np.median(theirs)))
            case = f"{name}, n = {n}, p = {p}, {when}"
            rows.append(Row(case, peer_name, *medians, median_ratio(theirs, ours), MARKS[name][size]))
    return rows


def rank_seconds(X: np.ndarray, y: np.ndarray, log_params: np.ndarray, measure: gs.Measure) -> tuple[float, float]:
    """Seconds of the first `rank` of a fresh fit, and of a later one."""
    gp = fixed_gp(X, y, log_params)
    first = seconds(lambda: gs.rank(gp, X, measure))
    return first, seconds(lambda: gs.rank(gp, X, measure), number=int(np.ceil(SAMPLE_SECONDS / first)))


def check_same_kl(gp: gs.FittedGP, points: np.ndarray, theirs: np.ndarray) -> None:
    """Scores in the limit, and single values with the loop's step, to 1e-3 where above 1 % of the largest.

    Single values of the limit differ from the loop's by the loop's own error: a step of 1e-4 to one side is off by
    delta / 2 times the curvature over the slope, which is 3e-3 where the slope is close to 0.
    """
    limit = gs.rank(gp, points=points, measure=gs.KL()).pointwise
    _check("KL scores, limit against step", limit.mean(axis=0), theirs.mean(axis=0), 1e-3, share=0.01)
    step = gs.rank(gp, points=points, measure=gs.KL(delta=DELTA)).pointwise
    _check("KL at single points, the same step", step, theirs, 1e-3, share=0.01)


def check_same_var(gp: gs.FittedGP, points: np.ndarray, theirs: np.ndarray) -> None:
    _check(
        "VAR at single points",
        gs.rank(gp, points=points, measure=gs.VAR(N_NODES, conditional="normal")).pointwise,
        theirs,
        1e-8,
    )


def _check(what: str, ours: np.ndarray, theirs: np.ndarray, tolerance: float, share: float = 0.0) -> None:
    matters = theirs > share * theirs.max()
    error = float(np.max(np.abs(ours[matters] / theirs[matters] - 1.0)))
    print(f"{what}: {matters.sum()} of {matters.size} values compared, relative error {error:.1e}")
    if not error < tolerance:
        raise RuntimeError(f"{what}: gpsift and the loop of predictions differ by {error:.1e}, allowed {tolerance:g}.")


def _evaluation_rows(X: np.ndarray, y: np.ndarray, log_params: np.ndarray, repeats: int) -> list[Row]:
    """KL against one evaluation of the marginal likelihood with its gradient, both ours."""
    evaluation = Gpsift(X, y).evaluation(log_params)
    number = int(np.ceil(SAMPLE_SECONDS / max(seconds(evaluation), seconds(evaluation))))
    first, later, evaluations = np.empty((3, repeats))
    for repeat in range(repeats):
        evaluations[repeat] = seconds(evaluation, number)
        first[repeat], later[repeat] = rank_seconds(X, y, log_params, gs.KL())
    n, p = X.shape
    rows = []
    for when, ours in (("first rank", first), ("later rank", later)):
        medians = duration(float(np.median(ours))), duration(float(np.median(evaluations)))
        mark = Below(1.0)
        case = f"time of KL, n = {n}, p = {p}, {when}"
        rows.append(Row(case, "evaluation with gradient", *medians, median_ratio(ours, evaluations), mark))
    return rows


def memory_row() -> Row:
    """Peak memory of VAR, in a process of its own."""
    script = Path(__file__).with_name("memory.py")
    done = subprocess.run([sys.executable, str(script)], check=True, capture_output=True, text=True)
    peak, elapsed = map(float, done.stdout.split())
    return Row("peak memory of VAR, n = 2000, p = 100", "-", duration(elapsed), "", peak, MEMORY_MARK, unit=" GiB")
