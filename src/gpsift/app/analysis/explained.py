"""What moves the prediction of one row, or of some rows, against the average."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from gpsift.app.analysis.record import Analysis
from gpsift.app.analysis.shape import unit_options
from gpsift.decomposition.shapley import Attribution
from gpsift.decomposition.shapley import explain as taken_apart
from gpsift.reference.base import MissingCapability
from gpsift.relevance import KL, rank


@dataclass(frozen=True, eq=False)
class Explanation:
    """KL relevances of the columns at some rows, what is predicted there, and what each column adds to that.

    `moves_mean` and `moves_variance` are shares of the squared relevance; None where predictions have no such parts.
    """

    names: tuple[str, ...]
    scores: np.ndarray
    average: np.ndarray  # over all rows of the model
    used: np.ndarray  # whether the model uses the column at all
    moves_mean: np.ndarray | None
    moves_variance: np.ndarray | None
    prediction: np.ndarray  # means (n,), or probabilities of several classes (n, C)
    sd: np.ndarray
    observed: np.ndarray
    apart: Attribution | None = None  # the predictions taken apart, where the model has that in closed form

    @property
    def n_rows(self) -> int:
        return len(self.observed)

    @property
    def order(self) -> np.ndarray:
        """Columns by falling relevance at these rows, those that are not used last."""
        return np.lexsort((-self.scores, ~self.used))

    @property
    def added(self) -> np.ndarray | None:
        """What each column adds to the prediction on average over these rows, (p,)."""
        return None if self.apart is None else self.apart.values.mean(axis=0)

    @property
    def shown_order(self) -> np.ndarray:
        """Columns by the size of what they add, where that is known; else by relevance."""
        return self.order if self.added is None else np.lexsort((-np.abs(self.added), ~self.used))


def explain(analysis: Analysis, X: pd.DataFrame, y: np.ndarray) -> Explanation:
    """The relevances at rows in the form of `Analysis.X`, which need not be among those of the fit."""
    options = unit_options(analysis)
    here, everywhere = rank(analysis.model, X, KL(), **options), rank(analysis.model, measure=KL(), **options)
    shares = here.shares
    prediction = analysis.model.predict(X)
    return Explanation(
        names=here.names,
        scores=here.scores,
        average=everywhere.scores,
        used=np.ones(len(here.names), dtype=bool) if here.used is None else here.used,
        moves_mean=shares.get("mean"),
        moves_variance=shares.get("variance"),
        prediction=prediction.mean,
        sd=np.sqrt(prediction.var),
        observed=np.asarray(y),
        apart=_apart(analysis, X, here.names),
    )


def _apart(analysis: Analysis, X: pd.DataFrame, names: tuple[str, ...]) -> Attribution | None:
    """The rows taken apart into what each of these columns adds; None where the model has no closed form of that."""
    try:
        found = taken_apart(analysis.model, X, **unit_options(analysis))
    except MissingCapability:
        return None
    places = {name: place for place, name in enumerate(found.names)}
    kept = np.array([places.get(name, -1) for name in names])
    # Of many columns those that are not used are not told of. They add nothing: the last column of zeros is theirs.
    nothing = np.zeros((len(X), 1))
    values, sd, points = (np.hstack([each, nothing])[:, kept] for each in (found.values, found.sd, found.points))
    return replace(found, names=names, values=values, sd=sd, points=points)
