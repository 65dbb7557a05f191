"""Search for the hyperparameters of a sparse model with Gaussian noise, by two ways of which the better one is taken.

*By the bound* is the way of `gpsift.sparse.search`. What is found on a larger sample is an answer of its own, with
inducing points placed for it, from which the search on all rows goes on.

*By a sample.* Exact inference on some rows, from several places, gives the hyperparameters, without the drift towards
smooth functions and much noise that too few inducing points have on a variational bound. The points are then placed
where the sparse posterior is nearest to the exact one (`gpsift.sparse.placing`).

Which of them is better is decided by leave-one-out, and so is whether what the points leave is followed within blocks
of rows (`gpsift.sparse.block_inference`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpsift.arrays import to_numpy
from gpsift.hyper import Estimate, Problem
from gpsift.inference import ExactEngine
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood
from gpsift.notices import notice
from gpsift.sparse.bound_engine import BoundEngine
from gpsift.sparse.rows import Rows
from gpsift.sparse.search import Answer, SparseSearch, VariationalSearch, best_of, densely_searched, picked

# Rows of the first sample. Exact inference takes a twentieth of a second on them.
FIRST_ROWS = 1000
# Rows of the larger sample for exact inference, which takes half a second an evaluation there.
EXACT_ROWS = 2000
# What too few inducing points cannot follow becomes noise under the bound: more than this many times that of exact
# inference on the sample is said.
INFLATED_NOISE = 2.0
# At other hyperparameters it stays prior variance: more of it than this, in units of the noise variance, is said.
LARGE_RESIDUAL = 0.5


def search_for(likelihood: Likelihood) -> type[SparseSearch[Any]]:
    """How the hyperparameters of a sparse model with this likelihood are found."""
    return BoundSearch if likelihood.has_closed_form else VariationalSearch


class BoundSearch(SparseSearch[BoundEngine]):
    """For Gaussian noise."""

    engine = BoundEngine

    def dense_problem(self, n_rows: int | None = None) -> Problem[ExactEngine]:
        engine, likelihood = self.problem.engine, self.problem.likelihood
        rows = engine.source.sample(n_rows or FIRST_ROWS, engine.choice.seed)
        X, y = to_numpy(rows.X), to_numpy(rows.y)
        if rows.noise_var is not None:
            likelihood = likelihood.with_noise_var(to_numpy(rows.noise_var))
        return self.problem.with_engine(ExactEngine(X, y), X=X, y=y, likelihood=likelihood, ceiling=np.inf)

    def answers(self, first: Estimate) -> list[Answer[BoundEngine]]:
        by_bound = self.by_bound(first)
        return [*by_bound, self.by_sample(first, by_bound[0].estimate)]

    def by_sample(self, first: Estimate, by_bound: Estimate) -> Answer[BoundEngine]:
        """Hyperparameters of exact inference on some rows, and inducing points placed for them.

        Few rows have several optima. The search goes on from the first one, which may have switched features off, from
        the first place of all, where none is (unless a sift has switched them off), and from the bound, which has seen
        more rows.
        """
        sampled = self.dense_problem(EXACT_ROWS)
        starts = [first.log_params, *([] if first.sift else [None]), by_bound.log_params]
        best = best_of([densely_searched(self.once, replace(sampled, start=start)) for start in starts])
        estimate = replace(best.estimate, n_rows=len(sampled.y))
        with_picked = picked(self.problem, estimate.log_params)
        return Answer(estimate, placed(with_picked, self.larger_sample()), best.n_evaluations)

    def on_all_rows(
        self, problem: Problem[BoundEngine], on_sample: Answer[BoundEngine], rows: Rows
    ) -> list[Answer[BoundEngine]]:
        """The sample's hyperparameters with inducing points placed for them, and what is found from there.

        The more rows share the points, the more the bound smooths: the first answer stands for itself. All rows are
        searched with its points if they serve them better than those that are picked: they may be too many for the
        sample to place.
        """
        start = on_sample.estimate.log_params
        with_picked = picked(problem, start)
        with_placed = placed(with_picked, rows)
        if _objective(with_placed) > _objective(with_picked):
            then = self.searched(with_placed)
        else:
            then = self.repeated(problem, start)
        return [Answer(replace(on_sample.estimate, n_rows=rows.n), with_placed, on_sample.n_evaluations), then]

    def decided(
        self, answers: Sequence[Answer[BoundEngine]]
    ) -> tuple[Answer[BoundEngine], Problem[BoundEngine], float]:
        scores = [answer.problem.engine.scored(*answer.model) for answer in answers]
        best = max(range(len(answers)), key=lambda k: scores[k][:2])
        answer, engine = answers[best], scores[best].engine
        if len(answers) > 1:
            _say_if_points_are_too_few(answer, by_sample=answers[-1], has_blocks=bool(engine.block_rows))
        return answer, replace(answer.problem, engine=engine), max(score.objective for score in scores)


def placed(problem: Problem[BoundEngine], rows: Rows) -> Problem[BoundEngine]:
    """The problem with its points moved to where they serve the hyperparameters of its start best on some rows."""
    return replace(problem, engine=problem.engine.placed(*_at_start(problem), rows))


def _objective(problem: Problem[BoundEngine]) -> float:
    """What is maximised, but for the prior of hyperparameters, where the search starts."""
    return problem.engine.objective(*_at_start(problem))


def _at_start(problem: Problem[BoundEngine]) -> tuple[Kernel, Likelihood]:
    assert problem.start is not None
    return problem.split(problem.start)


def _say_if_points_are_too_few(best: Answer[BoundEngine], by_sample: Answer[BoundEngine], *, has_blocks: bool) -> None:
    engine, log_params = best.problem.engine, best.estimate.log_params
    noise = best.problem.kinds == "noise_var"
    inflation = np.exp(log_params[noise] - by_sample.estimate.log_params[noise])
    if np.any(inflation > INFLATED_NOISE):
        notice(
            f"The sparse model takes {inflation[0]:.1f} times the noise variance that exact inference finds on "
            f"{by_sample.estimate.n_rows} rows: {engine.choice.m} inducing points are too few for this function. Raise "
            "`m`."
        )
    elif best is by_sample and not has_blocks:
        residual = engine.residual_share(*best.model)
        if residual > LARGE_RESIDUAL:
            notice(
                f"{engine.choice.m} inducing points leave {residual:.1f} times the noise variance of the function "
                "unexplained: they are too few, predictions are less certain than they should be and KL scores too "
                "low. Raise `m`."
            )
