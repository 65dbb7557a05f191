"""KL and VAR of models fitted with other libraries, against a loop of their own single predictions.

"First rank" includes `as_reference`, which makes the model ours, and the inverse, which later ones of the same
reference reuse. The numbers are compared in the run.

    python benchmarks/adapters.py [--repeats 7]
"""

from __future__ import annotations

import argparse
import functools

import numpy as np
from evaluation import typical_log_params
from measures import DELTA, N_NODES, kl_loop, var_loop
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from table import AtLeast, Row, duration, print_table
from timing import SAMPLE_SECONDS, median_ratio, one_thread, seconds
from toys import NORMAL, toy

import gpsift as gs
from gpsift.adapters import as_reference

SIZE = (300, 8)
MARKS = {"KL": (AtLeast(100.0), AtLeast(500.0)), "VAR": (AtLeast(50.0), AtLeast(100.0))}


def sklearn_model(X: np.ndarray, y: np.ndarray, log_params: np.ndarray) -> GaussianProcessRegressor:
    """scikit-learn's regressor at these parameters."""
    signal_var, constant_var, noise_var = np.exp(log_params[-3:])
    kernel = signal_var * RBF(np.exp(log_params[:-3])) + ConstantKernel(constant_var) + WhiteKernel(noise_var)
    return GaussianProcessRegressor(kernel, optimizer=None).fit(X, y)


def adapter_rows(repeats: int) -> list[Row]:
    n, p = SIZE
    X, y = toy(NORMAL, seed=0, n=n, p=p)
    model = sklearn_model(X, y, typical_log_params(p))

    def predict(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, std = model.predict(X, return_std=True)
        return mean[:, None], std[:, None] ** 2

    rows = []
    for name, measure, same, loop in (
        ("KL", gs.KL(), gs.KL(delta=DELTA), kl_loop),
        ("VAR", gs.VAR(n_nodes=N_NODES), gs.VAR(n_nodes=N_NODES), var_loop),
    ):
        single_predictions = functools.partial(loop, predict, X, np.arange(n))
        check_same(name, gs.rank(as_reference(model), X, same).pointwise, single_predictions())
        first, later, theirs = np.empty((3, repeats))
        for repeat in range(repeats):
            first[repeat], later[repeat] = rank_seconds(model, X, measure)
            theirs[repeat] = seconds(single_predictions)
        for when, ours, mark in zip(("first rank", "later rank"), (first, later), MARKS[name], strict=True):
            medians = duration(float(np.median(ours))), duration(float(np.median(theirs)))
            case = f"{name}, n = {n}, p = {p}, {when}"
            rows.append(Row(case, "scikit-learn loop", *medians, median_ratio(theirs, ours), mark))
    return rows


def rank_seconds(model: GaussianProcessRegressor, X: np.ndarray, measure: gs.Measure) -> tuple[float, float]:
    """Seconds of the first `rank` of a model of the library, and of a later one of the same reference."""
    number = int(np.ceil(SAMPLE_SECONDS / seconds(lambda: gs.rank(as_reference(model), X, measure))))
    first = seconds(lambda: gs.rank(as_reference(model), X, measure), number)
    reference = as_reference(model)
    gs.rank(reference, X, measure)
    return first, seconds(lambda: gs.rank(reference, X, measure), number)


def check_same(name: str, ours: np.ndarray, theirs: np.ndarray) -> None:
    """Single values to 1e-3 where above 1 % of the largest: a step of 1e-4 leaves the loop few digits."""
    matters = theirs > 0.01 * theirs.max()
    error = float(np.max(np.abs(ours[matters] / theirs[matters] - 1.0)))
    print(f"{name} at single points: {matters.sum()} of {matters.size} values compared, relative error {error:.1e}")
    if not error < 1e-3:
        raise RuntimeError(f"{name}: gpsift and the loop of predictions differ by {error:.1e}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    with one_thread():
        print_table(adapter_rows(args.repeats))


if __name__ == "__main__":
    main()
