"""How default fits of classes and counts grow with the rows: processor seconds, evaluations and steps of inference.

    python benchmarks/growth.py                          # this checkout
    python benchmarks/growth.py --against OTHER/src      # and another one in turn with it, with ratios

Every fit runs in a process of its own with one BLAS thread. What is compared is processor time, which a busy machine
changes less than the clock on the wall; the log evidence at the end says whether both came to the same place.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent.parent / "src"
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
FITS = (("bernoulli", 300), ("bernoulli", 1000), ("softmax", 300), ("poisson", 300), ("poisson", 1000))
N_FEATURES = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path, help="the src folder of another checkout")
    parser.add_argument("--seeds", type=int, default=1, help="data sets of each size (1)")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        likelihood, n, seed = arguments.one
        print(json.dumps(fitted(likelihood, int(n), int(seed))))
        return
    print("likelihood, rows, seed: seconds, evaluations, log evidence")
    for likelihood, n in FITS:
        for seed in range(arguments.seeds):
            here = measured(HERE, likelihood, n, seed)
            print(f"{likelihood}, {n}, {seed}: {shown(here)}", flush=True)
            if arguments.against is not None:
                other = measured(arguments.against, likelihood, n, seed)
                gain = here["log_evidence"] - other["log_evidence"]
                ratio = other["seconds"] / here["seconds"]
                print(f"  the other: {shown(other)}; {ratio:.1f} times, {gain:+.3f} nats", flush=True)


def shown(fit: dict[str, float]) -> str:
    return f"{fit['seconds']:.2f} s, {fit['evaluations']:.0f}, {fit['log_evidence']:.4f}"


def measured(source: Path, likelihood: str, n: int, seed: int) -> dict[str, float]:
    """What a process of its own says that imports the package from a folder."""
    command = [sys.executable, __file__, "--one", likelihood, str(n), str(seed)]
    environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(source.resolve())}
    return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def fitted(likelihood: str, n: int, seed: int) -> dict[str, float]:
    """Processor seconds, evaluations of the evidence and its value at the end, of a default fit."""
    import gpsift as gs
    from gpsift.inference import EPEngine, LaplaceEngine, MulticlassEngine

    calls: Counter[str] = Counter()
    for engine in (EPEngine, LaplaceEngine, MulticlassEngine):
        for name in ("evidence", "log_evidence", "slope"):
            setattr(engine, name, counted(getattr(engine, name), calls))
    X, y = data(likelihood, n, seed)
    start = time.process_time()
    model = gs.GP(likelihood=likelihood).fit(X, y)
    seconds = time.process_time() - start
    return {"seconds": seconds, "evaluations": calls["all"], "log_evidence": model.inferred.log_evidence}


def counted(method, calls):
    def asked(*arguments):
        calls["all"] += 1
        return method(*arguments)

    return asked


def data(likelihood: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A curve along one input and a product of two others, behind the link; two inputs do nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, N_FEATURES))
    f = 1.5 * np.sin(1.5 * X[:, 0]) + X[:, 1] * X[:, 2]
    if likelihood == "bernoulli":
        return X, (f + rng.normal(size=n) > 0).astype(float)
    if likelihood == "poisson":
        return X, rng.poisson(np.exp(0.5 + 0.7 * f)).astype(float)
    scores = np.column_stack([2.0 * f, 2.0 * X[:, 1] - X[:, 0] ** 2, -X[:, 2] - 1.0])
    return X, np.argmax(scores + rng.gumbel(size=(n, 3)), axis=1).astype(float)


if __name__ == "__main__":
    main()
