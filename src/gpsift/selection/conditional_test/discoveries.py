"""The answer of `discover`: which features matter, at what rate of false discoveries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from gpsift._utils.text import join_names, percent_as_given, summary_html
from gpsift.io.serializable import Serializable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# A statistic below one standard deviation is no effect that one could plan for.
LEAST_Z = 1.0


@dataclass(frozen=True, eq=False, repr=False)
class Discoveries(Serializable):
    """A test of every feature, on rows that the models had not seen.

    Attributes
    ----------
    names : tuple of str
        Of the features, groups and categories.
    z : array (p,)
        The statistic, standard normal where the feature does not matter given the others; the median over repeats.
        Minus infinity where no model reacts to the feature.
    p : array (p,)
        The probability of a statistic as large where the feature does not matter.
    q : array (p,)
        The smallest rate at which the feature is among the discoveries.
    rate : float
        The share of false discoveries, among all, that is expected at most.
    conditionals : tuple of str
        What described the values that each feature could have had given the others: "normal scores"; "a few normal
        scores" or "Gaussian process" where these were tried as well and were less sure; of categories "Gaussian
        process", or "shares of its levels" where no other column varies.
    copies : tuple of tuple of str
        Features that carry the same values, up to a monotone function: none of them can be told from the others.
    price : float
        By which q-values have been raised for a rate that holds under any dependence.
    details : mapping
    explained : array (p,) or None
        The share of each feature's variance that the others explain, by its conditional: of normal scores, or of the
        shares of levels.
    calibration : array (p,) or None
        Squared deviations from the conditional over those that it expects, 1 if it is right. A regression of normal
        scores is asked at the rows that it was fitted to, and is near 1; the others at rows left out.
    """

    names: tuple[str, ...]
    z: np.ndarray
    p: np.ndarray
    q: np.ndarray
    rate: float
    conditionals: tuple[str, ...]
    copies: tuple[tuple[str, ...], ...] = ()
    price: float = 1.0
    details: Mapping[str, Any] = field(default_factory=dict)
    explained: np.ndarray | None = None
    calibration: np.ndarray | None = None

    @property
    def n_features(self) -> int:
        return len(self.names)

    @property
    def found(self) -> np.ndarray:
        """Which features are discoveries at the rate, (p,)."""
        return self.q <= self.rate

    @property
    def order(self) -> np.ndarray:
        """Features by rising p-value."""
        return np.lexsort((-self.z, self.p))

    @property
    def limits(self) -> np.ndarray:
        """Of ordered p-values, (p,): features down to the last one that is not above its limit are discoveries."""
        return self.rate * np.arange(1, self.n_features + 1) / (self.n_features * self.price)

    @property
    def discoveries(self) -> tuple[str, ...]:
        """The names of the features that matter, the surest first."""
        return tuple(self.names[j] for j in self.order if self.found[j])

    def rows_needed(self, n_rows: int, chance: float = 0.8) -> np.ndarray:
        """Rows with which a feature that is not found would be, with a chance, if its effect is as it seems here, (p,).

        The statistic grows with the root of the rows, with a standard deviation of 1, and must pass the limit of one
        discovery more. Infinite for a statistic below 1. It is one number with the error of the statistic; `power`
        makes up studies instead.

        Parameters
        ----------
        n_rows : int
            Rows of this test.
        chance : float
        """
        n_found = int(self.found.sum())
        limit = -ndtri(self.limits[min(n_found, self.n_features - 1)])
        safe = np.where(self.z >= LEAST_Z, self.z, np.nan)
        return np.nan_to_num(n_rows * np.maximum((limit + ndtri(chance)) / safe, 1.0) ** 2, nan=np.inf)

    def under_any_dependence(self) -> Discoveries:
        """The same test with a rate that holds however the p-values depend on each other, which finds less.

        It is that of Benjamini and Yekutieli (2001): q-values are larger by 1 + 1/2 + ... + 1/p.
        """
        price = float(np.sum(1.0 / np.arange(1, self.n_features + 1)))
        return replace(self, q=np.minimum(price * self.q, 1.0), price=price)

    def to_frame(self) -> pd.DataFrame:
        """A data frame with a row for each feature, the surest first."""
        import pandas as pd

        columns: dict[str, Any] = {
            "feature": self.names,
            "z": self.z,
            "p": self.p,
            "q": self.q,
            "found": self.found,
            "conditional": self.conditionals,
        }
        for name in ("explained", "calibration"):
            values = getattr(self, name)
            columns |= {} if values is None else {name: values}
        return pd.DataFrame(columns).iloc[self.order].reset_index(drop=True)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the p-values in their order, with the line that discoveries are below."""
        from gpsift.selection.conditional_test.discovery_plots import ordered_p_values

        return ordered_p_values(self, ax=ax)

    @property
    def told(self) -> str:
        """The answer in a sentence or two."""
        rest = "" if self.found.all() else " The others are not shown to matter."
        same = [" and ".join(names) for names in self.copies]
        twins = "".join(f" {names} carry the same values and cannot be told apart." for names in same)
        rate = percent_as_given(self.rate)
        if not self.found.any():
            return f"None of {self.n_features} features is shown to matter at a rate of {rate}.{twins}"
        return (
            f"{int(self.found.sum())} of {self.n_features} features matter, with at most {rate} of them "
            f"expected to be false: {join_names(self.discoveries, None)}.{rest}{twins}"
        )

    def __repr__(self) -> str:
        frame = self.to_frame()
        width = max(len("feature"), *(len(name) for name in self.names))
        lines = [self.told, f"  {'feature':<{width}}  {'z':>6}  {'p':>8}  {'q':>8}"]
        lines += [
            f"{'*' if row.found else ' ':>1} {row.feature:<{width}}  {row.z:>z6.2f}  {row.p:>8.2g}  {row.q:>8.2g}"
            for row in frame.itertuples()
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return summary_html(self.told, self.to_frame())
