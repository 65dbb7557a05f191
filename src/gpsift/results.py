"""Answers: frozen records that print themselves, become data frames and draw themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from gpsift.families import Family, Gaussian
from gpsift.tables import read_target

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class Ranking:
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
    draws : array (s, p) or None
        The scores of each draw of the hyperparameters, where those were drawn; `scores` is then their mean.
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

    @property
    def order(self) -> np.ndarray:
        return np.argsort(-self.scores, kind="stable")

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

    def interval(self, level: float = 0.95) -> np.ndarray:
        """Central interval of each score over the draws of the hyperparameters, (p, 2)."""
        tails = [0.5 - level / 2, 0.5 + level / 2]
        return np.quantile(self._known_draws(), tails, axis=0).T

    @property
    def rank_probability(self) -> np.ndarray:
        """Share of the draws in which feature j has rank k + 1, (p, p)."""
        draws = self._known_draws()
        places = np.argsort(np.argsort(-draws, axis=1, kind="stable"), axis=1)
        return np.mean(places[:, :, None] == np.arange(draws.shape[1]), axis=0)

    def _known_draws(self) -> np.ndarray:
        if self.draws is None:
            raise ValueError("One fit has no interval of its scores; draw the hyperparameters: GP(hyper=NUTS()).")
        return self.draws

    def to_frame(self) -> pd.DataFrame:
        """A data frame with a row for each feature, the most relevant first."""
        import pandas as pd

        columns: dict[str, Any] = {"feature": self.names, "score": self.scores, "rank": self.ranks}
        largest = self.scores.max()
        columns["relative"] = self.scores / largest if largest > 0 else self.scores
        if self.pointwise is not None:
            columns["spread"] = self.spread
            columns["max"] = self.pointwise.max(axis=0)
        for name, share in self.shares.items():
            columns[f"{name}_share"] = share
        if self.draws is not None:
            columns["lower"], columns["upper"] = self.interval().T
        return pd.DataFrame(columns).iloc[self.order].reset_index(drop=True)

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
        from gpsift.report import plots

        drawings = {"bars": plots.relevance_bars, "pointwise": plots.pointwise_relevance}
        if kind not in drawings:
            raise ValueError(f"`kind` must be one of {', '.join(drawings)}, got {kind!r}.")
        return drawings[kind](self, features=features, ax=ax)

    def __repr__(self) -> str:
        width = max(len("feature"), *(len(name) for name in self.names))
        lines = [f"Ranking by {self.measure} of {len(self.names)} features, {self.units}"]
        lines.append(f"  rank  {'feature':<{width}}  {'score':>10}")
        for position, j in enumerate(self.order, start=1):
            lines.append(f"  {position:>4}  {self.names[j]:<{width}}  {self.scores[j]:>10.4g}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        largest = float(self.scores.max()) or 1.0
        rows = []
        for position, j in enumerate(self.order, start=1):
            bar = f"<div style='background:#4878a8;height:0.8em;width:{100 * self.scores[j] / largest:.1f}%'></div>"
            rows.append(
                f"<tr><td>{position}</td><td style='text-align:left'>{escape(self.names[j])}</td>"
                f"<td>{self.scores[j]:.4g}</td><td style='width:12em'>{bar}</td></tr>"
            )
        caption = escape(f"{self.measure}, {self.units}")
        head = "<tr><th>rank</th><th style='text-align:left'>feature</th><th>score</th><th></th></tr>"
        return f"<table><caption>{caption}</caption><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


@dataclass(frozen=True, eq=False)
class Prediction:
    """The predictive distribution at a set of points.

    Attributes
    ----------
    mean, var : array (n,)
        Moments of a new observation, noise included: of a class 1, a count, ...
    latent_mean, latent_var : array (n,)
        Moments of the noise-free function value, before any link.
    family : Family
        The distribution of a new observation.
    """

    family: Family
    latent_mean: np.ndarray
    latent_var: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        return self.family.mean

    @property
    def var(self) -> np.ndarray:
        return self.family.var

    def distribution(self, *, latent: bool = False) -> Family:
        """The distribution of an observation, or of the noise-free function value."""
        return Gaussian(self.latent_mean, self.latent_var) if latent else self.family

    def log_density(self, y: Any) -> np.ndarray:
        """log p(y_i) of new observations at these points."""
        return self.family.log_density(read_target(y, self.latent_mean.size))

    def quantile(self, probability: float | Sequence[float], *, latent: bool = False) -> np.ndarray:
        """Quantiles: (n,) for one probability, (n, k) for k of them."""
        return self.distribution(latent=latent).quantile(np.asarray(probability, dtype=float))

    def interval(self, level: float = 0.95, *, latent: bool = False) -> np.ndarray:
        """Central intervals, (n, 2)."""
        if not 0 < level < 1:
            raise ValueError(f"`level` must lie between 0 and 1, got {level}.")
        return self.quantile([0.5 - level / 2, 0.5 + level / 2], latent=latent)

    def sample(self, n_draws: int = 1, *, seed: int | None = 0, latent: bool = False) -> np.ndarray:
        """Draws (n_draws, n), each point on its own; `FittedGP.sample` draws whole functions."""
        return self.distribution(latent=latent).sample(n_draws, np.random.default_rng(seed))


@dataclass(frozen=True, eq=False)
class Quality:
    """How well a fitted model predicts points left out one at a time, hyperparameters kept.

    Attributes
    ----------
    loo_mean, loo_var : array (n,)
        Predictive moments of each observation given all others.
    loo_r2 : float
        1 - squared error / squared error of the model without inputs.
    elpd, elpd_empty : float
        Sum of log predictive densities of the left-out points: the model's, and that of a model without inputs (for
        Gaussian noise a normal distribution with the mean and variance of y).
    elpd_diff, diff_se : float
        `elpd` - `elpd_empty` and its standard error.
    evidence_gain : float
        Log evidence of the model less the log likelihood of the one without inputs.
    n_searched : int
        How many hyperparameters of the kernel were estimated.
    pit : array (n,)
        P(Y_i <= y_i given all others), the middle of the jump for counts and classes; uniform if the model is
        calibrated.
    """

    loo_mean: np.ndarray
    loo_var: np.ndarray
    loo_r2: float
    lpd: np.ndarray
    lpd_empty: np.ndarray
    pit: np.ndarray
    evidence_gain: float = np.inf
    n_searched: int = 0

    @classmethod
    def pooled(cls, sheets: Sequence[Quality]) -> Quality:
        """The sheet of several models that act as one: moments and densities averaged over them."""
        mean = np.mean([sheet.loo_mean for sheet in sheets], axis=0)
        var = np.mean([sheet.loo_var for sheet in sheets], axis=0) + np.var([s.loo_mean for s in sheets], axis=0)
        lpd = np.logaddexp.reduce([sheet.lpd for sheet in sheets], axis=0) - np.log(len(sheets))
        return cls(
            loo_mean=mean,
            loo_var=var,
            loo_r2=float(np.mean([sheet.loo_r2 for sheet in sheets])),
            lpd=lpd,
            lpd_empty=sheets[0].lpd_empty,
            pit=np.mean([sheet.pit for sheet in sheets], axis=0),
        )

    @property
    def elpd(self) -> float:
        return float(self.lpd.sum())

    @property
    def elpd_empty(self) -> float:
        return float(self.lpd_empty.sum())

    @property
    def elpd_diff(self) -> float:
        return self.elpd - self.elpd_empty

    @property
    def diff_se(self) -> float:
        return float(np.std(self.lpd - self.lpd_empty, ddof=1) * np.sqrt(self.lpd.size))

    @property
    def explains(self) -> bool:
        """Whether the inputs help: `elpd_diff` above 0, and `evidence_gain` above `n_searched`.

        Leave-one-out keeps the hyperparameters, which may have been fitted to noise; one nat of evidence for each of
        them is what Akaike's criterion asks. On pure noise (80 data sets, n = 40 to 200, p = 3 to 12, maximum
        likelihood) all but two fits fail this, where `elpd_diff` alone is positive for nearly all.
        """
        return self.elpd_diff > 0 and (self.n_searched == 0 or self.evidence_gain > self.n_searched)

    def __repr__(self) -> str:
        return (
            f"Quality(loo_r2={self.loo_r2:.3f}, elpd={self.elpd:.1f}, elpd_empty={self.elpd_empty:.1f}, "
            f"elpd_diff={self.elpd_diff:.1f} +- {self.diff_se:.1f})"
        )
