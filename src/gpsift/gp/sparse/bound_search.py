"""Search for the hyperparameters of a sparse model with Gaussian noise, by two ways of which the better one is taken.

*By the bound* is the way of `gpsift.gp.sparse.search`: inducing points stand for the rows. It suits smooth functions
with much noise.

*By neighbours.* Exact inference on some rows, from several places, finds the region, and Vecchia's evidence
(`gpsift.gp.sparse.vecchia.vecchia`) the hyperparameters, without the drift towards smooth functions and much noise that
too few inducing points have on a variational bound.

Leave-one-out decides which of them is better, and whether the posterior has inducing points or is by neighbours itself
(`gpsift.gp.sparse.vecchia.block_inference`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpsift._utils.arrays import to_numpy
from gpsift._utils.notices import notice
from gpsift._utils.rows import Rows
from gpsift.gp.hyperparameters import Estimate, Problem
from gpsift.gp.hyperparameters.restarts import reactivate, shorten_lengthscales
from gpsift.gp.inference import ExactEngine
from gpsift.gp.sparse.bound_engine import BoundEngine
from gpsift.gp.sparse.other_way import OtherWay
from gpsift.gp.sparse.search import (
    MANY_ROWS_TOLERANCE,
    Answer,
    Decision,
    SparseSearch,
    VariationalSearch,
    densely_searched,
    picked,
)
from gpsift.gp.sparse.vecchia.block_inference import usual_near_rows
from gpsift.gp.sparse.vecchia.vecchia import VECCHIA_ROWS, VecchiaEngine
from gpsift.likelihoods import Likelihood

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
        start = reactivate(self.problem, log_params) if tried is None else tried.brought_back(log_params)
        found.append(self.once.estimate(self.near(rows, start)))
        log_params = found[-1].log_params
        start = shorten_lengthscales(self.near(rows, log_params), log_params)
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
        return Decision(answer, replace(answer.problem, engine=engine), objective, not_taken(answers, engine))


def not_taken(answers: Sequence[Answer[BoundEngine]], engine: BoundEngine) -> OtherWay:
    """Inducing points with the bound's hyperparameters where the posterior is by neighbours, neighbours otherwise."""
    other, near_rows = (answers[0], 0) if engine.near_rows else (answers[-1], usual_near_rows(engine.n_kept))
    points, estimate = to_numpy(other.problem.engine.Z), other.estimate
    return OtherWay(estimate.log_params, points, near_rows, estimate.n_rows, engine.choice, estimate.by_neighbours)


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
