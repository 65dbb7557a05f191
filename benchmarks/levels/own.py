"""The package's own test on observations of other kinds, and with a forest in the place of a Gaussian process.

Observations follow Friedman's function of five columns, or, under the null, no column at all.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr

import gpsift as gs
from benchmarks.levels.designs import FIVE, friedman_of, independent
from benchmarks.levels.summary import RATES
from gpsift.selection.conditional_test.conditionals import quick_hyper

FILE = "own.jsonl"
# Mean and standard deviation of Friedman's function of independent inputs, nearly.
CENTER, SPREAD = 14.4, 4.9

Drawn = Callable[[np.random.Generator, np.ndarray], np.ndarray]


def forest(X: np.ndarray, y: np.ndarray) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(n_estimators=100, min_samples_leaf=3, random_state=0).fit(X, y)


@dataclass(frozen=True)
class Kind:
    """How observations are drawn from a latent function of size 1, and by which likelihood they are modelled."""

    draw: Drawn
    likelihood: str | None

    def model(self, n: int, p: int) -> Any:
        return forest if self.likelihood is None else gs.GP(hyper=quick_hyper(n, p), likelihood=self.likelihood)


KINDS = {
    "two classes": Kind(lambda rng, f: (rng.random(f.size) < ndtr(2.0 * f)).astype(float), "bernoulli"),
    "counts": Kind(lambda rng, f: rng.poisson(np.exp(1.0 + 0.7 * f)).astype(float), "poisson"),
    "heavy tails": Kind(lambda rng, f: f + 0.4 * rng.standard_t(3.0, size=f.size), "student-t"),
    "forest": Kind(lambda rng, f: f + 0.4 * rng.normal(size=f.size), None),
}


def run_own(sizes: Sequence[tuple[int, int]], n_sets: int, n_jobs: int, out: Path, null: bool) -> None:
    """Every kind, on Friedman's function or under the null; what is in the file already is left."""
    out.mkdir(parents=True, exist_ok=True)
    done = {(record["kind"], record["n"], record["p"], record["set"], record["null"]) for record in records(out)}
    jobs = [(kind, n, p, r, null) for r, (n, p), kind in product(range(n_sets), sizes, KINDS)]
    with ProcessPoolExecutor(n_jobs) as pool, (out / FILE).open("a") as stream:
        for one in as_completed([pool.submit(run_set, *job) for job in jobs if job not in done]):
            stream.write(json.dumps(one.result()) + "\n")
            stream.flush()


def run_set(kind: str, n: int, p: int, number: int, null: bool) -> dict[str, Any]:
    rng = np.random.default_rng([list(KINDS).index(kind), number, n, p, *([1] if null else [])])
    X = independent(rng, n, p)
    latent = (friedman_of(ndtr(X)) - CENTER) / SPREAD
    y = KINDS[kind].draw(rng, np.zeros(n) if null else latent)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = gs.discover(X, y, KINDS[kind].model(n, p))
    return {"kind": kind, "n": n, "p": p, "set": number, "null": null, "q": np.asarray(found.q).tolist()}


def records(out: Path) -> list[dict[str, Any]]:
    file = out / FILE
    lines = file.read_text().splitlines() if file.exists() else []
    return [{"null": False, **json.loads(line)} for line in lines]


def own_table(out: Path) -> pd.DataFrame:
    """False discoveries and power of each kind and size; under the null, the share of sets with any discovery."""
    rows = []
    for record in records(out):
        q, relevant = np.array(record["q"]), np.isin(np.arange(record["p"]), [] if record["null"] else FIVE)
        kind = f"{record['kind']}, null" if record["null"] else record["kind"]
        row = {"kind": kind, "n": record["n"], "p": record["p"], "sets": 1}
        for rate in RATES:
            chosen = q <= rate
            row[f"false at {rate}"] = np.sum(chosen & ~relevant) / max(1, chosen.sum())
            row[f"found at {rate}"] = np.mean(chosen[relevant]) if relevant.any() else np.nan
        rows.append(row)
    if not rows:
        return pd.DataFrame()
    groups = pd.DataFrame(rows).groupby(["kind", "n", "p"], sort=False)
    return groups.mean().assign(sets=groups["sets"].sum())
