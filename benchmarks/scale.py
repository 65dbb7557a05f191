"""What sparse models cost as rows, inducing points and features grow, and how near their rankings are to exact ones.

python benchmarks/scale.py cost                 # seconds and fitted exponents
python benchmarks/scale.py agreement            # against exact fits; needs GPSIFT_DATA, the folder with scale/
python benchmarks/scale.py large                # nycflights, 273,853 rows; needs GPSIFT_DATA
"""

from __future__ import annotations

import argparse
import os
import resource
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from timing import one_thread, seconds
from toys import NORMAL, toy

import gpsift as gs
from gpsift.inference.rows import LocalRows, Rows
from gpsift.inference.sparse import sparse_evidence, sparse_model

# One of them varies, the others stay at the values in the middle.
ROWS, POINTS, FEATURES = (8000, 16000, 32000, 64000), (64, 128, 256, 512), (8, 16, 32, 64)
MIDDLE = {"n": 16000, "m": 128, "p": 8}
# Data sets on which an exact fit is possible, with the number of rows that it takes.
AGREEMENT = {"airfoil": 1503, "pumadyn32nm": 2000, "protein": 2000}
# Inducing points of the large fit, and parts of its rows of which an evaluation is timed.
LARGE_POINTS = 256
LARGE_ROWS = (30_000, 65_000, 135_000)
# Features above this share of the top score are the ones that a reader would keep.
KEPT = 0.1
MEASURES = (gs.KL(), gs.VAR())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("section", choices=("cost", "agreement", "large"))
    parser.add_argument("--repeats", type=int, default=3, help="each time is the shortest of so many")
    parser.add_argument("--points", type=int, nargs="+", default=[200], help="inducing points of `agreement`")
    parser.add_argument("--power", type=float, nargs="+", default=[0.0], help="powers of `agreement`")
    parser.add_argument("--only", help="one data set of `agreement`")
    chosen = parser.parse_args()
    if chosen.section == "large":  # with all threads that there are
        large()
        return
    with one_thread():
        if chosen.section == "cost":
            cost(chosen.repeats)
        else:
            for name in [chosen.only] if chosen.only else AGREEMENT:
                agreement(name, chosen.points, chosen.power)


def cost(repeats: int) -> None:
    for letter, values in (("n", ROWS), ("m", POINTS), ("p", FEATURES)):
        times: dict[str, list[float]] = {}
        for value in values:
            for task, call in tasks(**(MIDDLE | {letter: value})).items():
                times.setdefault(task, []).append(min(seconds(call) for _ in range(repeats)))
        for task, found in times.items():
            exponent = np.polyfit(np.log(values), np.log(found), 1)[0]
            listed = ", ".join(f"{value}: {time:.3g} s" for value, time in zip(values, found, strict=True))
            print(f"{task:12s} {letter}^{exponent:.2f}   {listed}", flush=True)


def tasks(n: int, m: int, p: int) -> dict[str, Callable[[], object]]:
    """One value with gradient of the variational bound, and rankings at all rows."""
    X, y = toy(NORMAL, seed=0, n=n, p=p)
    # Length-scales at which all inducing points are needed.
    hyper = gs.Fixed(lengthscale=0.5 * np.sqrt(p), signal_var=1.0, noise_var=0.1, constant_var=0.1)
    gp = gs.GP(hyper=hyper, inference=gs.Sparse(m=m)).fit(X, y)
    assert gp.report.n_inducing == m
    inputs, target = gp.scaling.inputs(X), gp.scaling.target(y)
    return {
        "evaluation": lambda: sparse_evidence(
            sparse_model(gp.kernel, gp.posterior.Z, 0.1), LocalRows(Rows(inputs, target), m)
        ),
        "rank, KL": lambda: gs.rank(gp, measure=gs.KL()),
        "rank, VAR": lambda: gs.rank(gp, measure=gs.VAR()),
    }


def agreement(name: str, points: Sequence[int], powers: Sequence[float]) -> None:
    X, y = data_set(name, AGREEMENT[name])
    exact = gs.GP(inference="exact")
    fitted: list[gs.FittedGP] = []
    spent = seconds(lambda: fitted.append(exact.fit(X, y)))
    print(f"{name}: exact, {spent:.0f} s, evidence {fitted[0].log_marginal_likelihood:.1f}", flush=True)
    references = [gs.rank(fitted[0], measure=measure).scores for measure in MEASURES]
    for power in powers:
        for m in points:
            sparse: list[gs.FittedGP] = []
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                spent = seconds(lambda: sparse.append(gs.GP(inference=gs.Sparse(m=m, power=power)).fit(X, y)))  # noqa: B023
            parts = [f"{name}: m {m}, power {power:g}, {spent:.0f} s, {sparse[0].log_marginal_likelihood:.1f}"]
            for measure, expected in zip(MEASURES, references, strict=True):
                found = gs.rank(sparse[0], measure=measure).scores
                off = np.abs(found - expected).max() / expected.max()
                same = np.array_equal(found > KEPT * found.max(), expected > KEPT * expected.max())
                parts.append(f"{measure.label} off by {off:.3f} of the top, {'same' if same else 'other'} set")
            print("; ".join(parts), f"({len(said)} notices)", flush=True)


def large() -> None:
    """All rows of nycflights: evaluations of growing parts of them, the fit, the measures, the memory."""
    X, y = data_set("nycflights", None)
    inputs, target = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    print(f"before: {peak():.2f} GiB", flush=True)
    kernel = gs.SquaredExponential(np.full(X.shape[1], 1.0)) + gs.Constant(0.1)
    model = sparse_model(kernel, inputs[:LARGE_POINTS], 0.5)
    sizes = [*LARGE_ROWS, len(y)]
    order = np.random.default_rng(0).permutation(len(y))
    times = []
    for n in sizes:
        source = LocalRows(Rows(inputs[order[:n]], target[order[:n]]), LARGE_POINTS)
        times.append(min(seconds(lambda: sparse_evidence(model, source)) for _ in range(3)))  # noqa: B023
    exponent = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    listed = ", ".join(f"{n}: {time:.3g} s" for n, time in zip(sizes, times, strict=True))
    print(f"value and gradient: n^{exponent:.2f}   {listed}, peak {peak():.2f} GiB", flush=True)
    fitted: list[gs.FittedGP] = []
    spent = seconds(lambda: fitted.append(gs.GP(inference=gs.Sparse(m=LARGE_POINTS)).fit(X, y)))
    gp = fitted[0]
    print(
        f"fit to {len(y)} rows: {spent:.0f} s, {gp.report.n_evaluations} evaluations, peak {peak():.2f} GiB", flush=True
    )
    for measure in MEASURES:
        spent = seconds(lambda: gs.rank(gp, measure=measure))  # noqa: B023
        print(f"rank, {measure.label}: {spent:.1f} s, peak {peak():.2f} GiB", flush=True)


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
