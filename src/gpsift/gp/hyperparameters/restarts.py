"""New values for length-scales at which the log evidence has no gradient.

The log evidence is nearly flat at a length-scale far beyond the inputs, and a search does not return from it. A search
on few rows, or with many features, may end at such a length-scale of a relevant feature. `restart` sets it to a value
at which the feature has an effect; each use has a `Restart` with a threshold and values:

- `reactivate`, `shorten_lengthscales`: searches of sparse models, whose first estimate comes from few rows.
- `restart_trends`, `restart_nonlinear`: searches that go on from few rows to more. Score statistics, which exist at an
  infinite length-scale, too, select the features.
- `warm_start`: searches that begin with the hyperparameters of a related model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from gpsift.gp.hyperparameters.optimize import AGREEMENT
from gpsift.gp.hyperparameters.problem import E, Problem, parameter_names
from gpsift.gp.hyperparameters.score_tests import (
    ScoreInputs,
    hermite_features,
    inverse_square_slopes,
    nonlinear_scores,
    radial_covariance_and_slope,
)
from gpsift.gp.inference import DenseInference


@dataclass(frozen=True)
class Restart:
    """Length-scales beyond a threshold are set to the best of some values.

    Both are in standard deviations of the input, or in units of the length-scale at which all searches begin.
    """

    beyond: float
    values: tuple[float, ...]
    in_units_of_start: bool = False

    def log_units(self, problem: Problem) -> np.ndarray:
        return problem.log_units + problem.log_params if self.in_units_of_start else problem.log_units

    def applies(self, problem: Problem, log_params: np.ndarray) -> np.ndarray:
        """Return which parameters are length-scales beyond the threshold."""
        return problem.is_lengthscale & (log_params - self.log_units(problem) > np.log(self.beyond))


# A feature with a length-scale beyond 10 has almost no effect; at 3 the effect is small, but has a gradient.
INACTIVE = Restart(10.0, (3.0,), in_units_of_start=True)
SMOOTH = Restart(1.0, (1.0, 0.3), in_units_of_start=True)
LINEAR = Restart(10.0, (10.0,))
NONLINEAR = Restart(3.0, (0.5, 1.0, 2.0))
# Score statistics from this many standard deviations on are significant.
SIGNIFICANT = 4.0


def restart(
    problem: Problem, log_params: np.ndarray, rule: Restart, where: np.ndarray | bool = True, *, keep: bool = False
) -> np.ndarray:
    """Set the length-scales that a rule applies to, one after the other, to the value of largest evidence.

    `where` limits them to some parameters. With `keep` a length-scale stays as it is if no value has more evidence.
    """
    best = problem.log_evidence(log_params) if keep else -np.inf
    for i in np.flatnonzero(rule.applies(problem, log_params) & where):
        tried = np.tile(log_params, (len(rule.values), 1))
        tried[:, i] = np.log(rule.values) + rule.log_units(problem)[i]
        if len(rule.values) == 1 and not keep:
            log_params = tried[0]
            continue
        evidence = [problem.log_evidence(each) for each in tried]
        if max(evidence) > best or not keep:
            log_params, best = tried[int(np.argmax(evidence))], max(evidence)
    return log_params


def weak_start(problem: Problem) -> np.ndarray:
    """Return initial log parameters, with length-scales at which features have small effects."""
    return problem.log_params + problem.log_units + np.where(problem.is_lengthscale, np.log(INACTIVE.values), 0)


def reactivate(problem: Problem, log_params: np.ndarray) -> np.ndarray:
    """Restart active features with almost no effect, whose evidence is flat after a search on few rows."""
    return restart(problem, log_params, INACTIVE, np.isfinite(log_params))


def shorten_lengthscales(problem: Problem, log_params: np.ndarray) -> np.ndarray:
    """Set active features with long length-scales to shorter ones where that raises the evidence.

    A search of many hyperparameters may stop where the evidence is nearly flat by one of them: on 10,000 rows of the
    Protein data a shorter length-scale gains 67 nats.
    """
    return restart(problem, log_params, SMOOTH, np.isfinite(log_params), keep=True)


def restart_trends(problem: Problem[DenseInference], log_params: np.ndarray) -> np.ndarray:
    """Restart features of negligible effect with a positive slope of the evidence by 1 / l^2 in these rows."""
    far = LINEAR.applies(problem, log_params) & (problem.columns >= 0)
    if not far.any():
        return log_params
    K0, slope = radial_covariance_and_slope(problem, log_params)
    has_trend = inverse_square_slopes(slope.G, K0, problem.X) > 0
    return restart(problem, log_params, LINEAR, far & has_trend[problem.columns])


def restart_nonlinear(problem: Problem[DenseInference], log_params: np.ndarray) -> np.ndarray | None:
    """Restart the feature with the largest score of a nonlinear effect; None where none is significant."""
    far = np.flatnonzero(NONLINEAR.applies(problem, log_params) & (problem.columns >= 0))
    if far.size == 0:
        return None
    K0, slope = radial_covariance_and_slope(problem, log_params)
    inputs = ScoreInputs(slope, K0, problem.X, hermite_features(problem.X))
    scores = nonlinear_scores(inputs, problem.columns[far].tolist())
    if np.max(scores) < SIGNIFICANT:
        return None
    return restart(problem, log_params, NONLINEAR, np.arange(log_params.size) == far[np.argmax(scores)])


def with_warm_start(problem: Problem[E], known: Mapping[str, float] | None, ceiling: float | None) -> Problem[E]:
    """Return the problem with a start from the hyperparameters of a related model, and a ceiling of the evidence."""
    if ceiling is not None:
        problem = replace(problem, ceiling=ceiling)
    return problem if known is None else replace(problem, start=warm_start(problem, known))


def warm_start(problem: Problem, known: Mapping[str, float]) -> np.ndarray:
    """Return log parameters to start from, taken from `known` (name -> value) where it has them.

    Inactive features of the related model restart, unless the problem's ceiling is reached without them.
    """
    start = problem.log_params + problem.log_units
    for i, name in enumerate(parameter_names(problem.labels)):
        if name in known:
            start[i] = np.log(known[name])
    if np.isfinite(problem.ceiling) and problem.evidence(start).value > problem.ceiling - AGREEMENT:
        return start
    return restart(problem, start, LINEAR)
