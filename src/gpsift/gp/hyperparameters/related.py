"""Where to start the search for hyperparameters when those of a related model are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from gpsift.gp.hyperparameters.optimise import AGREEMENT
from gpsift.gp.hyperparameters.problem import E, Problem, parameter_names

# A feature that the related model has switched off may matter now, and at an infinite length-scale the likelihood does
# not see it. In units of the inputs' standard deviation.
LONGEST_START = 10.0


def informed(problem: Problem[E], known: Mapping[str, float] | None, ceiling: float | None) -> Problem[E]:
    """The problem with the hyperparameters of a related model, to start from, and what cannot be exceeded."""
    if ceiling is not None:
        problem = replace(problem, ceiling=ceiling)
    return problem if known is None else replace(problem, start=related_start(problem, known))


def related_start(problem: Problem, known: Mapping[str, float]) -> np.ndarray:
    """The log parameters of `problem`, taken from `known` (name -> value) where it has them.

    Features that were switched off there are brought back to where the likelihood sees them, unless the problem's
    ceiling is reached without them.
    """
    start = problem.log_params + problem.log_units
    for i, name in enumerate(parameter_names(problem.labels)):
        if name in known:
            start[i] = np.log(known[name])
    if np.isfinite(problem.ceiling) and problem.evidence(start).value > problem.ceiling - AGREEMENT:
        return start
    longest = np.log(LONGEST_START) + problem.log_units
    return np.where(problem.kinds == "lengthscale", np.minimum(start, longest), start)
