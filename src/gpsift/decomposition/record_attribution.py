"""The answer of `explain`: what each feature adds to single predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gpsift._utils.text import summary_html
from gpsift._utils.validation import optional_library
from gpsift.io.serializable import Serializable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# Features of a row that are printed, at most.
MOST_LINES = 10


@dataclass(frozen=True, eq=False, repr=False)
class Attribution(Serializable):
    """Predictions taken apart: the average, and what each feature adds to it.

    Attributes
    ----------
    names : tuple of str
        Of the features, groups and categories.
    values : array (n, p)
        Shapley values of the latent mean; with the average they add up to the prediction.
    sd : array (n, p)
        Their posterior standard deviations: what the data leave open. NaN where there are predictions only.
    average : float
        Of the function over the margins of all features.
    points : array (n, p)
        The rows; of a group its first principal coordinate.
    mean_of : str
        What the function is the mean of.
    of : str or None
        Which function, where the model has several.
    how : str
        Whether averages are closed forms or made of the model's own predictions.
    details : mapping
    """

    names: tuple[str, ...]
    values: np.ndarray
    sd: np.ndarray
    average: float
    points: np.ndarray
    mean_of: str = "the target"
    of: str | None = None
    how: str = "closed form"
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def prediction(self) -> np.ndarray:
        """The latent mean at the rows, (n,)."""
        return self.average + self.values.sum(axis=1)

    @property
    def strength(self) -> np.ndarray:
        """The mean size of the values of each feature over the rows, (p,)."""
        return np.abs(self.values).mean(axis=0)

    @property
    def order(self) -> np.ndarray:
        """Features by falling strength."""
        return np.argsort(-self.strength, kind="stable")

    def row(self, number: int) -> pd.DataFrame:
        """One row taken apart, a line for each feature, the largest value first."""
        import pandas as pd

        columns = {
            "feature": self.names,
            "at": self.points[number],
            "value": self.values[number],
            "sd": self.sd[number],
        }
        order = np.argsort(-np.abs(self.values[number]), kind="stable")
        return pd.DataFrame(columns).iloc[order].reset_index(drop=True)

    def to_frame(self) -> pd.DataFrame:
        """A data frame of the values with a row for each point and a column for each feature."""
        import pandas as pd

        return pd.DataFrame(self.values, columns=list(self.names))

    def to_shap(self) -> Any:
        """The values as shap's Explanation, for all of its plots: ``shap.plots.waterfall(found.to_shap()[0])``."""
        shap = optional_library("shap", "Explanations")
        return shap.Explanation(
            values=self.values.copy(),
            base_values=np.full(len(self.values), self.average),
            data=self.points.copy(),
            feature_names=list(self.names),
        )

    def plot(self, row: int = 0, *, ax: Axes | None = None) -> Axes:
        """Bars of one row: what each feature adds, with one posterior standard deviation."""
        from gpsift.decomposition.plots import row_taken_apart

        return row_taken_apart(self, row, ax=ax)

    @property
    def told(self) -> str:
        """The answer in a few words."""
        n = len(self.values)
        what = "prediction" if n == 1 else "predictions"
        return f"{n} {what} of {self.mean_of} around an average of {self.average:.4g}"

    def _repr_html_(self) -> str:
        return summary_html(self.told, self.row(0) if len(self.values) == 1 else self.to_frame())

    def __repr__(self) -> str:
        n = len(self.values)
        lines = [self.told]
        if n == 1:
            frame = self.row(0).head(MOST_LINES)
            width = max(len("feature"), *(len(name) for name in frame["feature"]))
            lines.append(f"  {'feature':<{width}}  {'at':>10}  {'adds':>10}  {'sd':>8}")
            lines += [
                f"  {row.feature:<{width}}  {row.at:>10.4g}  {row.value:>+10.4g}  {row.sd:>8.2g}"
                for row in frame.itertuples()
            ]
            return "\n".join(lines)
        width = max(len("feature"), *(len(name) for name in self.names))
        lines.append(f"  {'feature':<{width}}  {'mean size':>10}  {'mean sd':>8}")
        lines += [
            f"  {self.names[j]:<{width}}  {self.strength[j]:>10.4g}  {self.sd[:, j].mean():>8.2g}"
            for j in self.order[:MOST_LINES]
        ]
        return "\n".join(lines)
