"""Scores by the other way to approximate a model, and how far they are from those of a ranking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from gpsift.app.findings import Finding


class Apart(NamedTuple):
    """How far the scores of the other way are away, at most: as a share of the top score, and for which feature.

    `lead` is by how much the way that was taken is ahead: the log density of rows that are left out, for each of them.
    """

    way: str
    lead: float
    share: float
    feature: str

    @property
    def finding(self) -> Finding:
        """What a reader should know of it."""
        from gpsift.app.findings import Finding, FindingKind  # with the first finding, not with every ranking

        data = {"way": self.way, "lead": self.lead, "share": self.share, "column": self.feature}
        return Finding(FindingKind.WAYS_DISAGREE, data)


@dataclass(frozen=True, eq=False)
class OtherScores:
    """The scores of all features, (p,), by a way of that name, and by how much it is behind, in nats a row left out."""

    way: str
    lead: float
    scores: np.ndarray

    def on(self, columns: Sequence[int]) -> OtherScores:
        """Those of some features."""
        return replace(self, scores=self.scores[list(columns)])

    def apart(self, scores: np.ndarray, names: Sequence[str]) -> Apart:
        """How far they are from other scores, in units of the largest of those.

        >>> OtherScores("neighbours", 0.01, np.array([2.0, 0.5])).apart(np.array([2.0, 1.0]), ["a", "b"])
        Apart(way='neighbours', lead=0.01, share=0.25, feature='b')
        """
        differences = np.abs(self.scores - scores)
        worst = int(differences.argmax())
        top = scores.max() or self.scores.max() or 1.0  # a way that uses no feature has none
        return Apart(self.way, self.lead, float(differences[worst] / top), names[worst])
