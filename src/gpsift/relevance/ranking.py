"""The answer of `rank`: a score for each feature, and where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from gpsift._utils.optional import optional_library
from gpsift._utils.words import NOT_USED, others_not_used, percent
from gpsift.io.savable import Savable, kept_fields, not_kept
from gpsift.reference.base import N_CLOSE
from gpsift.relevance.limits import LEVEL, interval_with

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

NO_DRAWS = (
    "This ranking has no draws of its scores, and no model beside it that could make them: it comes from a file or "
    "another process, or from rows that are not in memory. Rank the model again with rank(..., intervals=True), or "
    "draw the hyperparameters, GP(hyper=NUTS())."
)


@dataclass(frozen=True, eq=False, repr=False)
class Ranking(Savable):
    """How relevant each feature is to a model's predictions, and where.

    Attributes
    ----------
    measure : str
        What was measured, as it would be typed.
    scores : array (p,)
        One score a feature; larger is more relevant.
    pointwise : array (n, p) or None
        The score at each point, before aggregation; None for a measure of the whole model (ARD).
    order : array (p,)
        Feature indices, the most relevant first.
    names : tuple of str
    spread : array (p,) or None
        Standard deviation of `pointwise` over the points: how unevenly a feature matters. Not an interval of the score.
    units : str
        What the scores are measured in.
    terms : mapping of str to array (n, p)
        Squared parts of `pointwise`, such as what moves the mean and what moves the variance.
    points : array (n, p)
        The inputs at which `pointwise` was computed.
    rows : array (n,)
        Their row numbers in the X that was given.
    details : mapping
        What was done: aggregate, seed, versions and what the measure reports of itself.
    effect_shares : array (p,) or None
        The scores of `VAR` as parts of their sum.
    draws : array (s, p) or None
        The scores of each draw of the hyperparameters: where the model itself was drawn, `scores` is their mean; where
        intervals were asked for at once, they are around `scores`, computed for the first of them and read off lines
        through these for the others. Otherwise `interval` and the probabilities of ranks make them when they are
        needed, and `with_intervals` gives a ranking that has them.
    k_hat : float or None
        How far to trust draws that intervals were asked for: up to 0.7. Beyond, `NUTS()` is the way to them.
    used : array (p,) of bool, or None
        Which features the model uses; the others were switched off, and their scores are exactly 0. None where the
        model uses all of them, as far as is known.
    slopes : array (p,) or None
        Of features that are not used the steepest slope of the log evidence as they enter, in standard deviations under
        noise; minus infinity where it is not known. It decides the order of those without a score.
    around : callable or None
        Makes `draws` and `k_hat` when an interval is asked for. It holds the model, and is lost on the way through a
        file or to another process.
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
    around: Callable[[], tuple[np.ndarray, float]] | None = not_kept()

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in kept_fields(self)}

    @property
    def order(self) -> np.ndarray:
        if self.used is None:
            return np.argsort(-self.scores, kind="stable")
        slopes = np.zeros(len(self.names)) if self.slopes is None else self.slopes
        return np.lexsort((-slopes, ~self.used, -self.scores))

    @property
    def close(self) -> Mapping[str, float]:
        """The first features that are not used but would be next, with their slopes."""
        if self.used is None or self.slopes is None:
            return {}
        next_ones = [j for j in self.order[int(self.used.sum()) :][:N_CLOSE] if np.isfinite(self.slopes[j])]
        return {self.names[j]: float(self.slopes[j]) for j in next_ones}

    @property
    def n_told(self) -> int:
        """How many features of the order deserve a line each: those that are used and those that came close."""
        return len(self.names) if self.used is None else int(self.used.sum()) + len(self.close)

    @property
    def rest_told(self) -> tuple[str, ...]:
        """A line for all other features, which are not used; none where there are no others."""
        n_others = len(self.names) - self.n_told
        return (others_not_used(n_others),) if n_others else ()

    def is_used(self, j: int) -> bool:
        """Whether the model uses feature j, as far as is known."""
        return self.used is None or bool(self.used[j])

    def _score_text(self, j: int) -> str:
        return f"{self.scores[j]:.4g}" if self.is_used(j) else NOT_USED

    def _interval_text(self, j: int) -> str:
        if self.draws is None:
            return ""
        low, high = self.interval()[j]
        return f"  {low:.4g} to {high:.4g}"

    @property
    def ranks(self) -> np.ndarray:
        """Position of each feature in the order, 1 for the most relevant."""
        ranks = np.empty(len(self.scores), dtype=int)
        ranks[self.order] = np.arange(1, len(self.scores) + 1)
        return ranks

    @property
    def spread(self) -> np.ndarray | None:
        return None if self.pointwise is None else self.pointwise.std(axis=0)

    @property
    def shares(self) -> Mapping[str, np.ndarray]:
        """How much of each feature's squared relevance is in each of `terms`, averaged over the points, (p,) each."""
        total = sum(values.sum(axis=0) for values in self.terms.values())
        safe = np.where(total > 0, total, 1.0)
        return {name: values.sum(axis=0) / safe for name, values in self.terms.items()}

    @property
    def effect_shares(self) -> np.ndarray | None:
        """Each score as a part of the sum of all, (p,), for mean scores by VAR; None for others, no variances.

        They estimate the total effects of the features beside one another. For independent features without
        interactions these are parts of the variance of the predicted mean; interactions are counted for every feature
        that has a part in them, and of what correlated features can say in each other's place, none has it.
        """
        if not self.measure.startswith("VAR(") or self.details.get("aggregate", "mean") != "mean":
            return None
        total = self.scores.sum()
        return self.scores / (total if total > 0 else 1.0)

    def with_intervals(self) -> Ranking:
        """The same ranking with `draws` and `k_hat`, as ``rank(..., intervals=True)`` makes it."""
        if self.draws is not None:
            return self
        draws, k_hat = self._made_draws
        return replace(self, draws=draws, k_hat=k_hat, around=None)

    def interval(self, level: float = LEVEL) -> np.ndarray:
        """Central interval of each score over the draws of the hyperparameters, (p, 2); the score itself is in it.

        A score of the fit that is beyond an end is taken for the end. Where there are no draws yet they are made now,
        for the price of a fit or two, and remembered.
        """
        return interval_with(self.scores, self._known_draws(), level)

    @property
    def rank_probability(self) -> np.ndarray:
        """Share of the draws in which feature j has rank k + 1, (p, p)."""
        draws = self._known_draws()
        places = np.argsort(np.argsort(-draws, axis=1, kind="stable"), axis=1)
        return np.mean(places[:, :, None] == np.arange(draws.shape[1]), axis=0)

    def in_first_probability(self, k: int) -> np.ndarray:
        """Share of the draws in which a feature is among the first k, (p,)."""
        return self.rank_probability[:, :k].sum(axis=1)

    @property
    def unevenness(self) -> np.ndarray | None:
        """The largest pointwise score of each feature over its mean, (p,), NaN where that is 0; None without them."""
        if self.pointwise is None:
            return None
        largest, mean = self.pointwise.max(axis=0), self.pointwise.mean(axis=0)
        return np.divide(largest, mean, out=np.full_like(mean, np.nan), where=mean > 0)

    @property
    def mean_shares(self) -> np.ndarray | None:
        """How much of the squared score at each point moves the mean, (n, p); None where it has no such parts."""
        if set(self.terms) != {"mean", "variance"}:
            return None
        mean, total = self.terms["mean"], self.terms["mean"] + self.terms["variance"]
        return mean / np.where(total > 0, total, 1.0)

    def _known_draws(self) -> np.ndarray:
        return self._made_draws[0] if self.draws is None else self.draws

    @cached_property
    def _made_draws(self) -> tuple[np.ndarray, float]:
        if self.around is None:
            raise ValueError(NO_DRAWS)
        return self.around()

    def _draws_of(self, columns: Sequence[int]) -> tuple[np.ndarray, float]:
        draws, k_hat = self._made_draws
        return draws[:, columns], k_hat

    def of_columns(self, columns: Sequence[int], names: Sequence[str]) -> Ranking:
        """What this ranking says of some of its features, under other names."""
        chosen = list(columns)
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
            around=None if self.around is None else partial(self._draws_of, chosen),
        )

    def to_frame(self) -> pd.DataFrame:
        """A data frame with a row for each feature, the most relevant first; whether it is used, where some are not."""
        import pandas as pd

        columns: dict[str, Any] = {"feature": self.names, "score": self.scores, "rank": self.ranks}
        largest = self.scores.max()
        columns["relative"] = self.scores / largest if largest > 0 else self.scores
        if self.pointwise is not None:
            columns["spread"] = self.spread
            columns["max"] = self.pointwise.max(axis=0)
        for name, share in self.shares.items():
            columns[f"{name}_share"] = share
        if self.effect_shares is not None:
            columns["share"] = self.effect_shares
        if self.draws is not None:
            columns["lower"], columns["upper"] = self.interval().T
        if self.used is not None:
            columns["used"] = self.used
        return pd.DataFrame(columns).iloc[self.order].reset_index(drop=True)

    def to_shap(self) -> Any:
        """The pointwise scores as shap's Explanation, for its plots, such as ``shap.plots.beeswarm``.

        They are no Shapley values: relevances are not negative and do not add up to the prediction.
        """
        shap = optional_library("shap", "Explanations")
        if self.pointwise is None:
            raise ValueError(f"{self.measure} has no pointwise scores that shap could plot; use KL() or VAR().")
        return shap.Explanation(
            values=self.pointwise.copy(),
            base_values=np.zeros(len(self.pointwise)),
            data=self.points.copy(),
            feature_names=list(self.names),
            output_names=[self.measure],
        )

    def to_arviz(self) -> Any:
        """The scores of all draws as ArviZ's InferenceData: `relevance` and `rank` by draw and feature."""
        draws = self._known_draws()
        arviz = optional_library("arviz", "Records of draws")
        ranks = np.argsort(np.argsort(-draws, axis=1, kind="stable"), axis=1) + 1
        return arviz.from_dict(
            posterior={"relevance": draws[None], "rank": ranks[None]},
            coords={"feature": list(self.names)},
            dims={"relevance": ["feature"], "rank": ["feature"]},
            attrs={"measure": self.measure, "units": self.units},
        )

    def plot(self, kind: str = "bars", *, features: Sequence[int | str] | None = None, ax: Axes | None = None) -> Any:
        """Draw the ranking.

        Parameters
        ----------
        kind : {"bars", "pointwise"}
            Bars of the scores, or the relevance at every point against the feature's value.
        features : sequence of names or indices, optional
            Which features to show; by default the most relevant ones.
        ax : matplotlib Axes, optional
            Where to draw the bars.
        """
        from gpsift.relevance import plots

        drawings = {"bars": plots.relevance_bars, "pointwise": plots.pointwise_relevance}
        if kind not in drawings:
            raise ValueError(f"`kind` must be one of {', '.join(drawings)}, got {kind!r}.")
        return drawings[kind](self, features=features, ax=ax)

    def __repr__(self) -> str:
        width = max(len("feature"), *(len(self.names[j]) for j in self.order[: self.n_told]))
        lines = [f"Ranking by {self.measure} of {len(self.names)} features, {self.units}"]
        interval = "" if self.draws is None else f"  {percent(LEVEL)} interval"
        lines.append(f"  rank  {'feature':<{width}}  {'score':>10}{interval}")
        for position, j in enumerate(self.order[: self.n_told], start=1):
            score = f"{self._score_text(int(j)):>10}{self._interval_text(int(j))}"
            lines.append(f"  {position:>4}  {self.names[j]:<{width}}  {score}")
        lines += [f"        {rest}" for rest in self.rest_told]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        largest = float(self.scores.max()) or 1.0
        rows = []
        for position, j in enumerate(self.order[: self.n_told], start=1):
            bar = f"<div style='background:#4878a8;height:0.8em;width:{100 * self.scores[j] / largest:z.1f}%'></div>"
            rows.append(
                f"<tr><td>{position}</td><td style='text-align:left'>{escape(self.names[j])}</td>"
                f"<td>{self._score_text(int(j))}</td><td style='width:12em'>{bar}</td></tr>"
            )
        rows += [f"<tr><td></td><td style='text-align:left' colspan='3'>{rest}</td></tr>" for rest in self.rest_told]
        caption = escape(f"{self.measure}, {self.units}")
        head = "<tr><th>rank</th><th style='text-align:left'>feature</th><th>score</th><th></th></tr>"
        return f"<table><caption>{caption}</caption><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"
