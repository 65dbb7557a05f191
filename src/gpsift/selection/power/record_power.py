"""The answer of `power`: how often each feature is found in studies of several sizes, and how many rows are enough."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from gpsift._utils.text import NOT_USED, percent, percent_as_given, summary_html
from gpsift.io.serializable import Serializable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# A part of a row that is no more than rounding error.
ROUNDING = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class Power(Serializable):
    """How often each feature is found in studies that a fitted model made up.

    Attributes
    ----------
    names : tuple of str
        Of the features, groups and categories.
    sizes : array (s,)
        Rows of the studies, rising.
    shares : array (s, p)
        The share of the studies of each size in which each feature was found.
    n_studies : int
        How many of each size there were.
    n_rows : int
        Rows that the model was fitted to.
    rate : float
        Of false discoveries, at which the studies were tested.
    chance : float
        With which a feature should be found.
    used : array (p,)
        Which features the model uses; the others have no effect that could be found.
    details : mapping
    """

    names: tuple[str, ...]
    sizes: np.ndarray
    shares: np.ndarray
    n_studies: int
    n_rows: int
    rate: float
    chance: float
    used: np.ndarray
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_features(self) -> int:
        return len(self.names)

    @cached_property
    def standard_errors(self) -> np.ndarray:
        """Of the shares, (s, p), as if there were a study more in which the feature was found, and one in which not.

        That of none, or of all, is then not 0.
        """
        share = (self.n_studies * self.shares + 1.0) / (self.n_studies + 2.0)
        return np.sqrt(share * (1.0 - share) / self.n_studies)

    @cached_property
    def rising(self) -> np.ndarray:
        """The shares (s, p) nearest to those seen that do not fall as studies grow."""
        return rising(self.shares)

    @cached_property
    def needed(self) -> np.ndarray:
        """Rows with which each feature is found with the chance, (p,).

        Infinite where the largest studies are too small, and the smallest size where that is enough.
        """
        return np.array([crossing(self.sizes, share, self.chance, self.n_studies) for share in self.rising.T])

    @property
    def more(self) -> np.ndarray:
        """Rows that are needed beyond those that the model has, (p,)."""
        return np.maximum(np.ceil(self.needed - ROUNDING) - self.n_rows, 0.0)

    @property
    def is_enough(self) -> np.ndarray:
        """Which features are found with the chance in studies of the size that the model's data have, (p,)."""
        return self.needed <= self.n_rows

    @property
    def order(self) -> np.ndarray:
        """Features by how many rows they need, and then by how often they are found."""
        return np.lexsort((-self.shares.mean(axis=0), self.needed, ~self.used))

    def sentence(self, feature: str | int) -> str:
        """What the answer is for one feature, by name or number."""
        j = self.names.index(feature) if isinstance(feature, str) else feature
        name, first, last = self.names[j], self.sizes[0], self.sizes[-1]
        if not self.used[j]:
            return f"{name}: {NOT_USED} by the model, so there is no effect to be found."
        if np.isinf(self.needed[j]):
            return (
                f"{name}: more than {last} rows are needed; found in {self._percent(-1, j)} of studies of {last} rows."
            )
        start = f"found in {self._percent(0, j)} of studies of {first} rows"
        if self.needed[j] <= first:
            enough = "already enough" if first <= self.n_rows else f"{first} rows are enough"
            return f"{name}: {enough}; {start}."
        enough = "already enough; " if self.is_enough[j] else ""
        return f"{name}: {enough}{start}, in {percent_as_given(self.chance)} of about {self.needed[j]:z.0f}."

    @property
    def told(self) -> str:
        """The answer, a sentence for each feature."""
        return "\n".join(self.sentence(int(j)) for j in self.order)

    def to_frame(self) -> pd.DataFrame:
        """A data frame with a row for each feature and size."""
        import pandas as pd

        s, order = self.sizes.size, self.order
        columns = {
            "feature": np.repeat(np.array(self.names, dtype=object)[order], s),
            "rows": np.tile(self.sizes, self.n_features),
            "share": self.shares.T[order].ravel(),
            "se": self.standard_errors.T[order].ravel(),
            "needed": np.repeat(self.needed[order], s),
        }
        return pd.DataFrame(columns)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the shares over the sizes, one curve for each feature, and the chance that is wanted."""
        from gpsift.selection.power.power_plots import power_curves

        return power_curves(self, ax=ax)

    def _percent(self, size: int, j: int) -> str:
        return percent(self.shares[size, j])

    def __repr__(self) -> str:
        return self.told

    def _repr_html_(self) -> str:
        return summary_html(self.told, self.to_frame())


def rising(shares: np.ndarray) -> np.ndarray:
    """Least squares under the order of the rows, (s, p), by the largest of smallest means (isotonic regression).

    >>> rising(np.array([[0.1], [0.5], [0.3], [0.9]])).ravel()
    array([0.1, 0.4, 0.4, 0.9])
    """
    s = len(shares)
    sums = np.concatenate([np.zeros((1, shares.shape[1])), np.cumsum(shares, axis=0)])
    means = [[(sums[b] - sums[a]) / (b - a) for b in range(a + 1, s + 1)] for a in range(s)]
    return np.array([np.max([np.min(means[a][i - a :], axis=0) for a in range(i + 1)], axis=0) for i in range(s)])


def crossing(sizes: np.ndarray, shares: np.ndarray, chance: float, n_studies: int) -> float:
    """The size at which rising shares reach a chance.

    A statistic that grows with the root of the size, and is normal around that, makes the normal quantiles of the
    shares a straight line over the root of the size; so they are taken for one between neighbouring sizes. Shares of 0
    and 1 stand for half a study more or less.
    """
    above = np.flatnonzero(shares >= chance)
    if above.size == 0:
        return np.inf
    if above[0] == 0:
        return float(sizes[0])
    ends = slice(above[0] - 1, above[0] + 1)
    half = 0.5 / n_studies
    low, high = ndtri(np.clip(shares[ends], min(half, chance / 2), max(1.0 - half, (1.0 + chance) / 2)))
    root_low, root_high = np.sqrt(sizes[ends])
    return float((root_low + (root_high - root_low) * (ndtri(chance) - low) / (high - low)) ** 2)
