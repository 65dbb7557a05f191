"""Search for the hyperparameters of a sparse model.

1. *Dense inference on a sample of the rows*, from all starts (exact for Gaussian noise, Laplace's method for other
   likelihoods), finds the right region at little cost.
2. *The bound* is maximised repeatedly, each time from the end of the last search and with inducing points picked for
   it, until the objective no longer grows (Burt, Rasmussen and van der Wilk 2020, section 5.2.2). It finds effects that
   are too weak for the sample. With very many rows it is that of a larger sample; only the posterior has all rows.
3. *Vecchia's evidence*, with Gaussian noise only (`gpsift.gp.sparse.vecchia.evidence`), is maximised from the end of
   exact inference on a larger sample. With too few inducing points a variational bound is biased towards smooth
   functions and much noise; this evidence is not. Leave-one-out decides between 2 and 3, and whether the posterior has
   inducing points or is by blocks (`gpsift.gp.sparse.vecchia.block_posterior`).

A stepwise selection (`Sift`) is made on the sample of step 1. An effect of one percent of the variance is hardly
significant on a few thousand rows, and clearly so on a hundred thousand. So its inactive features are activated again
before the evidence of more rows is maximised, and pruned afterwards unless they raise it by their penalty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gpsift._utils.arrays import to_numpy
from gpsift._utils.rows import Rows
from gpsift._utils.threads import outer_blas_threads_for
from gpsift._utils.validation import read_groups
from gpsift._utils.warnings import warn
from gpsift.gp.hyperparameters import Estimate, Hyper, Problem, Sift, Start
from gpsift.gp.hyperparameters.optimize import SiftReport, SwitchedOn
from gpsift.gp.hyperparameters.restarts import reactivate, shorten_lengthscales, weak_start
from gpsift.gp.hyperparameters.stepwise import selection_penalty
from gpsift.gp.inference import DenseInference, ExactInference
from gpsift.gp.inference.laplace import LaplaceInference
from gpsift.gp.sparse.bound import SAMPLE_ROWS, BoundEngine
from gpsift.gp.sparse.engine import SparseEngine
from gpsift.gp.sparse.variational import VariationalEngine
from gpsift.gp.sparse.vecchia.evidence import VECCHIA_ROWS, VecchiaEngine
from gpsift.likelihoods import Likelihood

# Rows of the first sample. Exact inference takes a twentieth of a second on them; every evaluation of Laplace's method
# takes some twenty factorisations.
FIRST_ROWS = 1000
LAPLACE_ROWS = 500
# Rows of the larger sample for exact inference, which takes half a second an evaluation there.
EXACT_ROWS = 2000
# With more rows than this, searches have the tolerance below, and inactive features of the first sample are activated
# again.
MANY_ROWS = 5000
MANY_ROWS_TOLERANCE = 1e-6
# How often inducing points are picked again, at most.
MAX_PICKS = 5
# Points are picked again after a gain of at least this many nats: for each row, and in all.
GAIN_PER_ROW = 1e-4
LEAST_GAIN = 0.5
# There are too few points if the noise variance by the bound is more than this many times that by Vecchia's evidence,
# or if the prior variance that they leave unexplained is more than the second number of noise variances.
INFLATED_NOISE = 2.0
LARGE_RESIDUAL = 0.5
# Pruning ends after this many features in a row that raise the evidence by more than their penalty.
ENOUGH_KEPT = 3


class Candidate(NamedTuple):
    """Hyperparameters, and the problem with the inducing points picked for them."""

    estimate: Estimate
    problem: Problem[Any]

    @property
    def objective(self) -> float:
        best = self.estimate.best
        assert best is not None
        return best.objective


def engine_for(likelihood: Likelihood) -> type[SparseEngine]:
    """Return the engine of sparse inference with a likelihood."""
    return BoundEngine if likelihood.has_closed_form else VariationalEngine


def search_hyperparameters(hyper: Hyper, problem: Problem[SparseEngine]) -> Candidate:
    """Find the hyperparameters of a sparse model, and the problem whose engine infers its posterior."""
    if not hyper.searches:
        estimate = hyper.estimate(problem)
        best, _ = choose([Candidate(estimate, pick_points(problem, estimate.log_params))])
        return best
    first = estimate_densely(hyper, sample_problem(problem))
    candidates = SparseSearch(hyper, problem, first).candidates()
    best, evidence_bound = choose(candidates)
    estimate = replace(
        best.estimate,
        starts=_all_starts(first, best.estimate, sum(each.estimate.n_evaluations for each in candidates)),
        moving_features=first.moving_features,
        evidence_bound=evidence_bound,
        sift=best.estimate.sift or first.sift,
    )
    return Candidate(estimate, best.problem)


class SparseSearch:
    """Searches that start from the estimate of dense inference on a sample of the rows."""

    def __init__(self, hyper: Hyper, problem: Problem[SparseEngine], first: Estimate):
        self.hyper, self.problem, self.first = hyper, problem, first
        self.once = hyper.with_one_start()
        self.source, self.seed = problem.engine.source, problem.engine.choice.seed

    def candidates(self) -> list[Candidate]:
        """Find hyperparameters by the bound and, with Gaussian noise, by Vecchia's evidence."""
        by_bound = self.maximise_bound()
        if not self.problem.likelihood.has_closed_form:
            return [by_bound]
        return [by_bound, self.maximise_vecchia(by_bound.estimate)]

    def maximise_bound(self) -> Candidate:
        """Maximise the bound of all rows, or of a sample where there are many.

        Features that are inactive after a search on few rows are reactivated, because the objective is flat at their
        length-scales: after a stepwise selection before the search, otherwise for a second search.
        """
        problem, rows = self.problem, None
        if self.has_many_rows:
            problem = replace(problem, tolerance=MANY_ROWS_TOLERANCE)
        if self.source.n > SAMPLE_ROWS:
            rows = self.source.sample(SAMPLE_ROWS, self.seed)
            problem = replace(problem, engine=problem.engine.on_rows(rows))
        if self.refinement is not None:
            found = self._maximise(problem, self.refinement.reactivate(self.first.log_params))
            found = found._replace(estimate=self.refinement.prune(found.problem, found.estimate))
        else:
            found = self._maximise(problem, self.first.log_params)
            start = reactivate(problem, found.estimate.log_params)
            if self.has_many_rows and not np.array_equal(start, found.estimate.log_params):
                found = best_of([found, self._maximise(problem, start)])
        if rows is None:
            return found
        estimate = replace(found.estimate, n_rows=rows.n)
        return Candidate(estimate, pick_points(self.problem, estimate.log_params))

    def _maximise(self, problem: Problem[SparseEngine], log_params: np.ndarray) -> Candidate:
        """Return the best of several searches, each with points picked at the end of the last one."""
        enough = max(LEAST_GAIN, GAIN_PER_ROW * problem.engine.source.n)
        found: list[Candidate] = []
        for _ in range(MAX_PICKS):
            picked = pick_points(problem, log_params)
            found.append(Candidate(self.once.estimate(picked), picked))
            log_params = found[-1].estimate.log_params
            if len(found) > 1 and found[-1].objective < found[-2].objective + enough:
                break
        return best_of(found)

    def maximise_vecchia(self, by_bound: Estimate) -> Candidate:
        """Maximise Vecchia's evidence, from the best of several starts.

        Exact inference on a larger sample starts from the first estimate, from the default values (not after a stepwise
        selection) and from the estimate by the bound. Vecchia's evidence is compared at
        these ends and at the estimate by the bound, and the largest is the start. After the first search the rows near
        each block are found again, because length-scales have changed.
        """
        dense = sample_problem(self.problem, EXACT_ROWS)
        starts = [self.first.log_params, *([] if self.first.sift else [None]), by_bound.log_params]
        found = [estimate_densely(self.once, replace(dense, start=start)) for start in starts]
        rows = self.source.sample(VECCHIA_ROWS, self.seed).on_host()
        ends = [each.log_params for each in [*found, by_bound]]
        log_params = max(ends, key=lambda end: self.vecchia_problem(rows, end).log_evidence(end))
        refinement = self.refinement
        start = reactivate(self.problem, log_params) if refinement is None else refinement.reactivate(log_params)
        found.append(self.once.estimate(self.vecchia_problem(rows, start)))
        log_params = found[-1].log_params
        start = shorten_lengthscales(self.vecchia_problem(rows, log_params), log_params)
        found.append(self.once.estimate(self.vecchia_problem(rows, start)))
        estimate = with_evaluations_of(found[-1], found)
        if refinement is not None:
            estimate = refinement.prune(self.vecchia_problem(rows, estimate.log_params), estimate)
        estimate = replace(estimate, n_rows=rows.n, by_neighbours=True)
        return Candidate(estimate, pick_points(self.problem, estimate.log_params))

    def vecchia_problem(self, rows: Rows, log_params: np.ndarray) -> Problem[VecchiaEngine]:
        """Return the problem of Vecchia's evidence, with the near rows that suit these hyperparameters as its start."""
        kernel, _ = self.problem.split(log_params)
        engine = VecchiaEngine.for_kernel(rows, kernel, self.seed)
        observed = {"X": rows.X, "y": rows.y, "ceiling": np.inf, "tolerance": MANY_ROWS_TOLERANCE}
        return self.problem.with_engine(engine, **observed, start=log_params)

    @property
    def has_many_rows(self) -> bool:
        return self.source.n > MANY_ROWS

    @cached_property
    def refinement(self) -> StepwiseRefinement | None:
        """The stepwise selection of the first sample, where there are more rows to refine it."""
        if self.first.sift is None or not self.has_many_rows:
            return None
        assert isinstance(self.hyper, Sift)
        return StepwiseRefinement(self.hyper, self.problem, self.first.sift)


