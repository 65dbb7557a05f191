"""Search for hyperparameters on growing samples of the rows.

All starts are searched on a small sample of the rows. Of starts that end at the same objective one is
kept, and those far below the best are dropped, because more rows would increase the difference. The others continue on
a larger sample, and finally on all rows. A search on more rows begins where that on fewer rows ended, with the
curvature found there, and needs few evaluations. If all rows gain more than chance explains, the small sample was
misleading, and the search is repeated from the next larger sample.

A small sample may miss the effect of a feature and let its length-scale grow without bound. Such features are tried
again by `gpsift.gp.hyperparameters.restarts`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from gpsift._utils.progress import SearchProgress
from gpsift.gp.hyperparameters.optimize import (
    AGREEMENT,
    Estimate,
    Start,
    best_estimate,
    curvature_at,
    search_from,
    starting_points,
)
from gpsift.gp.hyperparameters.priors import LogPrior
from gpsift.gp.hyperparameters.problem import Problem
from gpsift.gp.hyperparameters.restarts import restart_nonlinear, restart_trends
from gpsift.gp.inference import DenseInference

# With at least this many rows a search begins on fewer, the second number, and samples grow by at most this factor.
MANY_ROWS = 600
FEW_ROWS = 300
MOST_GROWTH = 3.5
# A start this many nats below the best is dropped. A log ratio with mean D has a variance of about 2 D, so that it has
# the other sign on all rows only if it is more than two standard deviations from its mean.
FAR_BEHIND = 10.0
# The gain of all rows, in standard deviations above its mean, at which the sample was misleading.
FAR = 4.0
# Features whose length-scales are restarted for nonlinear effects on one sample, at most.
MOST_NONLINEAR = 4


def uses_subsampling(problem: Problem) -> bool:
    """Return whether a search goes by way of fewer rows: rows are many, and their gradients exact."""
    is_dense = isinstance(problem.engine, DenseInference) and problem.likelihood.has_closed_form
    return is_dense and len(problem.y) >= MANY_ROWS


def growing_samples(y: np.ndarray, seed: int, most: int | None = None) -> list[np.ndarray]:
    """Return row numbers of nested samples, each with the smallest and the largest target.

    The last sample has all rows, or `most` of them if there are more.

    >>> [len(rows) for rows in growing_samples(np.arange(2000.0), seed=0)]
    [300, 775, 2000]
    """
    order = extremes_first(y, seed)
    return [np.sort(order[:size]) for size in growing_sizes(min(len(y), most or len(y)))]


def sample_rows(y: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Return the row numbers of one sample, with the smallest and the largest target."""
    return np.sort(extremes_first(y, seed)[:size])


def extremes_first(y: np.ndarray, seed: int) -> np.ndarray:
    """Return all row numbers in a random order, those of the smallest and the largest target before the others."""
    order = np.random.default_rng(seed).permutation(len(y))
    is_extreme = np.isin(order, [y.argmin(), y.argmax()])
    return np.concatenate([order[is_extreme], order[~is_extreme]])


def growing_sizes(n: int) -> list[int]:
    """Return sizes from few rows to n, which grow by the same factor.

    >>> growing_sizes(1000), growing_sizes(4000)
    ([300, 1000], [300, 711, 1687, 4000])
    """
    n_steps = max(1, math.ceil(math.log(n / FEW_ROWS, MOST_GROWTH)))
    return [round(size) for size in np.geomspace(min(FEW_ROWS, n), n, n_steps + 1)]


