"""How far the data leave scores open: a model of one fit has others around it that explain them as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpsift._utils.pareto import LARGEST_K_HAT
from gpsift._utils.warnings import warn
from gpsift.reference.base import MissingCapability, Reference
from gpsift.reference.ensemble import AskedDraws, Uncertain
from gpsift.reference.inputs import Points
from gpsift.relevance.measure import Measure
from gpsift.relevance.more_draws import are_lines, with_others
from gpsift.relevance.scored import ScoredUnits, relevance_of
from gpsift.relevance.switched import among_all, units_on_columns

# All draws, those for which a posterior is made at most, and those that are enough where the others have their scores
# from lines through these (`more_draws.py`). They fill the posterior evenly: ends of intervals of 128 are as near to
# those of 4000 draws as with 200 independent ones.
N_DRAWS = 512
MOST_SCORED = 128
N_SCORED = 52
UNSURE = (
    "The intervals of the scores may be off (k-hat {k_hat:z.2f}, above 0.7): the posterior of the hyperparameters is "
    "not as normal as they take it for. To be sure draw them: GP(hyper=NUTS()), or Sift(then=NUTS())."
)


class ScoresAround(NamedTuple):
    """Scores (s, p) of models around a fitted one, and the k-hat of these draws."""

    scores: np.ndarray
    k_hat: float


def scores_around(
    model: Reference,
    measure: Measure,
    points: Points,
    units: ScoredUnits,
    aggregated: Callable[[np.ndarray], np.ndarray],
    seed: int,
) -> ScoresAround:
    """With hyperparameters drawn from an approximation of their posterior; of units that are not open they are 0."""
    open_model = uncertain(model)
    columns = open_model.open_columns
    kept, fewer = units_on_columns(units, columns)
    there = points if len(columns) == points.inputs.n_features else points.on_columns(columns)

    def scores(each: Reference) -> np.ndarray:
        values = relevance_of(measure, each, there, fewer).values
        return aggregated(values) if values.ndim == 2 else values

    def is_enough(places: np.ndarray, found: list[np.ndarray]) -> bool:
        return len(found) == N_SCORED and are_lines(places, np.array(found))

    drawn = open_model.over_draws(scores, AskedDraws(MOST_SCORED, seed, N_DRAWS - MOST_SCORED, is_enough))
    tell_if_unsure(drawn.k_hat)
    found = np.array(drawn.values)
    if len(drawn.others) and (drawn.are_enough or are_lines(drawn.places, found)):
        found = with_others(drawn.places, found, drawn.others)
    return ScoresAround(among_all(found, kept, len(units.columns)), drawn.k_hat)


def uncertain(model: Reference) -> Uncertain:
    """The model, if it knows how far the data leave its hyperparameters open; others are refused."""
    if not isinstance(model, Uncertain):
        raise MissingCapability(
            f"{type(model).__name__} does not say how far the data leave its hyperparameters open, which intervals "
            "need. Fit a `GP` of this package, or give the draws of your own sampler to `as_reference`."
        )
    return model


def tell_if_unsure(k_hat: float) -> None:
    """A notice where draws are not to be trusted."""
    if k_hat > LARGEST_K_HAT:
        warn(UNSURE.format(k_hat=k_hat))
