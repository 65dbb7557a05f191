"""Hyperparameters of a sparse model, by two ways of which the better one is taken.

Both begin with dense inference on a sample of the rows, from all starts (exact for Gaussian noise, Laplace's method for
other likelihoods): that finds the right region at little cost.

*By a sample.* Exact inference on a larger sample, from several places, gives the hyperparameters, without the pull
towards smooth functions and much noise that too few inducing points have on a variational bound. The points are then
placed where the sparse posterior is nearest to the exact one (`gpsift.inference.placing`).

*By the bound.* Rounds of the sparse model on all rows, each from where the last one ended and with inducing points
picked for it, until the objective no longer grows (Burt, Rasmussen and van der Wilk 2020, section 5.2.2). This sees
effects that are too weak for the sample. Where there are many rows the rounds are on a larger sample. What they find
there is a third answer, with inducing points placed for it, from which one climb on all rows starts.

Which of them is better is decided by leave-one-out, and so is whether what the points leave unexplained is followed
within cells of rows (`gpsift.inference.local`). Likelihoods other than Gaussian noise have the second way only, and no
cells.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gpsift.arrays import to_numpy
from gpsift.hyper.choices import Hyper
from gpsift.hyper.optimise import Estimate, Start
from gpsift.hyper.problem import Problem
from gpsift.inference import ExactEngine, LaplaceEngine, SparseEngine, VariationalEngine
from gpsift.inference.rows import Rows
from gpsift.inference.sparse_engine import Judged
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood
from gpsift.notices import notice
from gpsift.threads import outer_blas_threads_for

# Rows of the first sample. Exact inference takes a twentieth of a second on so many.
PILOT_ROWS = 1000
# The same for Laplace's method, whose every evaluation takes some twenty factorisations instead of one.
LAPLACE_PILOT_ROWS = 500
# Rows of the larger sample for exact inference, which takes half a second an evaluation there.
EXACT_ROWS = 2000
# Rows on which the sparse model is climbed first where there are so many times more, and inducing points are placed.
SAMPLE_ROWS = 20_000
LEAST_SHARE = 2
# Searches on that sample, and on more than so many rows, end where an iteration gains less than such a share.
SAMPLE_TOLERANCE = 1e-5
MANY_ROWS = 5000
MANY_ROWS_TOLERANCE = 1e-6
MAX_ROUNDS = 5
# In units of the length-scale at which all searches begin, a feature with a longer one than the first of these is
# switched off. It is brought back to the second, where it hardly acts, yet the gradient sees it.
OFF = 10.0
BACK = 3.0
# Nats that a round has to gain for another one to follow: for each row, and at least.
GAIN_PER_ROW = 1e-4
LEAST_GAIN = 0.5
# What too few inducing points cannot follow becomes noise under the bound: so many times that of exact inference on the
# sample is said. At other hyperparameters it stays prior variance: so much of it, in units of the noise, is said.
INFLATED_NOISE = 2.0
UNEXPLAINED = 0.5


@dataclass(frozen=True, eq=False)
class Found:
    """Hyperparameters, the problem with the inducing points that go with them, and the evaluations that it took."""

    estimate: Estimate
    problem: Problem
    n_evaluations: int

    @property
    def engine(self) -> SparseEngine:
        engine = self.problem.engine
        assert isinstance(engine, SparseEngine)
        return engine

    @property
    def objective(self) -> float:
        best = self.estimate.best
        assert best is not None
        return best.objective

    @cached_property
    def judged(self) -> Judged:
        """Leave-one-out, with cells or without."""
        return self.engine.judged(*self.problem.split(self.estimate.log_params))

    @property
    def decided(self) -> Problem:
        """The problem with or without cells, as was judged."""
        return replace(self.problem, engine=self.judged.engine)


def estimate_in_rounds(hyper: Hyper, problem: Problem) -> tuple[Estimate, Problem]:
    """The hyperparameters, and the problem with the inducing points that go with them."""
    engine = problem.engine
    if not isinstance(engine, SparseEngine):
        return hyper.estimate(problem), problem
    has_cells = not isinstance(engine, VariationalEngine)
    if not hyper.searches:
        estimate = hyper.estimate(problem)
        problem = _picked(problem, engine, estimate.log_params)
        return estimate, Found(estimate, problem, 0).decided if has_cells else problem

    pilot = _climbed(hyper, _pilot(problem, engine)).estimate
    once = hyper.with_one_start()
    found = _by_bound(once, problem, engine, pilot)
    if has_cells:
        found = [*found, *_by_sample(once, problem, engine, pilot, found)]
        best = max(found, key=lambda way: way.judged[:2])
        problem, bound = best.decided, max(way.judged.objective for way in found)
        _say_if_points_are_too_few(best, by_sample=found[-1])
    else:
        best, bound = found[-1], -np.inf
        problem = best.problem
    starts = _all_starts(pilot, best.estimate, sum(way.n_evaluations for way in found))
    estimate = replace(best.estimate, starts=starts, moving_features=pilot.moving_features, evidence_bound=bound)
    return estimate, problem


def _by_sample(
    hyper: Hyper, problem: Problem, engine: SparseEngine, pilot: Estimate, by_bound: list[Found]
) -> list[Found]:
    """Hyperparameters of exact inference on some rows, and inducing points placed for them.

    Few rows have several optima. The search goes on from the pilot, which may have switched features off, from the
    first place of all, where none is, and from the bound, which has seen more rows.
    """
    sampled = _pilot(problem, engine, EXACT_ROWS)
    starts = [pilot.log_params, None, *(way.estimate.log_params for way in by_bound[:1])]
    best = _best_of([_climbed(hyper, replace(sampled, start=start)) for start in starts])
    estimate = replace(best.estimate, n_rows=len(sampled.y))
    rows = engine.source.sample(SAMPLE_ROWS, engine.choice.seed)
    return [Found(estimate, _placed(_picked(problem, engine, estimate.log_params), rows), best.n_evaluations)]


def _by_bound(hyper: Hyper, problem: Problem, engine: SparseEngine, pilot: Estimate) -> list[Found]:
    """The bound climbed in rounds on all rows, and first on a sample where there are many.

    The sample's hyperparameters are an answer of their own, with inducing points placed for them: the more rows share
    the points, the more the bound smooths. From there all rows are climbed, with these points if they serve all rows
    better than those that are picked: they may be too many for the sample to place.
    """
    if engine.source.n > MANY_ROWS:
        problem = replace(problem, tolerance=MANY_ROWS_TOLERANCE)
    if engine.source.n <= LEAST_SHARE * SAMPLE_ROWS:
        return [_climb_with_all_features(hyper, problem, engine, pilot.log_params)]
    rows = engine.source.sample(SAMPLE_ROWS, engine.choice.seed)
    on_sample = replace(problem, tolerance=SAMPLE_TOLERANCE), engine.on(rows)
    first = _climb_with_all_features(hyper, *on_sample, pilot.log_params)
    start = first.estimate.log_params
    if isinstance(engine, VariationalEngine):  # whose points are rows
        then = _climb_in_rounds(hyper, problem, engine, start)
        return [replace(then, n_evaluations=then.n_evaluations + first.n_evaluations)]
    picked = _picked(problem, engine, start)
    placed = _placed(picked, rows)
    if _objective(placed) > _objective(picked):
        then = _climbed(hyper, placed)
    else:
        then = _climb_in_rounds(hyper, problem, engine, start)
    return [Found(replace(first.estimate, n_rows=rows.n), placed, first.n_evaluations), then]


def _climb_with_all_features(hyper: Hyper, problem: Problem, engine: SparseEngine, log_params: np.ndarray) -> Found:
    """The better of two climbs: the second starts where the first ended, with features that are off brought back.

    Few rows switch off what is too weak for them. The objective is flat there, so that more rows alone would not switch
    it on again.
    """
    first = _climb_in_rounds(hyper, problem, engine, log_params)
    in_units = first.estimate.log_params - problem.log_params - problem.log_units
    is_off = (problem.kinds == "lengthscale") & (in_units > np.log(OFF))
    if engine.source.n <= MANY_ROWS or not is_off.any():
        return first
    back = first.estimate.log_params + np.where(is_off, np.log(BACK) - in_units, 0.0)
    return _best_of([first, _climb_in_rounds(hyper, problem, engine, back)])


def _climb_in_rounds(hyper: Hyper, problem: Problem, engine: SparseEngine, log_params: np.ndarray) -> Found:
    """The best of some rounds, with the evaluations of all."""
    enough = max(LEAST_GAIN, GAIN_PER_ROW * engine.source.n)
    rounds: list[Found] = []
    for _ in range(MAX_ROUNDS):
        rounds.append(_climbed(hyper, _picked(problem, engine, log_params)))
        log_params = rounds[-1].estimate.log_params
        if len(rounds) > 1 and rounds[-1].objective < rounds[-2].objective + enough:
            break
    return _best_of(rounds)


def _climbed(hyper: Hyper, posed: Problem) -> Found:
    # Rows of a sparse model are visited by threads of our own; dense inference has those of BLAS.
    with nullcontext() if isinstance(posed.engine, SparseEngine) else outer_blas_threads_for(len(posed.y)):
        estimate = hyper.estimate(posed)
    return Found(estimate, posed, estimate.n_evaluations)


def _best_of(climbs: list[Found]) -> Found:
    """The one of largest objective, with the evaluations of all."""
    best = max(climbs, key=lambda climb: climb.objective)
    return replace(best, n_evaluations=sum(climb.n_evaluations for climb in climbs))


def _pilot(problem: Problem, engine: SparseEngine, n_rows: int | None = None) -> Problem:
    """Dense inference on a sample of the rows."""
    if isinstance(engine, VariationalEngine):
        rows = engine.source.sample(n_rows or LAPLACE_PILOT_ROWS, engine.choice.seed)
        X, (y, size) = to_numpy(rows.X), rows.observed()
        return replace(problem, X=X, y=y, engine=LaplaceEngine(X, y, size), ceiling=np.inf)
    rows = engine.source.sample(n_rows or PILOT_ROWS, engine.choice.seed)
    X, y, likelihood = to_numpy(rows.X), to_numpy(rows.y), problem.likelihood
    if rows.noise_var is not None:
        likelihood = likelihood.with_noise_var(to_numpy(rows.noise_var))
    return replace(problem, X=X, y=y, likelihood=likelihood, engine=ExactEngine(X, y), ceiling=np.inf)


def _picked(problem: Problem, engine: SparseEngine, log_params: np.ndarray) -> Problem:
    """The problem with inducing points picked for these hyperparameters, from which its search starts."""
    kernel, _ = problem.split(log_params)
    return replace(problem, engine=engine.at(kernel), start=log_params)


def _placed(picked: Problem, rows: Rows) -> Problem:
    """The same with its points moved to where they serve these hyperparameters best on some rows."""
    engine, kernel, likelihood = _at_start(picked)
    return replace(picked, engine=engine.placed(kernel, likelihood, rows))


def _objective(posed: Problem) -> float:
    """What is climbed, but for the prior of hyperparameters, where the search starts."""
    engine, kernel, likelihood = _at_start(posed)
    return engine.objective(kernel, likelihood)


def _at_start(posed: Problem) -> tuple[SparseEngine, Kernel, Likelihood]:
    assert isinstance(posed.engine, SparseEngine)
    assert posed.start is not None
    return posed.engine, *posed.split(posed.start)


def _say_if_points_are_too_few(best: Found, by_sample: Found) -> None:
    m, log_params = best.engine.choice.m, best.estimate.log_params
    inflation = np.exp((log_params - by_sample.estimate.log_params)[best.problem.kinds == "noise_var"])
    if np.any(inflation > INFLATED_NOISE):
        notice(
            f"The sparse model takes {inflation[0]:.1f} times the noise variance that exact inference finds on "
            f"{by_sample.estimate.n_rows} rows: {m} inducing points are too few for this function. Raise `m`."
        )
    elif best is by_sample and not best.judged.engine.cell_rows:
        unexplained = best.engine.unexplained(*best.problem.split(log_params))
        if unexplained > UNEXPLAINED:
            notice(
                f"{m} inducing points leave {unexplained:.1f} times the noise variance of the function unexplained: "
                "they are too few, predictions are less certain than they should be and KL scores too low. Raise `m`."
            )


def _all_starts(pilot: Estimate, final: Estimate, n_evaluations: int) -> tuple[Start, ...]:
    """What each start reached: the best one in the end, the others as far below it as they were on the sample."""
    best, climbed = pilot.best, final.best
    assert best is not None
    assert climbed is not None
    shift = climbed.objective - best.objective
    return tuple(
        replace(climbed, n_evaluations=start.n_evaluations + n_evaluations)
        if start is best
        else replace(start, objective=start.objective + shift)
        for start in pilot.starts
    )
