"""What moves the prediction of one row, or of some rows, against the average."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpsift.analysis.record import Analysis
from gpsift.relevance import KL, rank


@dataclass(frozen=True, eq=False)
class Explanation:
    """Relevances at some rows.

    Attributes
    ----------
    names : tuple of str
        The columns.
    scores, average : array (p,)
        KL relevance at the rows, and over all rows of the model.
    moves_mean, moves_variance : array (p,) or None
        How much of the squared relevance at the rows is in each; None where predictions have no such parts.
    n_rows : int
    prediction, observed : array (n,), or (n, C) for classes
        Means of the predictive distribution there, and what was observed (n,).
    sd : array
        Its standard deviation.
    """

    names: tuple[str, ...]
    scores: np.ndarray
    average: np.ndarray
    moves_mean: np.ndarray | None
    moves_variance: np.ndarray | None
    prediction: np.ndarray
    sd: np.ndarray
    observed: np.ndarray

    @property
    def n_rows(self) -> int:
        return len(self.observed)

    @property
    def order(self) -> np.ndarray:
        """Columns by falling relevance at these rows."""
        return np.argsort(-self.scores, kind="stable")


def explain(analysis: Analysis, X: pd.DataFrame, y: np.ndarray) -> Explanation:
    """The relevances at the rows of X, as the model of an analysis sees them.

    Parameters
    ----------
    analysis : Analysis
    X : data frame
        Rows in the form of `Analysis.X`; they need not be among those of the fit.
    y : array
        What was observed there.
    """
    options = {"groups": dict(analysis.groups), "categorical": list(analysis.groups)}
    here, everywhere = rank(analysis.model, X, KL(), **options), rank(analysis.model, measure=KL(), **options)  # type: ignore[arg-type]
    shares = here.shares
    prediction = analysis.model.predict(X)
    return Explanation(
        names=here.names,
        scores=here.scores,
        average=everywhere.scores,
        moves_mean=shares.get("mean"),
        moves_variance=shares.get("variance"),
        prediction=prediction.mean,
        sd=np.sqrt(prediction.var),
        observed=np.asarray(y),
    )
