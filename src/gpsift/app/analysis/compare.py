"""Compare two analyses, models or rankings: which features changed rank, by how much, and how clearly."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpsift._utils.text import NOT_USED, join_names, meaning, percent, summary_html
from gpsift._utils.warnings import collect_warnings
from gpsift.app.analysis.analysis import Analysis
from gpsift.app.analysis.costs import intervals_are_slow
from gpsift.app.analysis.saved_model import user_columns
from gpsift.gp import DrawnGP, FittedGP
from gpsift.io.files import load
from gpsift.io.serializable import Serializable
from gpsift.reference.base import MissingCapability
from gpsift.relevance import KL, Measure
from gpsift.relevance.plots import BLUE, MAX_BARS, ORANGE, new_axes, short
from gpsift.relevance.rank import get_measure
from gpsift.relevance.ranking import LEVEL, Ranking
from gpsift.selection.orders import rank_units

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# The dots of the two scores are this far above and below the line of a feature, so that their bars do not overlap.
APART = 0.14


def compare(
    first: Any,
    second: Any,
    measure: Measure | str | None = None,
    *,
    labels: tuple[str, str] | None = None,
    intervals: bool | None = None,
    seed: int = 0,
) -> Comparison:
    """Compare two analyses: before and after, with and without a column, of two targets.

    Parameters
    ----------
    first, second : path, Analysis, Ranking, FittedGP or DrawnGP
        A file that `save` or ``gpsift rank --save`` has written, or what it holds. Models are ranked at the rows that
        they were fitted to.
    measure : Measure or str, optional
        The measure by which models are ranked, `KL()` by default. Rankings and analyses keep theirs.
    labels : tuple of two str, optional
        The names of the two; by default the names of their files.
    intervals : bool, optional
        Whether scores of models have intervals; by default if that takes less than about half a minute.
    seed : int
        The random seed of the intervals.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 3))
    >>> y = X[:, 0] + 0.5 * X[:, 1] + 0.2 * rng.normal(size=40)
    >>> before = gs.GP(hyper=gs.MAP()).fit(X, y)
    >>> after = gs.GP(hyper=gs.MAP()).fit(X, y + 2.0 * X[:, 2])
    >>> gs.compare(before, after, intervals=False).places.tolist()
    [-1, -1, 2]
    """
    scoring = get_measure(measure) if measure is not None else KL()
    found = [_get_ranking(each, scoring, intervals, seed) for each in (first, second)]
    return Comparison.of(found[0], found[1], labels or _label_files(first, second))


def _get_ranking(source: Any, measure: Measure, intervals: bool | None, seed: int) -> Ranking:
    answer = load(source) if isinstance(source, str | os.PathLike) else source
    if isinstance(answer, Analysis):
        return answer.leading
    if isinstance(answer, Ranking):
        return answer
    if isinstance(answer, FittedGP | DrawnGP):
        return _rank_model(answer, measure, intervals, seed)
    kind = type(answer).__name__
    came = f"got {kind}" if answer is source else f"{os.fspath(source)} holds a {kind}"
    raise TypeError(f"`compare` takes analyses, rankings and fitted models, or files of the last two; {came}.")


def _rank_model(model: FittedGP | DrawnGP, measure: Measure, intervals: bool | None, seed: int) -> Ranking:
    units = user_columns(model).units(model.inputs.names)
    with_intervals = not intervals_are_slow(model) if intervals is None else intervals
    with collect_warnings():  # a model that explains nothing has warned at its fit
        try:
            return rank_units(model, units, measure, intervals=with_intervals, seed=seed)
        except MissingCapability:
            if intervals:
                raise
            return rank_units(model, units, measure, seed=seed)


def _label_files(first: Any, second: Any) -> tuple[str, str]:
    """Return the names of the files, with their folders if the names agree; "the first" and "the second" for others."""
    names = [str(each) if isinstance(each, str | os.PathLike) else "" for each in (first, second)]
    short = [Path(name).name for name in names]
    shown = names if short[0] == short[1] else short
    return shown[0] or "the first", shown[1] or "the second"


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Serializable):
    """A comparison of two rankings, on the features that both have.

    Attributes
    ----------
    labels : tuple of two str
        The names of the two.
    measure, units : str
        The measure and the units of the scores.
    names : tuple of str
        The features that both have.
    scores : array (2, p)
        Strengths (`Ranking.strength`) where both rankings have draws, otherwise scores.
    ranks : array (2, p)
        Ranks among the features that both have, 1 for the most relevant.
    used : array (2, p) of bool
        The features that each model uses.
    intervals : array (2, p, 2)
        Intervals of the strengths, at a level of 0.9; NaN if they are unknown.
    only : tuple of two tuples of str
        Features that only one of the two has.
    details : mapping
    """

    labels: tuple[str, str]
    measure: str
    units: str
    names: tuple[str, ...]
    scores: np.ndarray
    ranks: np.ndarray
    used: np.ndarray
    intervals: np.ndarray
    only: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    details: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, first: Ranking, second: Ranking, labels: tuple[str, str]) -> Comparison:
        """Compare two rankings; raise an error if they have no common feature, or different measures."""
        common = set(first.names).intersection(second.names)
        both = [name for name in first.names if name in common]
        if first.measure != second.measure:
            raise ValueError(
                f"{labels[0]} is a ranking by {first.measure} and {labels[1]} one by {second.measure}; scores of two "
                "measures do not compare. Rank both by the same."
            )
        if not both:
            raise ValueError(
                f"{labels[0]} and {labels[1]} have no column in common: {join_names(first.names)} here, "
                f"{join_names(second.names)} there. Compare two answers about the same columns."
            )
        parts = [each.of_columns([each.names.index(name) for name in both], both) for each in (first, second)]
        unknown = np.full((len(both), 2), np.nan)
        have_draws = all(each.draws is not None for each in parts)
        only_first, only_second = (
            tuple(each.names[j] for j in each.order if each.names[j] not in common) for each in (first, second)
        )
        return cls(
            labels=labels,
            measure=first.measure,
            units=first.units,
            names=tuple(both),
            scores=np.array([each.shown if have_draws else each.scores for each in parts]),
            ranks=np.array([each.ranks for each in parts]),
            used=np.array([[each.is_used(j) for j in range(len(both))] for each in parts]),
            intervals=np.array([unknown if each.draws is None else each.interval() for each in parts]),
            only=(only_first, only_second),
            details={each: ranking.details for each, ranking in zip(labels, (first, second), strict=True)},
        )

    @property
    def n_features(self) -> int:
        return len(self.names)

    @property
    def change(self) -> np.ndarray:
        """The second score minus the first, (p,)."""
        return self.scores[1] - self.scores[0]

    @property
    def places(self) -> np.ndarray:
        """The number of ranks that each feature rose from the first to the second, (p,)."""
        return self.ranks[0] - self.ranks[1]

    @property
    def has_intervals(self) -> bool:
        """True if the intervals of both are known."""
        return bool(np.isfinite(self.intervals).all())

    @property
    def is_clear(self) -> np.ndarray:
        """True where the intervals of the two scores do not overlap, (p,); False without intervals."""
        (low, high), (other_low, other_high) = (each.T for each in self.intervals)
        return (low > other_high) | (other_low > high)

    @property
    def order(self) -> np.ndarray:
        """Features by the larger of their two scores."""
        return np.lexsort((self.ranks[0], -self.scores.max(axis=0)))

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with a row for each common feature, sorted by the larger of its scores."""
        import pandas as pd

        columns: dict[str, Any] = {"feature": self.names}
        for which, number in enumerate(("first", "second")):
            columns |= {f"{number}_score": self.scores[which], f"{number}_rank": self.ranks[which]}
            columns |= {f"{number}_lower": self.intervals[which, :, 0], f"{number}_upper": self.intervals[which, :, 1]}
            columns[f"{number}_used"] = self.used[which]
        columns |= {"change": self.change, "places": self.places}
        if self.has_intervals:
            columns["clear"] = self.is_clear
        return pd.DataFrame(columns).iloc[self.order].reset_index(drop=True)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw two dots for each feature with their intervals, the most relevant feature on top."""
        shown = self.order[:MAX_BARS]
        ax = new_axes(6.4, 1.4 + 0.34 * len(shown)) if ax is None else ax
        places = np.arange(len(shown))
        sides = zip(self.labels, (BLUE, ORANGE), (-APART, APART), ("o", "D"), strict=True)
        for which, (label, colour, beside, marker) in enumerate(sides):
            at = places + beside
            low, high = self.intervals[which, shown].T
            ax.hlines(at, low, high, color=colour, linewidth=1.4, alpha=0.6)
            ax.scatter(self.scores[which, shown], at, color=colour, marker=marker, s=26, label=short(label))
        ax.set_yticks(places, [short(self.names[j]) for j in shown])
        ax.invert_yaxis()
        ax.set_xlim(left=0)
        ax.set_xlabel(f"{meaning(self.measure)}, {self.units}")
        ax.legend(frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
        ax.spines[["top", "right"]].set_visible(False)
        return ax

    def score_text(self, which: int, j: int) -> str:
        """Return one of the scores as text, or that the feature is not used."""
        return f"{self.scores[which, j]:.3g}" if self.used[which, j] else NOT_USED

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences about changed ranks, clearly different scores, and features that only one of the two has."""
        moved = [j for j in self.order if self.places[j] != 0 and self.used[:, j].any()]
        steps = [f"{self.names[j]} from {self.ranks[0, j]} to {self.ranks[1, j]}" for j in moved]
        first = f"changed place: {join_names(steps)}" if steps else "changed place"
        n = f"{len(moved)} of {self.n_features}" if moved else f"None of {self.n_features}"
        told = [_end_sentence(f"{n} features that both have {first}")]
        if self.has_intervals:
            level = percent(LEVEL)
            clear = [
                f"{self.names[j]} ({self.score_text(0, j)} to {self.score_text(1, j)})"
                for j in self.order
                if self.is_clear[j]
            ]
            beyond = _end_sentence(f"Scores differ by more than their {level} intervals allow: {join_names(clear)}")
            told.append(beyond if clear else f"All scores differ by no more than their {level} intervals allow.")
        for label, names in zip(self.labels, self.only, strict=True):
            told += [_end_sentence(f"Only in {label}: {join_names(names)}")] if names else []
        return tuple(told)

    @property
    def told(self) -> str:
        """The answer in a few sentences."""
        return " ".join(self.sentences)

    def __repr__(self) -> str:
        width = max(len("feature"), *(len(name) for name in self.names))
        head = f"Comparison by {self.measure} of {self.labels[0]} (first) and {self.labels[1]} (second)"
        lines = [head, self.told, f"  {'feature':<{width}}  {'first':>10}  {'second':>10}  {'places':>6}"]
        lines += [
            f"{'*' if self.is_clear[j] else ' '} {self.names[j]:<{width}}  {self.score_text(0, j):>10}  "
            f"{self.score_text(1, j):>10}  {self.places[j]:>+6d}"
            for j in self.order
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return summary_html(self.told, self.to_frame())


def _end_sentence(text: str) -> str:
    """Add a full stop, unless the text ends in dots."""
    return text if text.endswith("...") else f"{text}."
