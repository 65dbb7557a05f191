r"""How far the data leave scores open: scores of models with other hyperparameters that explain the data as well.

Hyperparameters are drawn from an approximation of their posterior, and a posterior of the function is made for some of
the draws. The scores of the others come from a *linear surrogate*. With r the scores of s draws and u coordinates in
which the posterior of the hyperparameters is nearly normal, regress

.. math:: \sqrt{r} \approx a + b^T u ,

predict the line at the other draws, and map its values to scores by matching the quantiles of the lines and the scores
of the s draws. So 52 draws with posteriors and 460 more end intervals where 128 draws with posteriors do. Residuals of
the regression are not added: they are larger for large scores.

The surrogate is used only if the lines explain the roots of draws that are left out (`is_linear`). They do for KL. They
do not for VAR, whose scores depend less on the hyperparameters.
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

# All draws, those for which a posterior is made at most, and those that are enough where the surrogate serves for the
# others. They fill the posterior evenly: ends of intervals of 128 are as near to those of 4000 draws as with 200
# independent ones.
N_DRAWS = 512
MOST_SCORED = 128
N_SCORED = 52
# Fewer draws than this for each coefficient of a line say nothing about others.
LEAST_EACH = 2.0
# Ridge penalty of the regression: the slope of a coordinate shrinks as by this many draws that show none.
RIDGE = 1.0
# Lines that leave more of the variance of the roots of draws that are left out say less than as many more draws. They
# leave 0.03 to 0.13 of KL scores, and 0.15 to 0.3 of those of VAR, of which their ends are no better than without.
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
    """Score models with drawn hyperparameters; groups without a column that the draws may use score 0."""
    columns = model.open_columns
    kept, fewer = groups.on_columns(columns)
    there = points if len(columns) == points.inputs.n_features else points.on_columns(columns)

    def score(each: Reference) -> np.ndarray:
        return aggregate(apply_measure(measure, each, there, fewer).values)

    def is_enough(coordinates: np.ndarray, found: list[np.ndarray]) -> bool:
        return len(found) == N_SCORED and is_linear(coordinates, np.array(found))

    drawn = model.map_draws(score, DrawRequest(MOST_SCORED, seed, N_DRAWS - MOST_SCORED, is_enough))
    warn_if_unreliable(drawn.k_hat)
    scores = np.array(drawn.values)
    if len(drawn.unscored) and (drawn.stopped or is_linear(drawn.coordinates, scores)):
        scores = add_surrogate_scores(drawn.coordinates, scores, drawn.unscored)
    return ScoreDraws(scatter_scores(scores, kept, len(groups.columns)), drawn.k_hat)


def warn_if_unreliable(k_hat: float) -> None:
    """Warn where draws are not to be trusted."""
    if k_hat > LARGEST_K_HAT:
        warn(UNSURE.format(k_hat=k_hat))


def is_linear(coordinates: np.ndarray, scores: np.ndarray) -> bool:
    """Whether lines through the roots of scores (s, p) of draws at coordinates (s, k) predict the scores of others."""
    n, k = coordinates.shape
    if n < LEAST_EACH * (k + 1):
        return False
    roots = _signed_roots(scores[:, np.ptp(scores, axis=0) > 0])
    if not roots.size:
        return True
    Z, slopes = _regress(coordinates, roots - roots.mean(axis=0))
    # Leave-one-out residuals from the leverages; each draw counts 1 / n for the level, too.
    leverage = 1.0 / n + np.einsum("ij,ji->i", Z, np.linalg.solve(Z.T @ Z + RIDGE * np.eye(k), Z.T))
    residuals = (roots - roots.mean(axis=0) - Z @ slopes) / (1.0 - leverage)[:, None]
    return bool(np.mean(np.mean(residuals**2, axis=0) / roots.var(axis=0)) <= MOST_LEFT)


def add_surrogate_scores(coordinates: np.ndarray, scores: np.ndarray, unscored: np.ndarray) -> np.ndarray:
    """Append the surrogate's scores (m, p) of unscored draws to the scores (s, p) of draws; valid if `is_linear`.

    The draws lie at `coordinates` (s, k) and `unscored` (m, k).
    """
    roots = _signed_roots(scores)
    level = roots.mean(axis=0)
    Z, slopes = _regress(coordinates, roots - level)
    there = (unscored - coordinates.mean(axis=0)) / _spread(coordinates)
    lines = zip((Z @ slopes).T, (roots - level).T, (there @ slopes).T, strict=True)
    found = level + np.array([_match_quantiles(*each) for each in lines]).T
    return np.concatenate([scores, np.where(np.ptp(scores, axis=0) > 0, found * np.abs(found), scores[0])])


def _regress(coordinates: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Standardised coordinates, and the slopes of centred values along them."""
    Z = (coordinates - coordinates.mean(axis=0)) / _spread(coordinates)
    return Z, np.linalg.solve(Z.T @ Z + RIDGE * np.eye(Z.shape[1]), Z.T @ values)


def _spread(coordinates: np.ndarray) -> np.ndarray:
    sd = coordinates.std(axis=0)
    return np.where(sd > 0, sd, 1.0)


def _signed_roots(scores: np.ndarray) -> np.ndarray:
    return np.asarray(np.sign(scores) * np.sqrt(np.abs(scores)))


def _match_quantiles(line: np.ndarray, values: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Map a line's values at other draws to those that have the same quantiles among `values` as these in `line`.

    Beyond the highest line values rise with it. Below the lowest they stay: no score is below 0.
    """
    line, values = np.sort(line), np.sort(values)
    return np.interp(there, line, values) + np.maximum(there - line[-1], 0.0)
