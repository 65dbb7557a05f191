"""The answer of `variance_shares`: what share of the variance of a function each feature has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpsift._utils.notebook import words_and_table
from gpsift._utils.words import percent
from gpsift.io.savable import Savable
from gpsift.relevance.ranking import LEVEL, interval_with

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class VarianceShares(Savable):
    """The variance of a function of independent features, taken apart.

    Shares are parts of the variance of the function, noise not among it.

    Attributes
    ----------
    names : tuple of str
        Of the features, groups and categories.
    first : array (p,)
        What a feature does alone, by its average curve: Sobol's first-order indices.
    total : array (p,)
        That and everything in which it has a part: total indices. They add up to more than 1 where features interact.
    shapley : array (p,)
        The same with what features do together divided equally among them: Shapley effects, which add up to 1.
    pairs : array (p, p)
        What needs both features of a pair, alone or with others: superset indices; 0 on the diagonal.
    variance : float
        Of the function, in squared units of what `mean_of` says.
    noise_var : float or None
        Of what the function leaves, where that is normal.
    margins : str
        How features were taken to be distributed.
    mean_of : str
        What the function is the mean of.
    draws : mapping of str to array (s, p)
        `first`, `total` and `shapley` with other hyperparameters, where these were drawn.
    k_hat : float or None
        How far to trust draws that intervals were asked for: up to 0.7.
    of : str or None
        Which function, where the model has several.
    how : str
        Whether averages are closed forms or made of the model's own predictions.
    details : mapping
    """

    SHARES: ClassVar[tuple[str, ...]] = ("first", "total", "shapley", "pairs")

    names: tuple[str, ...]
    first: np.ndarray
    total: np.ndarray
    shapley: np.ndarray
    pairs: np.ndarray
    variance: float
    noise_var: float | None
    margins: str
    mean_of: str = "the target"
    draws: Mapping[str, np.ndarray] = field(default_factory=dict)
    k_hat: float | None = None
    of: str | None = None
    how: str = "closed form"
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def order(self) -> np.ndarray:
        """Features by falling Shapley share."""
        return np.argsort(-self.shapley, kind="stable")

    @property
    def noise_share(self) -> float | None:
        """What noise has of the variance of an observation; None where noise is not normal."""
        if self.noise_var is None:
            return None
        whole = self.variance + self.noise_var
        return self.noise_var / whole if whole > 0 else 0.0

    @property
    def interacting(self) -> float:
        """What features do only together, as a share."""
        return float(max(0.0, 1.0 - self.first.sum())) if self.variance > 0 else 0.0

    def interval(self, share: str = "shapley", level: float = LEVEL) -> np.ndarray:
        """Central interval of "first", "total" or "shapley" over the draws of the hyperparameters, (p, 2).

        The share itself is in it: one that is beyond an end is taken for the end.
        """
        if share not in self.draws:
            raise ValueError(
                "There are intervals of first, total and shapley, for variance_shares(..., intervals=True) or drawn "
                f"hyperparameters, GP(hyper=NUTS()); asked for {share!r}."
            )
        return interval_with(getattr(self, share), self.draws[share], level)

    def to_frame(self) -> pd.DataFrame:
        """A data frame with a row for each feature, the largest share first."""
        import pandas as pd

        columns: dict[str, Any] = {"feature": self.names}
        for name in ("first", "total", "shapley"):
            columns[name] = getattr(self, name)
            if name in self.draws:
                columns[f"{name}_lower"], columns[f"{name}_upper"] = self.interval(name).T
        return pd.DataFrame(columns).iloc[self.order].reset_index(drop=True)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """One bar of Shapley shares, with what is left to noise."""
        from gpsift.decomposition.plots import stacked_shares

        return stacked_shares(self, ax=ax)

    @property
    def told(self) -> str:
        """The answer in a sentence or two."""
        share = self.noise_share
        noise = "" if share is None else f" Noise is {percent(share)} of the variance of an observation."
        if not self.variance > 0:
            return f"The function does not vary.{noise}"
        return f"Of the variance of the function {percent(self.interacting)} is what features do only together.{noise}"

    def __repr__(self) -> str:
        width = max(len("feature"), *(len(name) for name in self.names))
        lines = [self.told, f"  {'feature':<{width}}  {'first':>6}  {'total':>6}  {'shapley':>7}"]
        lines += [
            f"  {row.feature:<{width}}  {row.first:>z6.3f}  {row.total:>z6.3f}  {row.shapley:>z7.3f}"
            for row in self.to_frame().itertuples()
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return words_and_table(self.told, self.to_frame())
