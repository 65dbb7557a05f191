"""What moves the prediction of one row, or of some rows, against the average."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpsift.analysis.record import Analysis
from gpsift.relevance import KL, rank


@dataclass(frozen=True, eq=False)
class Explanation:
    """KL relevances of the columns at some rows, and what is predicted there.

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

    @property
    def n_rows(self) -> int:
        return len(self.observed)

    @property
    def order(self) -> np.ndarray:
        """Columns by falling relevance at these rows, those that are not used last."""
        return np.lexsort((-self.scores, ~self.used))


def explain(analysis: Analysis, X: pd.DataFrame, y: np.ndarray) -> Explanation:
    """The relevances at rows in the form of `Analysis.X`, which need not be among those of the fit."""
    options = {"groups": dict(analysis.groups), "categorical": analysis.categories}
    here, everywhere = rank(analysis.model, X, KL(), **options), rank(analysis.model, measure=KL(), **options)  # type: ignore[arg-type]
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
    )