def choose(candidates: Sequence[Candidate]) -> tuple[Candidate, float]:
    """Return the candidate that predicts best by leave-one-out, and the largest bound of all candidates.

    With Gaussian noise its posterior has inducing points or is by blocks, whichever predicts better.
    """
    if not isinstance(candidates[0].problem.engine, BoundEngine):
        return candidates[0], -np.inf
    scores = [each.problem.engine.score(*each.problem.split(each.estimate.log_params)) for each in candidates]
    best = max(range(len(candidates)), key=lambda k: scores[k][:2])
    (estimate, problem), engine = candidates[best], scores[best].engine
    if len(candidates) > 1 and not engine.near_rows:
        _warn_if_points_are_too_few(candidates[best], scores[best].residual, candidates[-1].estimate)
    return Candidate(estimate, replace(problem, engine=engine)), max(score.objective for score in scores)


def sample_problem(problem: Problem[SparseEngine], n_rows: int = 0) -> Problem[DenseInference]:
    """Return the problem of dense inference on a sample of the rows, of this size or of the default one."""
    engine, likelihood = problem.engine, problem.likelihood
    if not likelihood.has_closed_form:
        rows = engine.source.sample(n_rows or LAPLACE_ROWS, engine.choice.seed)
        X, (y, size) = to_numpy(rows.X), rows.targets_and_sizes()
        return problem.with_engine(LaplaceInference(X, y, size), X=X, y=y, ceiling=np.inf)
    rows = engine.source.sample(n_rows or FIRST_ROWS, engine.choice.seed).on_host()
    if rows.noise_var is not None:
        likelihood = likelihood.with_noise_var(rows.noise_var)
    dense = ExactInference(rows.X, rows.y)
    return problem.with_engine(dense, X=rows.X, y=rows.y, likelihood=likelihood, ceiling=np.inf)


