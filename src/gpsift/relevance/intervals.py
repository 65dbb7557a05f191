r"""Draw scores from their posterior: the scores of models with hyperparameters drawn from their posterior.

Hyperparameters are drawn from an approximation of their posterior, and the function's posterior is computed for some of
the draws. A *linear surrogate* predicts the scores of the others. With r the scores of s draws and u coordinates in
which the posterior of the hyperparameters is nearly normal, regress

.. math:: \sqrt{r} \approx a + b^T u ,

predict by it at the other draws, and map the predictions to scores by matching the quantiles of predictions and scores
of the s draws. With 460 other draws, intervals of 52 draws with posteriors are as accurate as those of 128 such draws.
Residuals of the regression are not added, because they are larger for large scores.

The surrogate is used only if the regression predicts the roots of left-out draws (`is_linear`). It does for KL, but not
for VAR, whose scores depend less on the hyperparameters.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpsift._utils.pareto import LARGEST_K_HAT
from gpsift._utils.warnings import warn
from gpsift.reference.base import DrawRequest, Reference
from gpsift.reference.inputs import Points
from gpsift.relevance.feature_groups import FeatureGroups
from gpsift.relevance.measure import Measure, apply_measure, scatter_scores
from gpsift.relevance.ranking import ScoreDraws

# The number of all draws, the largest number with a posterior, and the number with one if the surrogate predicts the
# others. Draws are quasi-random: intervals of 128 are as close to those of 4000 draws as intervals of 200 independent
# ones.
N_DRAWS = 512
MOST_SCORED = 128
N_SCORED = 52
# The regression needs at least this many draws for each coefficient.
LEAST_EACH = 2.0
# Ridge penalty of the regression, as if this many more draws had slope 0 along each coordinate.
RIDGE = 1.0
# The largest share of the variance of left-out roots that the regression may leave unexplained. It leaves 0.03 to 0.13
# for KL scores, and 0.15 to 0.3 for VAR, whose intervals the surrogate does not improve.
MOST_LEFT = 0.2
UNSURE = (
    "The intervals of the scores may be off (k-hat {k_hat:z.2f}, above 0.7): the posterior of the hyperparameters is "
    "not as normal as they take it for. To be sure draw them: GP(hyper=NUTS()), or Sift(then=NUTS())."
)


def draw_scores(
    model: Reference,
    measure: Measure,
    points: Points,
    groups: FeatureGroups,
    aggregate: Callable[[np.ndarray], np.ndarray],
    seed: int,
) -> ScoreDraws:
    """Score models with drawn hyperparameters; groups without any of the model's `open_columns` score 0."""
    columns = model.open_columns
    kept, open_groups = groups.on_columns(columns)
    open_points = points if len(columns) == points.inputs.n_features else points.on_columns(columns)

    def score(each: Reference) -> np.ndarray:
        return aggregate(apply_measure(measure, each, open_points, open_groups).values)

    def is_enough(coordinates: np.ndarray, found: list[np.ndarray]) -> bool:
        return len(found) == N_SCORED and is_linear(coordinates, np.array(found))

    drawn = model.map_draws(score, DrawRequest(MOST_SCORED, seed, N_DRAWS - MOST_SCORED, is_enough))
    warn_if_unreliable(drawn.k_hat)
    scores = np.array(drawn.values)
    if len(drawn.unscored) and (drawn.stopped or is_linear(drawn.coordinates, scores)):
        scores = add_surrogate_scores(drawn.coordinates, scores, drawn.unscored)
    return ScoreDraws(scatter_scores(scores, kept, len(groups.columns)), drawn.k_hat)


def warn_if_unreliable(k_hat: float) -> None:
    """Warn if draws are not reliable."""
    if k_hat > LARGEST_K_HAT:
        warn(UNSURE.format(k_hat=k_hat))


def is_linear(coordinates: np.ndarray, scores: np.ndarray) -> bool:
    """Whether a linear regression on coordinates (s, k) predicts the roots of scores (s, p) of left-out draws."""
    n, k = coordinates.shape
    if n < LEAST_EACH * (k + 1):
        return False
    roots = _signed_roots(scores[:, np.ptp(scores, axis=0) > 0])
    if not roots.size:
        return True
    Z, slopes = _regress(coordinates, roots - roots.mean(axis=0))
    # Leave-one-out residuals from the leverages, of which the intercept contributes 1 / n.
    leverage = 1.0 / n + np.einsum("ij,ji->i", Z, np.linalg.solve(Z.T @ Z + RIDGE * np.eye(k), Z.T))
    residuals = (roots - roots.mean(axis=0) - Z @ slopes) / (1.0 - leverage)[:, None]
    return bool(np.mean(np.mean(residuals**2, axis=0) / roots.var(axis=0)) <= MOST_LEFT)


def add_surrogate_scores(coordinates: np.ndarray, scores: np.ndarray, unscored: np.ndarray) -> np.ndarray:
    """Append the surrogate's scores (m, p) of draws at `unscored` (m, k) to scores (s, p) at `coordinates` (s, k).

    The surrogate is valid if `is_linear`.
    """
    roots = _signed_roots(scores)
    mean = roots.mean(axis=0)
    Z, slopes = _regress(coordinates, roots - mean)
    Z_unscored = (unscored - coordinates.mean(axis=0)) / _spread(coordinates)
    lines = zip((Z @ slopes).T, (roots - mean).T, (Z_unscored @ slopes).T, strict=True)
    found = mean + np.array([_match_quantiles(*each) for each in lines]).T
    return np.concatenate([scores, np.where(np.ptp(scores, axis=0) > 0, found * np.abs(found), scores[0])])


def _regress(coordinates: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return standardised coordinates, and the slopes of centred values along them."""
    Z = (coordinates - coordinates.mean(axis=0)) / _spread(coordinates)
    return Z, np.linalg.solve(Z.T @ Z + RIDGE * np.eye(Z.shape[1]), Z.T @ values)


def _spread(coordinates: np.ndarray) -> np.ndarray:
    sd = coordinates.std(axis=0)
    return np.where(sd > 0, sd, 1.0)


def _signed_roots(scores: np.ndarray) -> np.ndarray:
    return np.asarray(np.sign(scores) * np.sqrt(np.abs(scores)))


def _match_quantiles(predicted: np.ndarray, values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Map predictions of other draws to the `values` with the same quantiles as these have among `predicted`.

    Above the largest prediction values rise with it. Below the smallest they are constant: no score is below 0.
    """
    predicted, values = np.sort(predicted), np.sort(values)
    return np.interp(others, predicted, values) + np.maximum(others - predicted[-1], 0.0)
