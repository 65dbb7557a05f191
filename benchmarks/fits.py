"""Whole fits by maximum marginal likelihood: how long they take and how high they end.

Every fit is judged by the same plain formula at the parameters where it ended. It "reached the optimum" if that is
within `CLOSE` nats of the best that anybody found on that data set. A fit that stops short has no time to the
optimum. The ratio with a mark is therefore the median over the data sets on which the peer reached it, and there
gpsift's ratio is 0 if gpsift did not. The ratio of plain fit times over all data sets stands below it. Only the
peer's optimiser is timed, not the making of its model; of gpsift the whole `fit`.
"""

from __future__ import annotations

import dataclasses
import gc
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from models import BoTorch, Gpsift, GPy, Library, ScikitLearn, log_evidence
from table import AtLeast, Mark, Row, duration
from timing import median_ratio, rotated, seconds
from toys import NORMAL, UNIFORM, Law, toy

import gpsift as gs

PEERS: tuple[type[Library], ...] = (GPy, BoTorch, ScikitLearn)
CLOSE = 0.01
FIT_MARKS = {"GPy": AtLeast(8.0), "BoTorch": AtLeast(8.0), "scikit-learn": AtLeast(5.0)}
UNIFORM_MARKS = {"GPy": AtLeast(3.0), "BoTorch": AtLeast(3.0)}
UNIFORM_SHARE = 0.95  # 19 of 20


@dataclass(frozen=True)
class Fits:
    """Seconds and final log marginal likelihood of each library on each data set."""

    seconds: dict[str, np.ndarray]
    heights: dict[str, np.ndarray]

    @property
    def best(self) -> np.ndarray:
        return np.max(list(self.heights.values()), axis=0)

    def reached(self, name: str) -> np.ndarray:
        return self.heights[name] >= self.best - CLOSE


def fit_rows(peers: list[type[Library]], seeds: Iterable[int]) -> list[Row]:
    """Normal inputs, a single start for everybody."""
    single = gs.GP(hyper=gs.ML2(starts=1))
    fits = run_fits(NORMAL, single, peers, seeds)
    print_heights("fit (normal inputs, single start)", fits, seeds)
    rows = []
    for peer in peers:
        rows += _time_rows("fit, normal inputs, 1 start", fits, peer.name, FIT_MARKS[peer.name])
    return rows


def uniform_rows(peers: list[type[Library]], seeds: Iterable[int]) -> list[Row]:
    """Uniform inputs, where the likelihood has many optima: the default fit against single starts of the peers."""
    fits = run_fits(UNIFORM, gs.GP(hyper=gs.ML2()), peers, seeds)
    print_heights("uniform (uniform inputs, default fit against single starts)", fits, seeds)
    ours = fits.heights["gpsift"]
    best_peer = np.max([fits.heights[peer.name] for peer in peers], axis=0)
    good = int(np.sum(ours >= best_peer - CLOSE))
    needed = int(np.ceil(UNIFORM_SHARE * ours.size))
    case = f"uniform inputs, seeds not worse than the best peer by {CLOSE} nats"
    rows = [Row(case, "best of all", f"{good}", f"of {ours.size}", good, AtLeast(needed, ""), unit="")]
    for peer in peers:
        theirs = fits.seconds[peer.name]
        ratio = median_ratio(theirs, fits.seconds["gpsift"])
        medians = _medians(fits.seconds["gpsift"], theirs)
        rows.append(Row("uniform inputs, default fit", peer.name, *medians, ratio, UNIFORM_MARKS.get(peer.name)))
    return rows


def run_fits(law: Law, gp: gs.GP, peers: list[type[Library]], seeds: Iterable[int]) -> Fits:
    """Fit every library to every data set, in turn."""
    builders: dict[str, Callable[..., Library]] = {"gpsift": lambda X, y: Gpsift(X, y, gp)}
    builders |= {peer.name: peer for peer in peers}
    for build in builders.values():  # a first small fit, so that what loads on first use is loaded
        _timed_fit(build(*toy(law, seed=0, n=30)))
    times: dict[str, list[float]] = {name: [] for name in builders}
    heights: dict[str, list[float]] = {name: [] for name in builders}
    for round_, seed in enumerate(seeds):
        X, y = toy(law, seed)
        for name in rotated(list(builders), round_):
            model = builders[name](X, y)
            times[name].append(_timed_fit(model))
            heights[name].append(log_evidence(X, y, model.log_params))
    return Fits(_arrays(times), _arrays(heights))


def print_heights(title: str, fits: Fits, seeds: Iterable[int]) -> None:
    """How far below the best each fit ended, seed by seed."""
    print(f"\n{title}: nats below the best of all (seconds)")
    print("seed  " + "".join(f"{name:>20}" for name in fits.heights))
    for k, seed in enumerate(seeds):
        cells = [f"{fits.best[k] - fits.heights[name][k]:.4f} ({fits.seconds[name][k]:.3f})" for name in fits.heights]
        print(f"{seed:<6}" + "".join(f"{cell:>20}" for cell in cells))
    counts = [f"{fits.reached(name).sum()} of {len(fits.best)}" for name in fits.heights]
    print("near  " + "".join(f"{count:>20}" for count in counts) + f"  (within {CLOSE} nats)")


def _timed_fit(model: Library) -> float:
    gc.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return seconds(model.fit)


def _time_rows(case: str, fits: Fits, peer: str, mark: Mark) -> list[Row]:
    ours, theirs = fits.seconds["gpsift"], fits.seconds[peer]
    plain = Row(f"{case}, all {ours.size} seeds", peer, *_medians(ours, theirs), median_ratio(theirs, ours))
    there = fits.reached(peer)
    if not there.any():
        return [dataclasses.replace(plain, mark=mark)]
    to_optimum = np.where(fits.reached("gpsift"), theirs / ours, 0.0)[there]
    medians = _medians(ours[there], theirs[there])
    case = f"{case}, {there.sum()} seeds to the optimum"
    return [Row(case, peer, *medians, float(np.median(to_optimum)), mark), plain]


def _medians(ours: np.ndarray, theirs: np.ndarray) -> tuple[str, str]:
    return duration(float(np.median(ours))), duration(float(np.median(theirs)))


def _arrays(lists: dict[str, list[Any]]) -> dict[str, np.ndarray]:
    return {name: np.array(values) for name, values in lists.items()}