def estimate_densely(hyper: Hyper, problem: Problem[DenseInference]) -> Estimate:
    """Search by dense inference, with threads of BLAS instead of those of passes over rows."""
    with outer_blas_threads_for(len(problem.y)):
        return hyper.estimate(problem)


def pick_points(problem: Problem[SparseEngine], log_params: np.ndarray) -> Problem[SparseEngine]:
    """Return the problem with inducing points picked for these hyperparameters, and these as its start."""
    kernel, _ = problem.split(log_params)
    return replace(problem, engine=problem.engine.pick_points(kernel), start=log_params)


def best_of(found: Sequence[Candidate]) -> Candidate:
    """Return the candidate of largest objective, with the evaluations of all."""
    best = max(found, key=lambda candidate: candidate.objective)
    return best._replace(estimate=with_evaluations_of(best.estimate, [each.estimate for each in found]))


def with_evaluations_of(estimate: Estimate, found: Sequence[Estimate]) -> Estimate:
    """Return the estimate with the evaluations of all searches that led to it."""
    best = estimate.best
    assert best is not None
    return replace(estimate, starts=(replace(best, n_evaluations=sum(each.n_evaluations for each in found)),))


def _all_starts(first: Estimate, final: Estimate, n_evaluations: int) -> tuple[Start, ...]:
    """Return the starts on the sample, shifted so that the best one has the objective of the final search."""
    best, reached = first.best, final.best
    assert best is not None
    assert reached is not None
    shift = reached.objective - best.objective
    return tuple(
        replace(reached, n_evaluations=start.n_evaluations + n_evaluations)
        if start is best
        else replace(start, objective=start.objective + shift)
        for start in first.starts
    )


