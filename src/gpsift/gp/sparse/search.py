"""Search for the hyperparameters of a sparse model.

1. *Dense inference on a sample of the rows*, from all starts (exact for Gaussian noise, Laplace's method for other
   likelihoods), finds the right region at little cost.
2. *The bound* is maximised from there, again and again, each time from where the last search ended and with inducing
   points picked for it, until the objective no longer grows (Burt, Rasmussen and van der Wilk 2020, section 5.2.2).
   This sees effects that are too weak for the sample. Of very many rows the bound has a larger sample; all of them are
   for the posterior.
3. *Vecchia's evidence*, with Gaussian noise only (`gpsift.gp.sparse.vecchia.evidence`), is maximised from where exact
   inference on a larger sample ends, without the drift towards smooth functions and much noise that too few inducing
   points have on a variational bound. Leave-one-out decides between 2 and 3, and whether the posterior has inducing
   points or is by blocks (`gpsift.gp.sparse.vecchia.block_inference`).

A stepwise selection (`Sift`) is made on the sample of step 1. A few thousand rows hardly see an effect of a percent of
the variance, and a hundred thousand see it clearly. So the features that it has left inactive are activated again
before the evidence of more rows is maximised, and pruned after that where they do not raise it by their penalty.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from gpsift._utils.arrays import to_numpy
from gpsift._utils.grouping import read_groups
from gpsift._utils.notices import notice
from gpsift._utils.rows import Rows
from gpsift._utils.threads import outer_blas_threads_for
from gpsift.gp.hyperparameters import Estimate, Hyper, Problem, Sift, Start
from gpsift.gp.hyperparameters.left_behind import brought_back, idle_back, shorter_where_better
from gpsift.gp.hyperparameters.optimise import SiftReport, SwitchedOn
from gpsift.gp.hyperparameters.sifting import owed_by
from gpsift.gp.inference import ExactEngine
from gpsift.gp.inference.iterated_engine import LaplaceEngine
from gpsift.gp.sparse.bound import BoundEngine
from gpsift.gp.sparse.engine import SparseEngine
from gpsift.gp.sparse.variational import VariationalEngine
from gpsift.gp.sparse.vecchia.evidence import VECCHIA_ROWS, VecchiaEngine
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood

# Rows of the first sample for Laplace's method, whose every evaluation takes some twenty factorisations.
LAPLACE_ROWS = 500
# Rows whose bound is maximised, at most.
SAMPLE_ROWS = 10_000
# With more rows than this, they are searched with the tolerance that follows.
MANY_ROWS = 5000
MANY_ROWS_TOLERANCE = 1e-6
# How often inducing points are picked again, at most.
MAX_PICKS = 5
# Nats that a search has to gain for points to be picked again: for each row, and at least.
GAIN_PER_ROW = 1e-4
LEAST_GAIN = 0.5

S = TypeVar("S", bound=SparseEngine)


@dataclass(frozen=True, eq=False)
class Answer(Generic[S]):
    """Hyperparameters, the problem with the inducing points that go with them, and the evaluations that it took."""

    estimate: Estimate
    problem: Problem[S]
    n_evaluations: int

    @property
    def objective(self) -> float:
        best = self.estimate.best
        assert best is not None
        return best.objective

    @property
    def model(self) -> tuple[Kernel, Likelihood]:
        return self.problem.split(self.estimate.log_params)


class Decision(NamedTuple, Generic[S]):
    """The best answer, the problem as its model is to be inferred, and a log evidence that was seen elsewhere."""

    best: Answer[S]
    problem: Problem[S]
    evidence_bound: float


class SparseSearch(ABC, Generic[S]):
    """The hyperparameters of a sparse model."""

    engine: ClassVar[type[Any]]  # with which problems are posed

    def __init__(self, hyper: Hyper, problem: Problem[S]):
        self.hyper, self.once, self.problem = hyper, hyper.with_one_start(), problem

    def run(self) -> tuple[Estimate, Problem[S]]:
        """The hyperparameters, and the problem with the inducing points that go with them."""
        if not self.hyper.searches:
            estimate = self.hyper.estimate(self.problem)
            decision = self.decided([Answer(estimate, picked(self.problem, estimate.log_params), 0)])
            return estimate, decision.problem
        first = densely_searched(self.hyper, self.dense_problem()).estimate
        answers = self.answers(first)
        best, problem, evidence_bound = self.decided(answers)
        starts = _all_starts(first, best.estimate, sum(answer.n_evaluations for answer in answers))
        estimate = replace(
            best.estimate,
            starts=starts,
            moving_features=first.moving_features,
            evidence_bound=evidence_bound,
            sift=best.estimate.sift or first.sift,
        )
        return estimate, problem

    @abstractmethod
    def dense_problem(self) -> Problem:
        """Dense inference on a sample of the rows."""

    @abstractmethod
    def decided(self, answers: Sequence[Answer[S]]) -> Decision[S]:
        """Which answer is the best, and what is inferred with it."""

    def answers(self, first: Estimate) -> list[Answer[S]]:
        """What is found from the hyperparameters of dense inference."""
        return [self.by_bound(first)]

    def by_bound(self, first: Estimate) -> Answer[S]:
        """The bound maximised on all rows, or on a sample where there are many."""
        problem, engine = self.problem, self.problem.engine
        if engine.source.n > MANY_ROWS:
            problem = replace(problem, tolerance=MANY_ROWS_TOLERANCE)
        if engine.source.n <= SAMPLE_ROWS:
            return self.with_all_features(problem, first)
        rows = engine.source.sample(SAMPLE_ROWS, engine.choice.seed)
        found = self.with_all_features(replace(problem, engine=engine.on(rows)), first)
        estimate = replace(found.estimate, n_rows=rows.n)
        return Answer(estimate, picked(self.problem, estimate.log_params), found.n_evaluations)

    def with_all_features(self, problem: Problem[S], first: Estimate) -> Answer[S]:
        """The better of two searches: the second starts where the first ended, with features that are off brought back.

        Few rows switch off what is too weak for them. The objective is flat there, so that more rows alone would not
        switch it on again. What a sift has left off is brought back before, and let go if it does not pay.
        """
        if (tried := self.tried(first)) is not None:
            found = self.repeated(problem, tried.brought_back(first.log_params))
            return replace(found, estimate=tried.let_go(found.problem, found.estimate))
        found = self.repeated(problem, first.log_params)
        back = idle_back(problem, found.estimate.log_params)
        if problem.engine.source.n <= MANY_ROWS or np.array_equal(back, found.estimate.log_params):
            return found
        return best_of([found, self.repeated(problem, back)])

    def tried(self, first: Estimate) -> Tried | None:
        """What a sift of few rows has left off, where there are more; None if there was no sift."""
        if first.sift is None or self.problem.engine.source.n <= MANY_ROWS:
            return None
        assert isinstance(self.hyper, Sift)
        return Tried(self.hyper, self.problem, first)

    def repeated(self, problem: Problem[S], log_params: np.ndarray) -> Answer[S]:
        """The best of some searches, each with points picked where the last one ended, with the evaluations of all."""
        enough = max(LEAST_GAIN, GAIN_PER_ROW * problem.engine.source.n)
        found: list[Answer[S]] = []
        for _ in range(MAX_PICKS):
            found.append(self.searched(picked(problem, log_params)))
            log_params = found[-1].estimate.log_params
            if len(found) > 1 and found[-1].objective < found[-2].objective + enough:
                break
        return best_of(found)

    def searched(self, problem: Problem[S]) -> Answer[S]:
        """A search from one place, with these inducing points."""
        estimate = self.once.estimate(problem)
        return Answer(estimate, problem, estimate.n_evaluations)


class VariationalSearch(SparseSearch[VariationalEngine]):
    """For likelihoods other than Gaussian noise: by the bound alone, with points that are rows."""

    engine = VariationalEngine

    def dense_problem(self) -> Problem[LaplaceEngine]:
        engine = self.problem.engine
        rows = engine.source.sample(LAPLACE_ROWS, engine.choice.seed)
        X, (y, size) = to_numpy(rows.X), rows.observed()
        return self.problem.with_engine(LaplaceEngine(X, y, size), X=X, y=y, ceiling=np.inf)

    def decided(self, answers: Sequence[Answer[VariationalEngine]]) -> Decision[VariationalEngine]:
        (answer,) = answers
        return Decision(answer, answer.problem, -np.inf)


def densely_searched(hyper: Hyper, problem: Problem) -> Answer[Any]:
    """A search by dense inference, which has the threads of BLAS; rows of a sparse model are visited by our own."""
    with outer_blas_threads_for(len(problem.y)):
        estimate = hyper.estimate(problem)
    return Answer(estimate, problem, estimate.n_evaluations)


def picked(problem: Problem[S], log_params: np.ndarray) -> Problem[S]:
    """The problem with inducing points picked for these hyperparameters, from which its search starts."""
    kernel, _ = problem.split(log_params)
    return replace(problem, engine=problem.engine.picked_for(kernel), start=log_params)


def best_of(found: Sequence[Answer[S]]) -> Answer[S]:
    """The one of largest objective, with the evaluations of all."""
    best = max(found, key=lambda answer: answer.objective)
    return replace(best, n_evaluations=sum(answer.n_evaluations for answer in found))


def _all_starts(first: Estimate, final: Estimate, n_evaluations: int) -> tuple[Start, ...]:
    """What each start reached: the best one in the end, the others as far below it as they were on the sample."""
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


# Rows of the first sample. Exact inference takes a twentieth of a second on them.
FIRST_ROWS = 1000
# Rows of the larger sample for exact inference, which takes half a second an evaluation there.
EXACT_ROWS = 2000
# What inducing points cannot follow becomes noise under the bound, or prior variance that they leave. That they are too
# few is said where they are taken with more than this many times the noise variance that neighbours find, or where they
# leave more than the second, in units of the noise variance.
INFLATED_NOISE = 2.0
LARGE_RESIDUAL = 0.5


def search_for(likelihood: Likelihood) -> type[SparseSearch[Any]]:
    """How the hyperparameters of a sparse model with this likelihood are found."""
    return BoundSearch if likelihood.has_closed_form else VariationalSearch


class BoundSearch(SparseSearch[BoundEngine]):
    """For Gaussian noise."""

    engine = BoundEngine

    def dense_problem(self, n_rows: int | None = None) -> Problem[ExactEngine]:
        engine, likelihood = self.problem.engine, self.problem.likelihood
        rows = engine.source.sample(n_rows or FIRST_ROWS, engine.choice.seed).on_host()
        if rows.noise_var is not None:
            likelihood = likelihood.with_noise_var(rows.noise_var)
        dense = ExactEngine(rows.X, rows.y)
        return self.problem.with_engine(dense, X=rows.X, y=rows.y, likelihood=likelihood, ceiling=np.inf)

    def answers(self, first: Estimate) -> list[Answer[BoundEngine]]:
        by_bound = self.by_bound(first)
        return [by_bound, self.by_neighbours(first, by_bound.estimate)]

    def by_neighbours(self, first: Estimate, by_bound: Estimate) -> Answer[BoundEngine]:
        """Hyperparameters of Vecchia's evidence, which starts from those of exact inference on some rows.

        Few rows have several optima. The search there goes on from the first one, which may have switched features off,
        from the first place of all, where none is (unless a sift has switched them off), and from the bound, which has
        seen more rows. Where that ends and the bound itself are starts, of which the one of largest evidence is taken.
        """
        sampled = self.dense_problem(EXACT_ROWS)
        starts = [first.log_params, *([] if first.sift else [None]), by_bound.log_params]
        found = [densely_searched(self.once, replace(sampled, start=start)).estimate for start in starts]
        engine = self.problem.engine
        rows = engine.source.sample(VECCHIA_ROWS, engine.choice.seed).on_host()
        ends = [each.log_params for each in [*found, by_bound]]
        log_params, tried = max(ends, key=lambda end: self.near(rows, end).log_evidence(end)), self.tried(first)
        start = idle_back(self.problem, log_params) if tried is None else tried.brought_back(log_params)
        found.append(self.once.estimate(self.near(rows, start)))
        log_params = found[-1].log_params
        start = shorter_where_better(self.near(rows, log_params), log_params)
        found.append(self.once.estimate(self.near(rows, start)))  # neighbours are found anew as length-scales move
        log_params = found[-1].log_params
        n_evaluations = sum(each.n_evaluations for each in found)
        estimate = found[-1] if tried is None else tried.let_go(self.near(rows, log_params), found[-1])
        estimate = replace(estimate, n_rows=rows.n, by_neighbours=True)
        return Answer(estimate, picked(self.problem, estimate.log_params), n_evaluations)

    def near(self, rows: Rows, log_params: np.ndarray) -> Problem[VecchiaEngine]:
        """Vecchia's evidence of these rows, with the neighbours that suit these hyperparameters, and a start there."""
        kernel, _ = self.problem.split(log_params)
        engine = VecchiaEngine.near(rows, kernel, self.problem.engine.choice.seed)
        observed = {"X": rows.X, "y": rows.y, "ceiling": np.inf, "tolerance": MANY_ROWS_TOLERANCE}
        return self.problem.with_engine(engine, **observed, start=log_params)

    def decided(self, answers: Sequence[Answer[BoundEngine]]) -> Decision[BoundEngine]:
        scores = [answer.problem.engine.scored(*answer.model) for answer in answers]
        best = max(range(len(answers)), key=lambda k: scores[k][:2])
        answer, engine = answers[best], scores[best].engine
        if len(answers) > 1 and not engine.near_rows:
            _say_if_points_are_too_few(answer, scores[best].residual, by_neighbours=answers[-1])
        objective = max(score.objective for score in scores)
        return Decision(answer, replace(answer.problem, engine=engine), objective)


