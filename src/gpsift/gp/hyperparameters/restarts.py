"""Length-scales that have lost their gradient are tried again.

The log evidence is nearly flat at a length-scale far beyond the inputs, and a search cannot come back from there. A
search on few rows, or with many features, may leave a feature there that matters. The functions of this file set such
length-scales to values at which the feature acts again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from gpsift.gp.hyperparameters.optimize import AGREEMENT
from gpsift.gp.hyperparameters.problem import E, Problem, parameter_names
from gpsift.gp.hyperparameters.score_tests import Surroundings, bend_scores, hermite_features, inverse_square_slopes
from gpsift.gp.inference import DenseEngine

# In units of the length-scale at which all searches begin: a feature with a longer one than the first is idle, and it
# is brought back at the second, where it hardly acts, yet the gradient sees it.
IDLE = 10.0
BACK = 3.0
# Where features with a longer length-scale than that at which searches begin are tried, in units of that.
SHORTER = (1.0, 0.3)


def brought_back(problem: Problem) -> np.ndarray:
    """Log parameters with which features come back."""
    return problem.log_params + problem.log_units + np.where(problem.kinds == "lengthscale", np.log(BACK), 0.0)


def idle_back(problem: Problem, log_params: np.ndarray) -> np.ndarray:
    """Log parameters with features that are on, but idle, brought back: few rows leave them where all is flat."""
    is_idle = longer(problem, log_params, IDLE) & np.isfinite(log_params)
    return np.where(is_idle, brought_back(problem), log_params)


def shorter_where_better(problem: Problem, log_params: np.ndarray) -> np.ndarray:
    """Log parameters with features that are on and smooth at a shorter length-scale where that has more evidence.

    A search that has much else to find leaves a feature behind where the evidence is nearly flat: on 10,000 rows of
    Protein one that is worth 67 nats.
    """
    best = problem.log_evidence(log_params)
    for place in np.flatnonzero(longer(problem, log_params, 1.0) & np.isfinite(log_params)):
        for factor in SHORTER:
            tried = log_params.copy()
            tried[place] = (problem.log_params + problem.log_units)[place] + np.log(factor)
            if (value := problem.log_evidence(tried)) > best:
                log_params, best = tried, value
    return log_params


def longer(problem: Problem, log_params: np.ndarray, factor: float) -> np.ndarray:
    """Which parameters are length-scales that are longer by this factor than where searches begin."""
    in_units = log_params - problem.log_params - problem.log_units
    return (problem.kinds == "lengthscale") & (in_units > np.log(factor))


# Length-scales, in standard deviations, beyond which a feature has no bends, and at which it is tried.
NO_BENDS = 3.0
TRIED_LENGTHSCALES = (0.5, 1.0, 2.0)
# In standard deviations under noise, the slope of the evidence from which on it is.
STEEP = 4.0


def with_trends(problem: Problem[DenseEngine], log_params: np.ndarray) -> np.ndarray:
    """Log parameters with length-scales brought back of features that are off and have a trend in these rows."""
    longest = np.log(LONGEST_START) + problem.log_units
    far = beyond(problem, log_params, LONGEST_START)
    if not far.any():
        return log_params
    around = surroundings(problem, log_params)
    trends = inverse_square_slopes(around.slope.G, around.K0, problem.X) > 0
    return np.where(far & trends[feature_columns(problem)], longest, log_params)


def with_bends(problem: Problem[DenseEngine], log_params: np.ndarray) -> np.ndarray | None:
    """Log parameters with the best short length-scale of the feature that would bend most; None where none would."""
    far = np.flatnonzero(beyond(problem, log_params, NO_BENDS))
    if far.size == 0:
        return None
    scores = bend_scores(surroundings(problem, log_params), feature_columns(problem)[far].tolist())
    if np.max(scores) < STEEP:
        return None
    steepest = far[np.argmax(scores)]
    tried = np.tile(log_params, (len(TRIED_LENGTHSCALES), 1))
    tried[:, steepest] = np.log(TRIED_LENGTHSCALES) + problem.log_units[steepest]
    return max(tried, key=problem.log_evidence)


def beyond(problem: Problem, log_params: np.ndarray, length: float) -> np.ndarray:
    """Which parameters are length-scales of single features beyond this many standard deviations."""
    is_single = np.array([kind == "lengthscale" and feature is not None for kind, feature in problem.labels])
    return is_single & (log_params - problem.log_units > np.log(length))


def feature_columns(problem: Problem) -> np.ndarray:
    """The column of each parameter's feature, 0 where it has none."""
    column = {name: j for j, name in enumerate(problem.names)}
    return np.array([0 if feature is None else column[feature] for _, feature in problem.labels])


def surroundings(problem: Problem[DenseEngine], log_params: np.ndarray) -> Surroundings:
    """What the model with these parameters leaves."""
    kernel, likelihood = problem.split(log_params)
    radial = [term.between(problem.X, problem.X).K for term in kernel.parts if term.lengthscales]
    slope = problem.engine.slope(kernel, likelihood)
    return Surroundings(slope, np.sum(radial, axis=0), problem.X, hermite_features(problem.X), (), with_pairs=False)


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