def _warn_if_points_are_too_few(best: Candidate, residual: float, by_vecchia: Estimate) -> None:
    m, noise = best.problem.engine.choice.m, best.problem.is_noise_var
    inflation = np.exp(np.sum(best.estimate.log_params[noise] - by_vecchia.log_params[noise]))
    if inflation > INFLATED_NOISE or residual > LARGE_RESIDUAL:
        warn(
            f"{m} inducing points are too few for this function: the noise variance is {inflation:z.1f} "
            f"times what neighbours find on {by_vecchia.n_rows} rows, and {residual:z.1f} times of it the "
            "points leave unexplained. Predictions are less certain than they should be and KL scores too low. Raise "
            "`m`, or let neighbours be taken by leaving out `near_rows`."
        )


class StepwiseRefinement:
    """A second stepwise selection on more rows, by reactivation and pruning.

    Its units are features or groups: the active ones of the first selection, and of the others those of largest score
    statistic, up to `max_active` in all.
    """

    def __init__(self, hyper: Sift, problem: Problem[Any], report: SiftReport):
        self.hyper, self.problem, self.report = hyper, problem, report
        self.names, self.columns = read_groups(hyper.groups, problem.names)
        features = [feature or "" for _, feature in problem.labels]
        self.params = [np.isin(features, [problem.names[j] for j in each]) for each in self.columns]
        slopes = [max(report.slopes[j] for j in each) for each in self.columns]
        active = [unit for unit, name in enumerate(self.names) if name in report.active]
        others = [int(unit) for unit in np.argsort(slopes)[::-1] if unit not in active]
        self.units = [*active, *others][: max(len(active), hyper.max_active)]

    def active(self, log_params: np.ndarray) -> list[int]:
        return [unit for unit, own in enumerate(self.params) if np.isfinite(log_params[own]).all()]

    def reactivate(self, log_params: np.ndarray) -> np.ndarray:
        """Return log parameters with all of these units active, at length-scales where the evidence has a gradient."""
        owned = np.any([self.params[unit] for unit in self.units], axis=0)
        active = np.where(owned & ~np.isfinite(log_params), weak_start(self.problem), log_params)
        return reactivate(self.problem, active)

    def prune(self, problem: Problem[Any], estimate: Estimate) -> Estimate:
        """Drop units that raise the evidence by less than their penalty, beginning with the longest length-scale."""
        log_params, is_length = estimate.log_params, problem.is_lengthscale
        in_units = log_params - problem.log_units
        lengths = {unit: float(in_units[self.params[unit] & is_length].min()) for unit in self.active(log_params)}
        value, n_kept = problem.log_evidence(log_params), 0
        for unit in sorted(lengths, key=lengths.__getitem__, reverse=True):
            fewer, k = self.without([unit], log_params), len(self.active(log_params))
            left = problem.log_evidence(fewer)
            if value - left <= self.penalty(k) - self.penalty(k - 1):
                log_params, value, n_kept = fewer, left, 0
            elif (n_kept := n_kept + 1) == ENOUGH_KEPT:
                break
        return replace(estimate, log_params=log_params, sift=self._refined_report(problem, log_params, value))

    def without(self, units: Sequence[int], log_params: np.ndarray) -> np.ndarray:
        """Return log parameters with these units inactive."""
        return np.where(np.any([self.params[unit] for unit in units], axis=0), self.problem.log_absent, log_params)

    def penalty(self, k: int) -> float:
        return selection_penalty(k, len(self.names), self.hyper.toll)

    def _refined_report(self, problem: Problem[Any], log_params: np.ndarray, value: float) -> SiftReport:
        """Return the selection's report with the units that more rows have activated, all in one step."""
        report, active = self.report, self.active(log_params)
        new = [unit for unit in active if self.names[unit] not in report.active]
        steps = report.steps
        if new:
            gain = value - problem.log_evidence(self.without(new, log_params))
            names = tuple(self.names[unit] for unit in new)
            penalty = self.penalty(len(active)) - self.penalty(len(active) - len(new))
            steps = (*steps, SwitchedOn(names, gain, penalty))
        active_names = tuple(self.names[unit] for unit in active)
        columns = [j for unit in active for j in self.columns[unit]]
        slopes = tuple(-np.inf if j in columns else slope for j, slope in enumerate(report.slopes))
        return SiftReport(
            steps, active_names, tuple(each for each in report.close if each[0] not in active_names), slopes
        )
