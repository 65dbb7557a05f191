"""Models around a fitted one: with hyperparameters that the data allow as well, in all columns that may matter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpsift.arrays import to_numpy
from gpsift.drawn import AskedDraws, OverDraws, T
from gpsift.hyper.around import Around
from gpsift.hyper.pareto import pareto_shape
from gpsift.hyper.problem import Problem
from gpsift.linalg import NotPositiveDefinite
from gpsift.progress import counted
from gpsift.reference import MissingCapability, Reference
from gpsift.sparse import AroundEngine, BlockPosterior
from gpsift.threads import blas_threads_for, one_blas_thread

if TYPE_CHECKING:
    from gpsift.gp.fitted import FittedGP

# Draws of intervals of sparse models, at most: each has a posterior of all rows, and scores at all points.
SPARSE_DRAWS = 32


def over_draws(model: FittedGP, of: Callable[[Reference], T], asked: AskedDraws[T]) -> OverDraws[T]:
    """`of` each of some models around one, as `Uncertain.over_draws` says."""
    smaller, problem = open_model(model)
    is_sparse = model.inferred.is_sparse
    n, n_others = (min(asked.n, SPARSE_DRAWS), 0) if is_sparse else (asked.n, asked.n_others)
    found: list[T] = []
    log_ratios: list[float] = []
    used: list[int] = []
    are_enough = False
    with one_blas_thread() if is_sparse else blas_threads_for(model.n_rows):
        around = Around.found(problem, problem.log_params, n_starts=1 if is_sparse else None)
        drawn = around.places(n + n_others, asked.seed)
        for number, draw in enumerate(counted(around.at(drawn[:n]), n)):
            kernel, likelihood = problem.split(draw.log_params)
            try:
                inferred = problem.engine.infer_at_rows(kernel, likelihood)
            except NotPositiveDefinite:
                continue
            log_ratios.append(inferred.log_evidence + draw.log_ratio)
            used.append(number)
            found.append(of(replace(smaller, likelihood=likelihood, inferred=inferred, posterior=inferred.posterior)))
            if are_enough := asked.is_enough(drawn[used], found):
                break
    k_hat = pareto_shape(np.array(log_ratios))
    return OverDraws(found, k_hat, drawn[used], drawn[number + 1 :], are_enough)


def open_model(model: FittedGP) -> tuple[FittedGP, Problem[Any]]:
    """The model of the open columns, as far as it does not depend on hyperparameters, and what these are found by.

    That of a sparse model is the evidence that its fit ended with.
    """
    columns = list(model.open_columns)
    if not model.inferred.is_sparse:
        smaller = model.on_columns(columns)
        if smaller is not None:
            return smaller, smaller.problem
    if model.other is None or model.inputs.X is None:
        raise MissingCapability(
            "Intervals without a sampler need rows in memory, and of sparse models those with Gaussian noise. Fit "
            "fewer rows, or see `stability`."
        )
    rows, by_blocks = model.placed_rows, isinstance(model.posterior, BlockPosterior)
    kernel, X = model.kernel.for_columns(columns), rows.X[:, columns]
    taken = replace(
        model.other,
        # Those of the bound, by which the hyperparameters of either may have been found.
        points=to_numpy(model.other.points if by_blocks else model.posterior.Z)[:, columns],
        near_rows=model.posterior.near.shape[1] if by_blocks else 0,  # type: ignore[attr-defined]
    )
    fitted = taken.engine(replace(rows, X=X))
    engine = AroundEngine.of(fitted, kernel, by_neighbours=model.report.by_neighbours)
    inputs, scaling = model.inputs.on_columns(columns), model.scaling.on_columns(columns)
    smaller = replace(model, inputs=inputs, scaling=scaling, other=None)
    y, names = to_numpy(rows.y), inputs.names
    return smaller, Problem(kernel, model.likelihood, to_numpy(X), y, engine, names)