@dataclass(frozen=True, eq=False)
class SubsampledSearch:
    """A search from several starts on growing samples of the rows."""

    problem: Problem[DenseInference]
    log_prior: LogPrior
    n_starts: int
    seed: int
    max_iterations: int

    @cached_property
    def samples(self) -> list[Problem[DenseInference]]:
        """The problem on each sample, from few rows to all."""
        return [self.problem.on_rows(rows) for rows in growing_samples(self.problem.y, self.seed)]

    @cached_property
    def progress(self) -> SearchProgress:
        return SearchProgress(self.n_starts + len(self.samples) - 1)

    def run(self) -> Estimate:
        """Return the best estimate over all starts."""
        ended: list[Start] = []
        left: list[tuple[Start, float]] = []
        for fewest in range(len(self.samples)):
            going, behind = self.follow(fewest)
            ended, left = [*ended, *going], [*left, *behind]
            if not any(map(self.has_moved_far, going)):
                break
        top = max(start.objective for start in ended)
        return best_estimate(self.problem, [*ended, *(replace(start, objective=top - gap) for start, gap in left)])

    def follow(self, fewest: int) -> tuple[list[Start], list[tuple[Start, float]]]:
        """Search from one sample to all rows; return the ends, and dropped starts with their distance from the best."""
        starts = starting_points(self.problem, self.n_starts, self.seed)
        going = [self.search(self.samples[fewest], start, part) for part, start in enumerate(starts, start=1)]
        left: list[tuple[Start, float]] = []
        for stage in range(fewest + 1, len(self.samples)):
            going, behind = distinct_optima(going)
            left += behind
            going = [self.continue_search(self.restart_nonlinear_features(start, stage - 1), stage) for start in going]
        return going, left

    def restart_nonlinear_features(self, start: Start, stage: int) -> Start:
        """Restart features with nonlinear effects that a search on one sample has missed, as long as that helps."""
        for _ in range(MOST_NONLINEAR):
            place = restart_nonlinear(self.samples[stage], start.log_params)
            if place is None:
                break
            found = self.search(self.samples[stage], place, self.n_starts + stage)
            if found.objective < start.objective + AGREEMENT:
                break
            start = replace(found, n_evaluations=start.n_evaluations + found.n_evaluations)
        return start

    def continue_search(self, start: Start, stage: int) -> Start:
        """Search on the rows of a stage from where a search on fewer rows has ended."""
        fewer, sample = self.samples[stage - 1], self.samples[stage]
        place = restart_trends(sample, start.log_params)
        curvature = curvature_at(fewer, self.log_prior, place, len(sample.y))
        end = self.search(sample, place, self.n_starts + stage, curvature)
        return replace(end, n_evaluations=start.n_evaluations + end.n_evaluations)

    def search(
        self, sample: Problem[DenseInference], start: np.ndarray, part: int, curvature: np.ndarray | None = None
    ) -> Start:
        """Search from one start, which is this part of the progress bar."""
        on_evaluation = partial(self.progress.update, part)
        return search_from(sample, self.log_prior, start, self.max_iterations, on_evaluation, curvature)

    def has_moved_far(self, end: Start) -> bool:
        """Return whether all rows gain more nats than chance explains if fewer rows have the same optimum.

        If it is the same optimum, 2 / (growth - 1) times the gain has a chi-squared distribution, whose degrees of
        freedom are the parameters.
        """
        k, growth = np.isfinite(end.log_params).sum(), len(self.problem.y) / len(self.samples[-2].y)
        return bool(2.0 * (end.objective - end.began) > (growth - 1.0) * (k + FAR * math.sqrt(2.0 * k)))


def distinct_optima(ended: Sequence[Start]) -> tuple[list[Start], list[tuple[Start, float]]]:
    """Return one start for each optimum near the best one, and the others with their distance from it in nats."""
    kept: list[Start] = []
    left: list[tuple[Start, float]] = []
    for start in sorted(ended, key=lambda start: -start.objective):
        is_new = bool(kept) and kept[-1].objective - start.objective > AGREEMENT
        gap = kept[0].objective - start.objective if kept and np.isfinite(start.objective) else math.inf
        if not kept or (is_new and gap < FAR_BEHIND):
            kept.append(start)
        else:
            left.append((start, gap))
    return kept, left
