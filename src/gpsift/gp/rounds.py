"""Hyperparameters of a sparse model, in rounds: inducing points for the hyperparameters, then the other way round.

The search begins with dense inference on a sample of the rows, from all starts (exact for Gaussian noise, Laplace's
method for other likelihoods): that finds the right region at little cost, and without the pull towards smooth functions
that ill-placed inducing points have on a variational bound. Then come rounds of the sparse model, each from where the
last one ended and with inducing points picked for it, until the objective no longer grows (Burt, Rasmussen and van der
Wilk 2020, section 5.2.2): on a larger sample where there are many rows, and on all of them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpsift.arrays import to_numpy
from gpsift.gp.hyper import MAP, ML2, Hyper
from gpsift.gp.optimise import Estimate, Start
from gpsift.gp.problem import Problem
from gpsift.inference import ExactEngine, LaplaceEngine, SparseEngine, VariationalEngine
from gpsift.likelihoods import KnownNoise
from gpsift.notices import notice

# Rows of the sample. Exact inference takes a twentieth of a second on so many.
PILOT_ROWS = 1000
# The same for Laplace's method, whose every evaluation takes some twenty factorisations instead of one.
LAPLACE_PILOT_ROWS = 500
# Rows of a second, larger sample, on which the sparse model is climbed first where there are so many times more.
SAMPLE_ROWS = 20_000
LEAST_SHARE = 2
# Searches on that sample, and on more than so many rows, end where an iteration gains less than such a share.
SAMPLE_TOLERANCE = 1e-5
MANY_ROWS = 5000
MANY_ROWS_TOLERANCE = 1e-6
MAX_ROUNDS = 5
# Nats that a round has to gain for another one to follow: for each row, and at least.
GAIN_PER_ROW = 1e-4
LEAST_GAIN = 0.5
# What too few inducing points cannot follow becomes noise: so many times that of exact inference on the sample is said.
INFLATED_NOISE = 2.0


def estimate_in_rounds(hyper: Hyper, problem: Problem) -> tuple[Estimate, Problem]:
    """The hyperparameters, and the problem with the inducing points that go with them."""
    engine = problem.engine
    if not isinstance(engine, SparseEngine):
        return hyper.estimate(problem), problem
    if not isinstance(hyper, ML2 | MAP):
        estimate = hyper.estimate(problem)
        return estimate, _repicked(problem, engine, estimate.log_params)

    pilot = hyper.estimate(_pilot(problem, engine))
    once = replace(hyper, starts=1)
    log_params, n_before = pilot.log_params, 0
    if engine.source.n > MANY_ROWS:
        problem = replace(problem, tolerance=MANY_ROWS_TOLERANCE)
    if engine.source.n > LEAST_SHARE * SAMPLE_ROWS:
        sample = engine.on(engine.source.sample(SAMPLE_ROWS, engine.choice.seed))
        rough = replace(problem, tolerance=SAMPLE_TOLERANCE)
        estimate, _, n_before = _climb_in_rounds(once, rough, sample, log_params)
        log_params = estimate.log_params
    estimate, posed, n_evaluations = _climb_in_rounds(once, problem, engine, log_params)
    n_evaluations += n_before
    inflation = np.exp((estimate.log_params - pilot.log_params)[problem.kinds == "noise_var"])
    if np.any(inflation > INFLATED_NOISE):
        notice(
            f"The sparse model takes {inflation[0]:.1f} times the noise variance that exact inference finds on "
            f"{PILOT_ROWS} rows: {engine.choice.m} inducing points are too few for this function. Raise `m`."
        )
    return replace(
        estimate, starts=_all_starts(pilot, estimate, n_evaluations), moving_features=pilot.moving_features
    ), posed


def _climb_in_rounds(
    hyper: Hyper, problem: Problem, engine: SparseEngine, log_params: np.ndarray
) -> tuple[Estimate, Problem, int]:
    """The best of some rounds, its problem, and the evaluations of all."""
    enough = max(LEAST_GAIN, GAIN_PER_ROW * engine.source.n)
    rounds: list[tuple[Start, Estimate, Problem]] = []
    for _ in range(MAX_ROUNDS):
        posed = _repicked(problem, engine, log_params)
        estimate = hyper.estimate(posed)
        (climb,) = estimate.starts
        rounds.append((climb, estimate, posed))
        log_params = climb.log_params
        if len(rounds) > 1 and climb.objective < rounds[-2][0].objective + enough:
            break
    _, estimate, posed = max(rounds, key=lambda entry: entry[0].objective)
    return estimate, posed, sum(climb.n_evaluations for climb, _, _ in rounds)


def _pilot(problem: Problem, engine: SparseEngine) -> Problem:
    """Dense inference on a sample of the rows."""
    if isinstance(engine, VariationalEngine):
        rows = engine.source.sample(LAPLACE_PILOT_ROWS, engine.choice.seed)
        X, y, size = to_numpy(rows.X), to_numpy(rows.y), to_numpy(rows.size)
        return replace(problem, X=X, y=y, engine=LaplaceEngine(X, y, size), ceiling=np.inf)
    rows = engine.source.sample(PILOT_ROWS, engine.choice.seed)
    X, y, likelihood = to_numpy(rows.X), to_numpy(rows.y), problem.likelihood
    if rows.noise_var is not None:
        likelihood = KnownNoise(to_numpy(rows.noise_var))
    return replace(problem, X=X, y=y, likelihood=likelihood, engine=ExactEngine(X, y), ceiling=np.inf)


def _repicked(problem: Problem, engine: SparseEngine, log_params: np.ndarray) -> Problem:
    """The problem with inducing points for these hyperparameters, from which its search starts."""
    kernel, _ = problem.split(log_params)
    return replace(problem, engine=engine.at(kernel), start=log_params)


def _all_starts(pilot: Estimate, final: Estimate, n_evaluations: int) -> tuple[Start, ...]:
    """What each start reached: the best one on all rows, the others as far below it as they were on the sample."""
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
