"""Values of models around a fitted one, whose hyperparameters the data allow as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpsift._utils.linalg import NotPositiveDefinite
from gpsift._utils.progress import track
from gpsift.gp.hyperparameters.problem import Problem
from gpsift.gp.inference import InferenceResult
from gpsift.likelihoods import Likelihood
from gpsift.reference.base import DrawRequest, DrawResult, T


def values_around(
    problem: Problem[Any],
    value_of: Callable[[Likelihood, InferenceResult], T],
    asked: DrawRequest[T],
    n_starts: int | None,
) -> DrawResult[T]:
    """The value of a likelihood and a posterior at each draw around the hyperparameters of a problem.

    Draws without a posterior, where no covariance matrix can be factorised, are passed over.
    """
    # Intervals are asked for by few.
    from gpsift._utils.pareto import pareto_shape
    from gpsift.gp.hyperparameters.laplace_approximation import LaplaceApproximation

    approximation = LaplaceApproximation.fit(problem, problem.log_params, n_starts=n_starts)
    drawn = approximation.sample(asked.n + asked.n_unscored, asked.seed)
    values: list[T] = []
    log_ratios: list[float] = []
    used: list[int] = []
    are_enough = False
    for number, draw in enumerate(track(approximation.at(drawn[: asked.n]), asked.n)):
        kernel, likelihood = problem.split(draw.log_params)
        try:
            inferred = problem.engine.infer_at_training_points(kernel, likelihood)
        except NotPositiveDefinite:
            continue
        log_ratios.append(inferred.log_evidence + draw.log_ratio)
        used.append(number)
        values.append(value_of(likelihood, inferred))
        if are_enough := asked.is_enough(drawn[used], values):
            break
    k_hat = pareto_shape(np.array(log_ratios))
    return DrawResult(values, k_hat, drawn[used], drawn[number + 1 :], are_enough)
