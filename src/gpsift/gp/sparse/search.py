"""Search for the hyperparameters of a sparse model.

It begins with dense inference on a sample of the rows, from all starts (exact for Gaussian noise, Laplace's method for
other likelihoods): that finds the right region at little cost. From there the bound is maximised, again and again, each
time from where the last search ended and with inducing points picked for it, until the objective no longer grows (Burt,
Rasmussen and van der Wilk 2020, section 5.2.2). This sees effects that are too weak for the sample. Of very many rows
the bound has a larger sample; all of them are for the posterior.

Gaussian noise has another way besides (`gpsift.gp.sparse.bound_search`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from gpsift._utils.arrays import to_numpy
from gpsift._utils.threads import outer_blas_threads_for
from gpsift.gp.hyperparameters import Estimate, Hyper, Problem, Sift, Start
from gpsift.gp.hyperparameters.restarts import reactivate
from gpsift.gp.inference.iterated_engine import LaplaceEngine
from gpsift.gp.sparse.engine import SparseEngine
from gpsift.gp.sparse.other_way import OtherWay
from gpsift.gp.sparse.sifted import Tried
from gpsift.gp.sparse.variational_engine import VariationalEngine
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
    """The best answer, the problem as its model is to be inferred, a log evidence that was seen elsewhere, and the way
    that was not taken where there are two.
    """

    best: Answer[S]
    problem: Problem[S]
    evidence_bound: float
    other: OtherWay | None = None


class Searched(NamedTuple, Generic[S]):
    """The hyperparameters, the problem with the inducing points that go with them, and the way that was not taken."""

    estimate: Estimate
    problem: Problem[S]
    other: OtherWay | None


class SparseSearch(ABC, Generic[S]):
    """The hyperparameters of a sparse model."""

    engine: ClassVar[type[Any]]  # with which problems are posed

    def __init__(self, hyper: Hyper, problem: Problem[S]):
        self.hyper, self.once, self.problem = hyper, hyper.with_one_start(), problem

    def run(self) -> Searched[S]:
        if not self.hyper.searches:
            estimate = self.hyper.estimate(self.problem)
            decision = self.decided([Answer(estimate, picked(self.problem, estimate.log_params), 0)])
            return Searched(estimate, decision.problem, decision.other)
        first = densely_searched(self.hyper, self.dense_problem()).estimate
        answers = self.answers(first)
        best, problem, evidence_bound, other = self.decided(answers)
        starts = _all_starts(first, best.estimate, sum(answer.n_evaluations for answer in answers))
        estimate = replace(
            best.estimate,
            starts=starts,
            moving_features=first.moving_features,
            evidence_bound=evidence_bound,
            sift=best.estimate.sift or first.sift,
        )
        return Searched(estimate, problem, other)

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
        back = reactivate(problem, found.estimate.log_params)
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