def _say_if_points_are_too_few(best: Answer[BoundEngine], residual: float, by_neighbours: Answer[BoundEngine]) -> None:
    m, noise = best.problem.engine.choice.m, best.problem.kinds == "noise_var"
    inflation = np.exp(np.sum(best.estimate.log_params[noise] - by_neighbours.estimate.log_params[noise]))
    if inflation > INFLATED_NOISE or residual > LARGE_RESIDUAL:
        notice(
            f"{m} inducing points are too few for this function: the noise variance is {inflation:.1f} "
            f"times what neighbours find on {by_neighbours.estimate.n_rows} rows, and {residual:.1f} times of it the "
            "points leave unexplained. Predictions are less certain than they should be and KL scores too low. Raise "
            "`m`, or let neighbours be taken by leaving out `near_rows`."
        )


# How many units in a row have to pay for shorter length-scales to be taken as paying, too.
ENOUGH_PAYING = 3


class Tried:
    """The units of a sift that more rows are to decide on: all, or those that are on and the steepest of the others."""

    def __init__(self, hyper: Sift, problem: Problem, first: Estimate):
        assert first.sift is not None
        self.hyper, self.problem, self.report = hyper, problem, first.sift
        self.names, self.columns = read_groups(hyper.groups, problem.names)
        features = [feature or "" for _, feature in problem.labels]
        self.params = [np.isin(features, [problem.names[j] for j in each]) for each in self.columns]
        slopes = [max(first.sift.slopes[j] for j in each) for each in self.columns]
        on = [unit for unit, name in enumerate(self.names) if name in first.sift.active]
        others = [int(unit) for unit in np.argsort(slopes)[::-1] if unit not in on]
        self.units = [*on, *others][: max(len(on), hyper.max_active)]

    def on(self, log_params: np.ndarray) -> list[int]:
        """The units that are on with these parameters."""
        return [unit for unit, own in enumerate(self.params) if np.isfinite(log_params[own]).all()]

    def brought_back(self, log_params: np.ndarray) -> np.ndarray:
        """Log parameters with all of these units on, and none of those that are on idle."""
        owned = np.any([self.params[unit] for unit in self.units], axis=0)
        on = np.where(owned & ~np.isfinite(log_params), brought_back(self.problem), log_params)
        return idle_back(self.problem, on)

    def let_go(self, problem: Problem, estimate: Estimate) -> Estimate:
        """The estimate without units that owe more than they bring, beginning with the longest length-scale."""
        is_length, log_params = problem.kinds == "lengthscale", estimate.log_params
        in_units = log_params - problem.log_units
        lengths = {unit: float(in_units[self.params[unit] & is_length].min()) for unit in self.on(log_params)}
        value, paying = problem.log_evidence(log_params), 0
        for unit in sorted(lengths, key=lengths.__getitem__, reverse=True):
            fewer, k = self.without([unit], log_params), len(self.on(log_params))
            left = problem.log_evidence(fewer)
            if value - left <= self.owed(k) - self.owed(k - 1):
                log_params, value, paying = fewer, left, 0
            elif (paying := paying + 1) == ENOUGH_PAYING:
                break
        return replace(estimate, log_params=log_params, sift=self.told(problem, log_params, value))

    def without(self, units: Sequence[int], log_params: np.ndarray) -> np.ndarray:
        """Log parameters with these units off."""
        off = np.where(self.problem.kinds == "lengthscale", np.inf, -np.inf)
        return np.where(np.any([self.params[unit] for unit in units], axis=0), off, log_params)

    def owed(self, k: int) -> float:
        return owed_by(k, len(self.names), self.hyper.toll)

    def told(self, problem: Problem, log_params: np.ndarray, value: float) -> SiftReport:
        """The sift's report with what more rows have switched on, all in one step."""
        report, on = self.report, self.on(log_params)
        new = [unit for unit in on if self.names[unit] not in report.active]
        steps = report.steps
        if new:
            gain = value - problem.log_evidence(self.without(new, log_params))
            names = tuple(self.names[unit] for unit in new)
            steps = (*steps, SwitchedOn(names, gain, self.owed(len(on)) - self.owed(len(on) - len(new))))
        active = tuple(self.names[unit] for unit in on)
        close = tuple(each for each in report.close if each[0] not in active)
        columns = [j for unit in on for j in self.columns[unit]]
        slopes = tuple(-np.inf if j in columns else slope for j, slope in enumerate(report.slopes))
        return SiftReport(steps, active, close, slopes)
