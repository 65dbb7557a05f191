"""Features that a search has let go although they matter.

A length-scale far beyond the inputs has no slope that a search could follow. Two things are seen there nevertheless.
The slope of the evidence by 1 / l^2 is there at an infinite length-scale, too (`gpsift.gp.hyperparameters.screening`):
a feature with a trend that more rows see is brought back. A feature that bends what the others leave, without a trend
of its own (`gpsift.gp.hyperparameters.nearness`), is tried at short length-scales.
"""

from __future__ import annotations

import numpy as np

from gpsift.gp.hyperparameters.nearness import Surroundings, bend_scores
from gpsift.gp.hyperparameters.problem import Problem
from gpsift.gp.hyperparameters.related import LONGEST_START
from gpsift.gp.hyperparameters.screening import hermite_features, inverse_square_slopes
from gpsift.gp.inference import DenseInference

# Length-scales, in standard deviations, beyond which a feature has no bends, and at which it is tried.
NO_BENDS = 3.0
TRIED_LENGTHSCALES = (0.5, 1.0, 2.0)
# In standard deviations under noise, the slope of the evidence from which on it is.
STEEP = 4.0


def with_trends(problem: Problem[DenseInference], log_params: np.ndarray) -> np.ndarray:
    """Log parameters with length-scales brought back of features that are off and have a trend in these rows."""
    longest = np.log(LONGEST_START) + problem.log_units
    far = beyond(problem, log_params, LONGEST_START)
    if not far.any():
        return log_params
    around = surroundings(problem, log_params)
    trends = inverse_square_slopes(around.slope.G, around.K0, problem.X) > 0
    return np.where(far & trends[feature_columns(problem)], longest, log_params)


def with_bends(problem: Problem[DenseInference], log_params: np.ndarray) -> np.ndarray | None:
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


def surroundings(problem: Problem[DenseInference], log_params: np.ndarray) -> Surroundings:
    """What the model with these parameters leaves."""
    kernel, likelihood = problem.split(log_params)
    radial = [term.between(problem.X, problem.X).K for term in kernel.parts if term.lengthscales]
    slope = problem.engine.slope(kernel, likelihood)
    return Surroundings(slope, np.sum(radial, axis=0), problem.X, hermite_features(problem.X), (), with_pairs=False)
