"""Draw scores from their posterior: those of models that know the function, for functions drawn from the posterior.

The score of a fitted model is that of its predictions, whose mean is flatter than the function. The true strength of a
feature is the score of a model that knows the function. For each of some draws of the hyperparameters
(`Reference.map_draws`) a few functions are drawn (`Reference.draw_functions`), and scored. The rows are a sample, too:
for each draw of the hyperparameters they are drawn with replacement, as in the bootstrap.

Intervals of 90 % from these draws hold the true strength in about 90 % of data sets. Without the functions, or with the
rows as they are, it is fewer ("True strength" in benchmarks/RESULTS.md).

A measure of the hyperparameters (`ARD`), or of the posterior (`RATE`, `KL` of the latent function), has no value for a
known function. Its draws are the scores of models with drawn hyperparameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from gpsift._utils.pareto import LARGEST_K_HAT
from gpsift._utils.progress import track
from gpsift._utils.warnings import warn
from gpsift.likelihoods.distributions import Gaussian, MultivariateNormal
from gpsift.reference.base import MissingCapability, Reference
from gpsift.reference.inputs import Points
from gpsift.relevance.feature_groups import FeatureGroups
from gpsift.relevance.measure import Measure, apply_measure, scatter_scores
from gpsift.relevance.ranking import BOTH, FUNCTION, HYPERPARAMETERS, ScoreDraws

# The number of draws of the hyperparameters, and of functions for each of them; and of the hyperparameters where no
# functions are drawn.
N_MODELS = 32
N_FUNCTIONS = 8
N_MODELS_ALONE = 128
UNSURE = (
    "The intervals may be off (k-hat {k_hat:z.2f}, above 0.7): the posterior of the hyperparameters is "
    "not as normal as they take it for. To be sure draw them: GP(hyper=NUTS()), or Sift(then=NUTS())."
)
NO_NOISE = (
    "{measure} compares a change of the prediction with the noise of an observation, and this model has no noise: the "
    "strength by it would be infinite. Give the variance of the noise, `as_reference(model, noise=0.01)`, or use VAR() "
    "or Derivative()."
)


def draw_scores(
    model: Reference,
    measure: Measure,
    points: Points,
    groups: FeatureGroups,
    aggregate: Callable[[np.ndarray], np.ndarray],
    seed: int,
) -> ScoreDraws:
    """Draw scores; groups without any of the model's `open_columns` score 0."""
    rng = np.random.default_rng(seed)
    columns = model.open_columns
    kept, open_groups = groups.on_columns(columns)
    open_points = points if len(columns) == points.inputs.n_features else points.on_columns(columns)

    def score(each: Reference) -> np.ndarray:
        if not measure.is_of_function:
            return aggregate(apply_measure(measure, each, open_points, open_groups).values)[None]
        return score_functions(each, measure, open_points, open_groups, aggregate, N_FUNCTIONS, rng)

    try:
        values, k_hat = model.map_draws(score, N_MODELS if measure.is_of_function else N_MODELS_ALONE, seed)
    except MissingCapability:
        if not measure.is_of_function:
            raise
        draws = [
            score_functions(model, measure, points, groups, aggregate, N_FUNCTIONS, rng)
            for _ in track(range(N_MODELS), N_MODELS)
        ]
        return ScoreDraws(np.concatenate(draws), FUNCTION)
    warn_if_unreliable(k_hat)
    scores = scatter_scores(np.concatenate(values), kept, len(groups.columns))
    return ScoreDraws(scores, BOTH if measure.is_of_function else HYPERPARAMETERS, k_hat)


def draw_scores_of_members(
    members: Iterable[Reference],
    n_members: int,
    measure: Measure,
    points: Points,
    groups: FeatureGroups,
    aggregate: Callable[[np.ndarray], np.ndarray],
    seed: int,
) -> ScoreDraws | None:
    """Draw scores of the members of an ensemble; None where only the scores of the members themselves are known."""
    if not measure.is_of_function:
        return None
    rng, n = np.random.default_rng(seed), -(-N_MODELS * N_FUNCTIONS // n_members)
    try:
        draws = [score_functions(each, measure, points, groups, aggregate, n, rng) for each in members]
    except MissingCapability:
        return None
    return ScoreDraws(np.concatenate(draws), BOTH)


def score_functions(
    model: Reference,
    measure: Measure,
    points: Points,
    groups: FeatureGroups,
    aggregate: Callable[[np.ndarray], np.ndarray],
    n: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return the scores of n functions drawn from the posterior of a model, (n, p), at points that are drawn again."""
    points, rows = points.resample_units(rng)
    known = model.draw_functions(n, rng)
    if measure.is_relative_to_noise:
        refuse_without_noise(known[0], measure, points)
    found = [apply_measure(measure, each, points, groups).values for each in track(known, n)]
    return np.array([aggregate(values[rows] if values.ndim == 2 else values) for values in found])


def refuse_without_noise(model: Reference, measure: Measure, points: Points) -> None:
    """Refuse a measure relative to noise, where observations have none, or those of one of several outputs."""
    response = model.at(points)
    latent, observed = (response.distribution(latent=latent) for latent in (True, False))
    is_normal = isinstance(observed, Gaussian | MultivariateNormal)
    if is_normal and np.any(np.all(observed.var <= latent.var, axis=0)):
        raise MissingCapability(NO_NOISE.format(measure=measure.label))


def warn_if_unreliable(k_hat: float) -> None:
    """Warn if draws of hyperparameters are not reliable."""
    if k_hat > LARGEST_K_HAT:
        warn(UNSURE.format(k_hat=k_hat))
