"""The answer of `compare`: which features changed place between two rankings, by how much, and how clearly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gpsift._utils.notebook import words_and_table
from gpsift._utils.words import NOT_USED, listed, percent
from gpsift.io.savable import Savable
from gpsift.relevance.ranking import LEVEL

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from gpsift.relevance.ranking import Ranking


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Savable):
    """Two rankings side by side, on the features that both have.

    Attributes
    ----------
    labels : tuple of two str
        What the two are called.
    measure, units : str
        Of the scores.
    names : tuple of str
        The features that both have.
    scores : array (2, p)
    ranks : array (2, p)
        Places among the features that both have, 1 for the most relevant.
    used : array (2, p) of bool
        Which features each of the models uses.
    intervals : array (2, p, 2)
        Of the scores, at a level of 0.9; NaN where they are not known.
    only : tuple of two tuples of str
        Features that one of the two has alone.
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
        """Of two rankings; refuses those that have no feature in common, or other measures."""
        both = [name for name in first.names if name in set(second.names)]
        _refuse(first, second, both, labels)
        parts = [each.of_columns([each.names.index(name) for name in both], both) for each in (first, second)]
        return cls(
            labels=labels,
            measure=first.measure,
            units=first.units,
            names=tuple(both),
            scores=np.array([each.scores for each in parts]),
            ranks=np.array([each.ranks for each in parts]),
            used=np.array([[each.is_used(j) for j in range(len(both))] for each in parts]),
            intervals=np.array([_intervals(each) for each in parts]),
            only=(_without(first, both), _without(second, both)),
            details={each: ranking.details for each, ranking in zip(labels, (first, second), strict=True)},
        )

    @property
    def n_features(self) -> int:
        return len(self.names)

    @property
    def change(self) -> np.ndarray:
        """Second score less the first, (p,)."""
        return self.scores[1] - self.scores[0]

    @property
    def places(self) -> np.ndarray:
        """How many places each feature went up from the first to the second, (p,)."""
        return self.ranks[0] - self.ranks[1]

    @property
    def has_intervals(self) -> bool:
        """Whether the intervals of both are known."""
        return bool(np.isfinite(self.intervals).all())

    @property
    def is_clear(self) -> np.ndarray:
        """Where the intervals of the two scores do not overlap, (p,); nowhere without intervals."""
        (low, high), (other_low, other_high) = (each.T for each in self.intervals)
        return (low > other_high) | (other_low > high)

    @property
    def order(self) -> np.ndarray:
        """Features by the larger of their two scores."""
        return np.lexsort((self.ranks[0], -self.scores.max(axis=0)))

    def to_frame(self) -> pd.DataFrame:
        """A data frame with a row for each feature that both have, the larger of its scores first."""
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
        """Draw both scores of each feature, with their intervals, joined by a line."""
        from gpsift.app.analysis.comparison_plots import pairs_of_scores

        return pairs_of_scores(self, ax=ax)

    def score_text(self, which: int, j: int) -> str:
        """One of the scores; whether the feature is used at all."""
        return f"{self.scores[which, j]:.3g}" if self.used[which, j] else NOT_USED

    @property
    def sentences(self) -> tuple[str, ...]:
        """Who changed place, of those that either uses, whose scores differ clearly, and what one of the two lacks."""
        moved = [j for j in self.order if self.places[j] != 0 and self.used[:, j].any()]
        steps = [f"{self.names[j]} from {self.ranks[0, j]} to {self.ranks[1, j]}" for j in moved]
        first = f"changed place: {listed(steps)}" if steps else "changed place"
        n = f"{len(moved)} of {self.n_features}" if moved else f"None of {self.n_features}"
        told = [_ended(f"{n} features that both have {first}")]
        if self.has_intervals:
            level = percent(LEVEL)
            clear = [self._step(int(j)) for j in self.order if self.is_clear[j]]
            beyond = _ended(f"Scores differ by more than their {level} intervals allow: {listed(clear)}")
            told.append(beyond if clear else f"All scores differ by no more than their {level} intervals allow.")
        for label, names in zip(self.labels, self.only, strict=True):
            told += [_ended(f"Only in {label}: {listed(names)}")] if names else []
        return tuple(told)

    def _step(self, j: int) -> str:
        return f"{self.names[j]} ({self.score_text(0, j)} to {self.score_text(1, j)})"

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
        return words_and_table(self.told, self.to_frame())


def _ended(text: str) -> str:
    """With a full stop, unless dots say that there is more."""
    return text if text.endswith("...") else f"{text}."


def _refuse(first: Ranking, second: Ranking, both: list[str], labels: tuple[str, str]) -> None:
    if first.measure != second.measure:
        raise ValueError(
            f"{labels[0]} is a ranking by {first.measure} and {labels[1]} one by {second.measure}; scores of two "
            "measures do not compare. Rank both by the same."
        )
    if not both:
        raise ValueError(
            f"{labels[0]} and {labels[1]} have no column in common: {listed(first.names)} here, {listed(second.names)} "
            "there. Compare two answers about the same columns."
        )


def _without(ranking: Ranking, both: list[str]) -> tuple[str, ...]:
    common = set(both)
    return tuple(ranking.names[j] for j in ranking.order if ranking.names[j] not in common)


def _intervals(ranking: Ranking) -> np.ndarray:
    return np.full((len(ranking.names), 2), np.nan) if ranking.draws is None else ranking.interval()
