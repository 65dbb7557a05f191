"""This module has the result of `rank`: a score for each feature, and how it was computed.

`Ranking` holds the scores and the numbers that follow from them. `gpsift.relevance.display` prints and exports it,
`gpsift.relevance.plots` draws it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpsift._utils.text import others_not_used
from gpsift.io.serializable import Serializable, stored_fields, transient_field
from gpsift.reference.base import N_CLOSE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# The default probability of intervals.
LEVEL = 0.9
# What draws of strengths are draws of.
BOTH = "function and hyperparameters"
FUNCTION = "function alone, with the hyperparameters of the fit"
HYPERPARAMETERS = "hyperparameters alone"
NO_DRAWS = (
    "This ranking has no draws of strengths, and no model beside it that could make them: it comes from a file or "
    "another process, or from rows that are not in memory. Rank the model again with rank(..., intervals=True), or "
    "draw the hyperparameters, GP(hyper=NUTS())."
)


class ScoreDraws(NamedTuple):
    """Scores (s, p) drawn from their posterior, what was drawn, and the k-hat of draws of hyperparameters."""

    scores: np.ndarray
    drawn: str
    k_hat: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Ranking(Serializable):
    """The relevance of each feature to a model's predictions, for all points together and at each point.

    Attributes
    ----------
    measure : str
        The measure as Python code.
    scores : array (p,)
        One score for each feature; larger is more relevant.
    pointwise : array (n, p) or None
        The score at each point, before aggregation; None for a measure of the whole model (ARD).
    order : array (p,)
        Feature indices, the most relevant first.
    names : tuple of str
    spread : array (p,) or None
        Standard deviation of `pointwise` over the points, which is not the uncertainty of the score.
    units : str
        The units of the scores.
    terms : mapping of str to array (n, p)
        The terms of squared `pointwise`, such as those of the mean and of the variance.
    points : array (n, p)
        The inputs at which `pointwise` was computed.
    rows : array (n,)
        Their row numbers in the X that was given.
    details : mapping
        How the ranking was computed: aggregate, seed, versions and details of the measure.
    draws : array (s, p) or None
        Draws of the strengths: scores of models that know the function, for functions and hyperparameters drawn from
        their posterior. `scores` are those of the fit, or their mean over drawn hyperparameters.
    drawn : str or None
        What was drawn: "function and hyperparameters"; the function alone, for models of other libraries; or the
        hyperparameters alone, for measures of these.
    k_hat : float or None
        Pareto diagnostic of drawn hyperparameters. They are reliable up to 0.7; above it use `NUTS()`.
    used : array (p,) of bool, or None
        Which features the model uses; the others were switched off, and their scores are exactly 0. None where the
        model uses all of them, as far as is known.
    slopes : array (p,) or None
        For features that are not used the steepest slope of the log evidence as they enter, in standard deviations
        under noise; minus infinity where it is not known. Unused features are ordered by it.
    draw_scores : callable or None
        Computes `draws`, `drawn` and `k_hat` for the first interval. It holds the model, and is not stored or pickled.
    """

    measure: str
    scores: np.ndarray
    pointwise: np.ndarray | None
    names: tuple[str, ...]
    units: str
    points: np.ndarray
    rows: np.ndarray
    terms: Mapping[str, np.ndarray] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    draws: np.ndarray | None = None
    used: np.ndarray | None = None
    slopes: np.ndarray | None = None
    k_hat: float | None = None
    drawn: str | None = None
    draw_scores: Callable[[], ScoreDraws] | None = transient_field()

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in stored_fields(self)}

    # The order of the features

    @property
    def order(self) -> np.ndarray:
        if self.used is None:
            return np.argsort(-self.scores, kind="stable")
        slopes = np.zeros(len(self.names)) if self.slopes is None else self.slopes
        return np.lexsort((-slopes, ~self.used, -self.scores))

    @property
    def ranks(self) -> np.ndarray:
        """Position of each feature in the order, 1 for the most relevant."""
        ranks = np.empty(len(self.scores), dtype=int)
        ranks[self.order] = np.arange(1, len(self.scores) + 1)
        return ranks

    def is_used(self, j: int) -> bool:
        """Whether the model uses feature j, as far as is known."""
        return self.used is None or bool(self.used[j])

    @property
    def close(self) -> Mapping[str, float]:
        """The unused features with the steepest slopes, and these slopes."""
        if self.used is None or self.slopes is None:
            return {}
        next_ones = [j for j in self.order[int(self.used.sum()) :][:N_CLOSE] if np.isfinite(self.slopes[j])]
        return {self.names[j]: float(self.slopes[j]) for j in next_ones}

    @property
    def n_shown(self) -> int:
        """Number of features that tables list: those used and those in `close`."""
        return len(self.names) if self.used is None else int(self.used.sum()) + len(self.close)

    @property
    def hidden_note(self) -> tuple[str, ...]:
        """A line for the features that tables do not list; none where they list all."""
        n_hidden = len(self.names) - self.n_shown
        return (others_not_used(n_hidden),) if n_hidden else ()

    # The terms and shares of scores

    @property
    def spread(self) -> np.ndarray | None:
        return None if self.pointwise is None else self.pointwise.std(axis=0)

    @property
    def unevenness(self) -> np.ndarray | None:
        """The largest pointwise score of each feature over its mean, (p,), NaN where that is 0; None without them."""
        if self.pointwise is None:
            return None
        largest, mean = self.pointwise.max(axis=0), self.pointwise.mean(axis=0)
        return np.divide(largest, mean, out=np.full_like(mean, np.nan), where=mean > 0)

    @property
    def shares(self) -> Mapping[str, np.ndarray]:
        """The share of each of `terms` in the squared relevance of each feature, over all points, (p,) each."""
        sums = {name: values.sum(axis=0) for name, values in self.terms.items()}
        total = sum(sums.values())
        return {name: each / np.where(total > 0, total, 1.0) for name, each in sums.items()}

    @property
    def mean_shares(self) -> np.ndarray | None:
        """The share of the mean term in the squared score at each point, (n, p); None without such terms."""
        if set(self.terms) != {"mean", "variance"}:
            return None
        mean, total = self.terms["mean"], self.terms["mean"] + self.terms["variance"]
        return mean / np.where(total > 0, total, 1.0)

    @property
    def effect_shares(self) -> np.ndarray | None:
        """Each score as a share of their sum, (p,), for mean scores by VAR; None for others, which are no variances.

        They compare the total effects of the features. For independent features without interactions these are shares
        of the variance of the predicted mean. An interaction counts for each of its features; variance that correlated
        features share counts for none of them.
        """
        if not self.measure.startswith("VAR(") or self.details.get("aggregate", "mean") != "mean":
            return None
        total = self.scores.sum()
        return self.scores / (total if total > 0 else 1.0)

    # The true strengths. Draws are computed when the first of these is called, in the time of a fit or two, and kept.

    @property
    def strength(self) -> np.ndarray:
        """The median of the draws of each feature's strength, (p,)."""
        return np.median(self.known_draws, axis=0)

    def interval(self, level: float = LEVEL) -> np.ndarray:
        """Return the interval that holds each feature's strength with this probability, (p, 2)."""
        return np.quantile(self.known_draws, [0.5 - level / 2, 0.5 + level / 2], axis=0).T

    @property
    def shown(self) -> np.ndarray:
        """The numbers that tables and pictures show: strengths where there are draws, otherwise scores, (p,)."""
        return self.scores if self.draws is None else self.strength

    def probability(self, *, above: float) -> np.ndarray:
        """Return the probability that each feature's strength is above a number, (p,)."""
        return np.mean(self.known_draws > above, axis=0)

    @property
    def rank_probability(self) -> np.ndarray:
        """Share of the draws in which feature j has rank k + 1, (p, p)."""
        ranks = ranks_of_draws(self.known_draws)
        return np.mean(ranks[:, :, None] == np.arange(1, ranks.shape[1] + 1), axis=0)

    def in_first_probability(self, k: int) -> np.ndarray:
        """Return the share of the draws in which a feature is among the first k, (p,)."""
        return self.rank_probability[:, :k].sum(axis=1)

    def with_intervals(self) -> Ranking:
        """Return this ranking with `draws`, as ``rank(..., intervals=True)`` makes it."""
        if self.draws is not None:
            return self
        draws, drawn, k_hat = self._drawn_scores
        return replace(self, draws=draws, drawn=drawn, k_hat=k_hat, draw_scores=None)

    @property
    def known_draws(self) -> np.ndarray:
        """The `draws`, computed now if there are none, (s, p)."""
        return self._drawn_scores.scores if self.draws is None else self.draws

    @cached_property
    def _drawn_scores(self) -> ScoreDraws:
        if self.draw_scores is None:
            raise ValueError(NO_DRAWS)
        return self.draw_scores()

    def of_columns(self, columns: Sequence[int], names: Sequence[str]) -> Ranking:
        """Return the ranking of some of the features alone, under other names."""
        chosen = list(columns)

        def draw_scores() -> ScoreDraws:
            found = self._drawn_scores
            return found._replace(scores=found.scores[:, chosen])

        return replace(
            self,
            names=tuple(names),
            scores=self.scores[chosen],
            pointwise=None if self.pointwise is None else self.pointwise[:, chosen],
            points=self.points[:, chosen],
            terms={name: values[:, chosen] for name, values in self.terms.items()},
            draws=None if self.draws is None else self.draws[:, chosen],
            used=None if self.used is None else self.used[chosen],
            slopes=None if self.slopes is None else self.slopes[chosen],
            draw_scores=None if self.draw_scores is None else draw_scores,
        )

    # Display

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with a row for each feature, the most relevant first."""
        from gpsift.relevance import display

        return display.to_frame(self)

    def to_shap(self) -> Any:
        """Return the pointwise scores as shap's Explanation, for its plots, such as ``shap.plots.beeswarm``.

        They are no Shapley values: relevances are not negative and do not add up to the prediction.
        """
        from gpsift.relevance import display

        return display.to_shap(self)

    def to_arviz(self) -> Any:
        """Return the draws as ArviZ's InferenceData: `strength` and `rank` by draw and feature."""
        from gpsift.relevance import display

        return display.to_arviz(self)

    def plot(self, kind: str = "bars", *, features: Sequence[int | str] | None = None, ax: Axes | None = None) -> Any:
        """Draw the ranking.

        Parameters
        ----------
        kind : {"bars", "pointwise"}
            Bars of the scores, or the relevance at every point against the feature's value.
        features : sequence of names or indices, optional
            Features to show; by default the most relevant ones.
        ax : matplotlib Axes, optional
            Where to draw the bars.
        """
        from gpsift.relevance import plots

        drawings = {"bars": plots.relevance_bars, "pointwise": plots.pointwise_relevance}
        if kind not in drawings:
            raise ValueError(f"`kind` must be one of {', '.join(drawings)}, got {kind!r}.")
        return drawings[kind](self, features=features, ax=ax)

    def __repr__(self) -> str:
        from gpsift.relevance import display

        return display.to_text(self)

    def _repr_html_(self) -> str:
        from gpsift.relevance import display

        return display.to_html(self)


def ranks_of_draws(draws: np.ndarray) -> np.ndarray:
    """Rank of each feature in each draw of the scores, 1 for the largest, (s, p)."""
    return np.argsort(np.argsort(-draws, axis=1, kind="stable"), axis=1) + 1
