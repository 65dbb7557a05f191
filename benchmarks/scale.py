"""What exact and sparse models cost as rows, inducing points and features grow, beside other libraries.

python benchmarks/scale.py cost                 # seconds and fitted exponents
python benchmarks/scale.py peers                # one evaluation beside other libraries that are installed
python benchmarks/scale.py large                # nycflights, 273,853 rows; needs GPSIFT_DATA, the folder with scale/
"""

from __future__ import annotations

import argparse
import os
import resource
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from evaluation import check_same_numbers, typical_log_params
from models import Gpsift, GPy, GPyTorch, ScikitLearn
from peers import installed
from sparse_models import GPflowSGPR, SparseGpsift, SparseGPy
from table import Row, duration, print_table
from timing import interleaved, median_ratio, one_thread, seconds
from toys import NORMAL, toy

import gpsift as gs
from gpsift._utils.rows import LocalRows, Rows
from gpsift._utils.threads import one_blas_thread
from gpsift.gp.sparse.bound import bound_evidence, bound_model

# One of them varies, the others stay at the values in the middle.
ROWS, POINTS, FEATURES = (8000, 16000, 32000, 64000), (64, 128, 256, 512), (8, 16, 32, 64)
MIDDLE = {"n": 16000, "m": 128, "p": 8}
EXACT_ROWS, EXACT_MIDDLE = (500, 1000, 2000, 4000), {"n": 1000, "p": 8}
PEER_EXACT_ROWS = 2000
# GPy and GPflow add 1e-6 to the diagonal of K_zz, gpsift 1e-10 of it.
SAME_BOUND = 1e-4
# Inducing points of the large fit, and parts of its rows of which an evaluation is timed.
LARGE_POINTS = 256
LARGE_ROWS = (30_000, 65_000, 135_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("section", choices=("cost", "peers", "large"))
    parser.add_argument("--repeats", type=int, default=5, help="of each time: the shortest, or for peers the median")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    if chosen.section == "large":  # with all threads that there are
        large()
    elif chosen.section == "cost":
        with one_thread():
            for letter, values in (("n", EXACT_ROWS), ("p", FEATURES)):
                cost(exact_tasks, EXACT_MIDDLE, letter, values, chosen.repeats)
            for letter, values in (("n", ROWS), ("m", POINTS), ("p", FEATURES)):
                cost(tasks, MIDDLE, letter, values, chosen.repeats)
    else:
        peers(chosen.repeats)


Tasks = Callable[..., dict[str, Callable[[], object]]]


def cost(make: Tasks, middle: dict[str, int], letter: str, values: Sequence[int], repeats: int) -> None:
    """Seconds as one size grows, and the exponent that fits them."""
    times: dict[str, list[float]] = {}
    for value in values:
        for task, call in make(**(middle | {letter: value})).items():
            times.setdefault(task, []).append(min(seconds(call) for _ in range(repeats)))
    for task, found in times.items():
        exponent = np.polyfit(np.log(values), np.log(found), 1)[0]
        listed = ", ".join(f"{value}: {time:.3g} s" for value, time in zip(values, found, strict=True))
        print(f"{task:20s} {letter}^{exponent:.2f}   {listed}", flush=True)


def exact_tasks(n: int, p: int) -> dict[str, Callable[[], object]]:
    """One value with gradient of the exact evidence, and rankings at all rows."""
    X, y = toy(NORMAL, seed=0, n=n, p=p)
    model = Gpsift(X, y)
    gp = gs.GP(hyper=fixed(p), inference="exact").fit(X, y)
    return {
        "exact evaluation": model.evaluation(typical_log_params(p)),
        "exact KL": lambda: gs.rank(
            replace(gp, inferred=replace(gp.inferred, posterior=replace(gp.posterior))), measure=gs.KL()
        ),
        "exact VAR": lambda: gs.rank(
            replace(gp, inferred=replace(gp.inferred, posterior=replace(gp.posterior))),
            measure=gs.VAR(conditional="normal"),
        ),
    }


def peers(repeats: int) -> None:
    """One value with gradient in turn: exact, and sparse with the same inducing points."""
    rows = []
    X, y = toy(NORMAL, seed=0, n=PEER_EXACT_ROWS, p=MIDDLE["p"])
    log_params = typical_log_params(MIDDLE["p"])
    exact = [library(X, y) for library in (Gpsift, *installed((GPyTorch, GPy, ScikitLearn)))]
    with one_thread():
        check_same_numbers(exact, exact[0].evidence(log_params)[0], log_params)
        calls = {model.name: model.evaluation(log_params) for model in exact}
        rows += compared(f"exact, n = {PEER_EXACT_ROWS}, p = {MIDDLE['p']}", calls, repeats)
    n, m, p = MIDDLE["n"], MIDDLE["m"], MIDDLE["p"]
    X, y = toy(NORMAL, seed=0, n=n, p=p)
    sparse = [library(X, y, X[:m], log_params) for library in (SparseGpsift, *installed((SparseGPy, GPflowSGPR)))]
    with one_thread():
        bound = sparse[0].value()
        for model in sparse:
            if abs(model.value() - bound) > SAME_BOUND * abs(bound):
                raise RuntimeError(f"{model.name} computes something else: {model.value():.6f}, not {bound:.6f}.")
        calls = {model.name: model.evaluation() for model in sparse}
        rows += compared(f"sparse, n = {n}, m = {m}, p = {p}", calls, repeats)
    print_table(rows)


def compared(case: str, calls: dict[str, Callable[[], object]], repeats: int) -> list[Row]:
    samples = interleaved(calls, repeats)
    ours = samples.pop("gpsift")
    return [
        Row(
            case, peer, duration(float(np.median(ours))), duration(float(np.median(theirs))), median_ratio(theirs, ours)
        )
        for peer, theirs in samples.items()
    ]


def fixed(p: int) -> gs.Fixed:
    """Length-scales at which all inducing points are needed."""
    return gs.Fixed(lengthscale=0.5 * np.sqrt(p), signal_var=1.0, noise_var=0.1, constant_var=0.1)


def tasks(n: int, m: int, p: int) -> dict[str, Callable[[], object]]:
    """One value with gradient of the variational bound, and rankings at all rows."""
    X, y = toy(NORMAL, seed=0, n=n, p=p)
    gp = gs.GP(hyper=fixed(p), inference=gs.Sparse(m=m)).fit(X, y)
    assert gp.report.n_inducing == m
    inputs, target = gp.scaling.inputs(X), gp.scaling.target(y)
    return {
        "sparse evaluation": lambda: bound_evidence(
            bound_model(gp.kernel, gp.posterior.Z, 0.1), LocalRows(Rows(inputs, target), m)
        ),
        "sparse KL": lambda: gs.rank(gp, measure=gs.KL()),
        "sparse VAR": lambda: gs.rank(gp, measure=gs.VAR(conditional="normal")),
    }


def large() -> None:
    """All rows of nycflights: evaluations of growing parts of them, the fit, the measures, the memory."""
    X, y = data_set("nycflights", None)
    inputs, target = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    print(f"before: {peak():.2f} GiB", flush=True)
    kernel = gs.SquaredExponential(np.full(X.shape[1], 1.0)) + gs.Constant(0.1)
    model = bound_model(kernel, inputs[:LARGE_POINTS], 0.5)
    sizes = [*LARGE_ROWS, len(y)]
    order = np.random.default_rng(0).permutation(len(y))
    sources = [LocalRows(Rows(inputs[order[:n]], target[order[:n]]), LARGE_POINTS) for n in sizes]
    with one_blas_thread():  # as in a fit, where visits have threads of their own
        rounds = [[seconds(lambda: bound_evidence(model, source)) for source in sources] for _ in range(4)]  # noqa: B023
    times = np.min(rounds, axis=0)
    exponent = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    listed = ", ".join(f"{n}: {time:.3g} s" for n, time in zip(sizes, times, strict=True))
    print(f"value and gradient: n^{exponent:.2f}   {listed}, peak {peak():.2f} GiB", flush=True)
    found: list[gs.FittedGP] = []
    spent = both_times(lambda: found.append(gs.GP(inference=gs.Sparse(m=LARGE_POINTS)).fit(X, y)))
    gp = found[0]
    print(
        f"fit to {len(y)} rows: {spent}, {gp.report.n_evaluations} evaluations, hyperparameters of "
        f"{gp.report.n_rows_searched or len(y)} rows, {gp.report.n_blocks} blocks, peak {peak():.2f} GiB",
        flush=True,
    )
    for measure in (gs.KL(), gs.VAR()):
        spent = both_times(lambda: gs.rank(gp, measure=measure))  # noqa: B023
        print(f"{measure.label} at all rows: {spent}, peak {peak():.2f} GiB", flush=True)


def both_times(call: Callable[[], object]) -> str:
    """What a call takes, by the clock and of the processors."""
    wall, processor = time.perf_counter(), time.process_time()
    call()
    return f"{time.perf_counter() - wall:.0f} s, {time.process_time() - processor:.0f} processor s"


def data_set(name: str, n: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Some rows of a set, drawn with a fixed seed, or all."""
    table = pd.read_csv(Path(os.environ["GPSIFT_DATA"]) / "scale" / f"{name}.csv.gz").to_numpy(dtype=float)
    if n is not None:
        table = table[np.sort(np.random.default_rng(0).choice(len(table), size=n, replace=False))]
    return table[:, :-1], table[:, -1]


def peak() -> float:
    """The most memory that this process had, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    main()
