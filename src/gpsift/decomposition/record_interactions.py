"""The answer of `interactions`: which pairs of features act together, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from gpsift._utils.text import summary_html
from gpsift.io.serializable import Serializable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# Pairs that are printed, at most.
MOST_LINES = 10


@dataclass(frozen=True, eq=False)
class Surface:
    """What is predicted on average over the rows with two features set to values, (g, h).

    `x` and `y` are the values, or for categories the places of their labels; `x_rows` and `y_rows` those of the rows.
    """

    names: tuple[str, str]
    x: np.ndarray
    y: np.ndarray
    mean: np.ndarray
    x_labels: tuple[str, ...] = ()
    y_labels: tuple[str, ...] = ()
    x_rows: np.ndarray | None = None
    y_rows: np.ndarray | None = None

    def to_frame(self) -> pd.DataFrame:
        """A data frame with a row for each value of the first feature, and a column for each of the second."""
        import pandas as pd

        rows, columns = (list(labels or values) for labels, values in self._axes)
        frame = pd.DataFrame(self.mean, columns=[f"{self.names[1]} = {_value(each)}" for each in columns])
        frame.insert(0, self.names[0], [_value(each) for each in rows], allow_duplicates=True)
        return frame

    @property
    def _axes(self) -> tuple[tuple[tuple[str, ...], np.ndarray], tuple[tuple[str, ...], np.ndarray]]:
        return (self.x_labels, self.x), (self.y_labels, self.y)

    def _repr_html_(self) -> str:
        return summary_html(f"{self.names[0]} with {self.names[1]}, on average over the rows", self.to_frame())


def _value(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"


@dataclass(frozen=True, eq=False, repr=False)
class Interactions(Serializable):
    """Pairs of features, and how sure it is that they act together.

    Attributes
    ----------
    names : tuple of str
        Of the features, groups and categories.
    share : array (p, p)
        What share of the variance of the function needs both features of a pair.
    evidence : array (p, p)
        That variance over what the data have not decided of it; NaN where the model does not say what that is.
    least_evidence : float
        Pairs with less are not called interactions.
    pairs : array (k, 2)
        The strongest pairs by their share, as numbers of features, whether found or not.
    local : array (n, k)
        How strongly each of `pairs` acts together at each point: the change of the slope of the mean, in standard
        deviations of the prediction per standard deviation of each feature; NaN for groups and categories.
    points : array (n, columns)
        Where that is, in the user's units; `features` names the columns.
    surfaces : tuple of Surface
        Of the strongest pairs, and of those that were asked for.
    mean_of : str
        What the function is the mean of.
    of : str or None
        Which function, where the model has several.
    how : str
        Whether averages are closed forms or made of the model's own predictions.
    details : mapping
    """

    names: tuple[str, ...]
    share: np.ndarray
    evidence: np.ndarray
    least_evidence: float
    pairs: np.ndarray
    local: np.ndarray
    points: np.ndarray
    features: tuple[str, ...]
    surfaces: tuple[Surface, ...] = ()
    mean_of: str = "the target"
    of: str | None = None
    how: str = "closed form"
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_found(self) -> np.ndarray:
        """Which pairs have enough evidence, (p, p)."""
        return self.evidence >= self.least_evidence

    @property
    def found(self) -> tuple[tuple[str, str], ...]:
        """The pairs that act together, the largest share first."""
        pairs = [pair for pair in combinations(range(len(self.names)), 2) if self.is_found[pair]]
        pairs.sort(key=lambda pair: -self.share[pair])
        return tuple((self.names[i], self.names[j]) for i, j in pairs)

    def where(self, first: str, second: str) -> np.ndarray:
        """The points by falling strength of a pair of `pairs`, as their numbers."""
        wanted = {first, second}
        for number, (i, j) in enumerate(self.pairs.tolist()):
            if {self.names[i], self.names[j]} == wanted:
                return np.argsort(-self.local[:, number], kind="stable")
        raise ValueError(f"{first} and {second} are not among the {len(self.pairs)} strongest pairs.")

    def surface(self, first: str, second: str) -> Surface:
        """That of a pair."""
        for surface in self.surfaces:
            if set(surface.names) == {first, second}:
                return surface
        raise ValueError(
            f"There is no surface of {first} and {second}; ask for it: "
            f"interactions(..., pairs=[({first!r}, {second!r})])."
        )

    @property
    def by_largest_share(self) -> np.ndarray:
        """Features by the share of their strongest pair, without those that have no part in any, but two at least."""
        largest = self.share.max(axis=1, initial=0.0)
        return np.argsort(-largest, kind="stable")[: max(2, int(np.count_nonzero(largest)))]

    @property
    def strongest_surface(self) -> Surface | None:
        """That of the first pair found which has one; None where no pair is found."""
        of_pair = {frozenset(surface.names): surface for surface in self.surfaces}
        return next((of_pair[frozenset(pair)] for pair in self.found if frozenset(pair) in of_pair), None)

    def to_frame(self) -> pd.DataFrame:
        """A data frame with a row for each pair, the largest share first."""
        import pandas as pd

        i, j = np.triu_indices(len(self.names), 1)
        columns = {
            "first": [self.names[k] for k in i],
            "second": [self.names[k] for k in j],
            "share": self.share[i, j],
            "evidence": self.evidence[i, j],
            "found": self.is_found[i, j],
        }
        return pd.DataFrame(columns).sort_values("share", ascending=False, kind="stable").reset_index(drop=True)

    def plot(self, pair: tuple[str, str] | None = None, *, ax: Axes | None = None) -> Axes:
        """Draw the shares of all pairs as a matrix, or the surface of one pair with the data on it."""
        from gpsift.decomposition.plots import pair_matrix, pair_surface

        return pair_matrix(self, ax=ax) if pair is None else pair_surface(self, self.surface(*pair), ax=ax)

    @property
    def told(self) -> str:
        """The answer in a sentence."""
        if np.isnan(self.evidence).any():
            return "Shares of pairs only: the model does not say what the data have left open of them."
        if not self.found:
            return "No interaction found: no pair of features can be told from one that does not act together."
        pairs = ", ".join(f"{first} with {second}" for first, second in self.found[:MOST_LINES])
        more = ", ..." if len(self.found) > MOST_LINES else ""
        return f"{len(self.found)} {'pair acts' if len(self.found) == 1 else 'pairs act'} together: {pairs}{more}."

    def __repr__(self) -> str:
        frame = self.to_frame().head(MOST_LINES)
        pairs = [f"{row.first}, {row.second}" for row in frame.itertuples()]
        width = max([len("pair"), *map(len, pairs)])
        lines = [self.told, f"  {'pair':<{width}}  {'share':>6}  {'evidence':>8}"]
        lines += [
            f"{'*' if row.found else ' '} {pair:<{width}}  {row.share:>z6.3f}  {row.evidence:>8.3g}"
            for pair, row in zip(pairs, frame.itertuples(), strict=True)
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return summary_html(self.told, self.to_frame().head(MOST_LINES))
