"""Repeated inference for a fitted model: on other rows, or with hyperparameters drawn around its own.

`map_draws` makes the models that intervals of scores need. Their hyperparameters are drawn from a Laplace approximation
around the mode of the evidence, and weighted by Pareto-smoothed importance sampling. A sparse model takes the bound of
some rows, or their Vecchia evidence, and its posteriors are sparse ones of all rows. The inducing points stay the same,
or the nearest rows of each block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from gpsift._utils.arrays import Array, like, to_numpy
from gpsift._utils.linalg import NotPositiveDefinite
from gpsift._utils.progress import track
from gpsift._utils.rows import Rows
from gpsift._utils.threads import blas_threads_for, one_blas_thread
from gpsift.gp import sparse
from gpsift.gp.choose_inference import dense_engine
from gpsift.gp.hyperparameters.problem import Problem
from gpsift.gp.sparse import Sparse, vecchia
from gpsift.likelihoods import Likelihood
from gpsift.reference.base import DrawResult, MissingCapability, Reference, T
from gpsift.reference.inputs import Inputs

FittedModel = Any  # a `FittedGP`, whose file imports this one
# Draws for intervals of a sparse model, at most: each infers a posterior of all rows and scores all points.
SPARSE_DRAWS = 32
# With more rows the posterior of the hyperparameters is hardly ever one of several modes, and searches for others take
# as long as all else.
MANY_ROWS = 500


def condition_on(model: FittedModel, X: np.ndarray, y: np.ndarray, size: np.ndarray) -> FittedModel:
    """Return the model with the same hyperparameters and units, conditioned on other rows.

    Inference is dense. Where the noise of each row was given, the other rows have its mean.
    """
    likelihood = model.likelihood.for_new_rows
    inference = likelihood.default_inference if model.inferred.is_sparse else model.inference
    inputs = like(model.posterior.Z, model.scaling.inputs(X))
    engine = dense_engine(inference, likelihood, _dense_rows(likelihood, inputs, model.scaling.target(y), size))
    return replace(
        model,
        likelihood=likelihood,
        inferred=engine.infer(model.kernel, likelihood),
        inference=inference,
        inputs=Inputs(model.inputs.names, model.inputs.names_given, X),
        y_train=y,
        size_train=size,
        sheet=None,
        sparse_choice=None,
    )


def map_draws(model: FittedModel, function: Callable[[Reference], T], n: int, seed: int) -> DrawResult[T]:
    """Call `function` with models of the open columns whose hyperparameters are drawn, see `Reference.map_draws`.

    Draws whose covariance matrix has no Cholesky factor are skipped.
    """
    from gpsift._utils.pareto import pareto_shape
    from gpsift.gp.hyperparameters.laplace_approximation import LaplaceApproximation

    smaller, problem = open_problem(model)
    is_sparse = model.inferred.is_sparse
    values: list[T] = []
    log_ratios: list[float] = []
    with one_blas_thread() if is_sparse else blas_threads_for(model.n_rows):
        n_starts = 1 if is_sparse or model.n_rows > MANY_ROWS else None
        approximation = LaplaceApproximation.fit(problem, problem.log_params, n_starts=n_starts)
        n = min(n, SPARSE_DRAWS) if is_sparse else n
        for draw in track(approximation.draws(n, seed), n):
            kernel, likelihood = problem.split(draw.log_params)
            try:
                inferred = problem.engine.infer_posterior(kernel, likelihood)
            except NotPositiveDefinite:
                continue
            log_ratios.append(inferred.log_evidence + draw.log_ratio)
            values.append(function(replace(smaller, likelihood=likelihood, inferred=inferred)))
    return DrawResult(values, pareto_shape(np.array(log_ratios)))


def open_problem(model: FittedModel) -> tuple[FittedModel, Problem[Any]]:
    """Return the model of the open columns, and the problem whose evidence its hyperparameters maximise."""
    columns = list(model.open_columns)
    if not model.inferred.is_sparse:
        smaller = model.on_columns(columns)
        if smaller is not None:
            return smaller, dense_problem(smaller)
    if model.inputs.X is None or not model.likelihood.has_closed_form:
        raise MissingCapability(
            "Intervals without a sampler need rows in memory, and of sparse models those with Gaussian noise. Fit "
            "fewer rows, or see `stability`."
        )
    likelihood, posterior = model.likelihood, model.posterior
    X = like(posterior.Z, model.scaling.inputs(model.inputs.X)[:, columns])
    y = like(X, model.scaling.target(model.y_train))
    known = like(X, np.asarray(likelihood.noise_var)) if likelihood.knows_noise else None
    near_rows = posterior.near_rows if isinstance(posterior, vecchia.BlockPosterior) else 0
    kernel = model.kernel.for_columns(columns)
    engine = sparse.IntervalEngine.of(
        Rows(X, y, known),
        kernel,
        model.sparse_choice or Sparse(),  # files of older versions lack it
        Z=None if near_rows else posterior.Z[:, columns],
        near_rows=near_rows,
        by_vecchia=model.report.by_neighbours,
    )
    inputs, scaling = model.inputs.on_columns(columns), model.scaling.on_columns(columns)
    problem = Problem(kernel, likelihood, to_numpy(X), to_numpy(y), engine, inputs.names)
    return replace(model, inputs=inputs, scaling=scaling), problem


def dense_problem(model: FittedModel) -> Problem[Any]:
    """Return the problem whose evidence the hyperparameters of a dense model maximise."""
    X, y = model.posterior.Z, model.scaling.target(model.y_train)
    engine = dense_engine(model.inference, model.likelihood, _dense_rows(model.likelihood, X, y, model.size_train))
    return Problem(model.kernel, model.likelihood, to_numpy(X), y, engine, model.inputs.names)


def _dense_rows(likelihood: Likelihood, X: Array, y: np.ndarray, size: np.ndarray) -> Rows:
    return Rows(X, like(X, y), None, None if likelihood.has_closed_form else size)
