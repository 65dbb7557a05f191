"""The answer of `effects`: how the prediction changes along each feature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gpsift._utils.text import join_names, summary_html
from gpsift.decomposition.course import Course, course_of
from gpsift.io.serializable import Serializable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# A value that fewer of the rows than this share could have is beyond the data.
LEAST_SUPPORT = 0.1
# Of a normal distribution, for 95 %.
QUANTILE = 1.96


@dataclass(frozen=True, eq=False)
class Curve:
    """The average prediction along one feature, less its own average over the rows.

    Attributes
    ----------
    name : str
    x : array (g,)
        Values of the feature, or for a category the places of its `labels`.
    mean, sd : arrays (g,)
        Of the average over the rows; the standard deviation is that of the average.
    covariance : array (g, g)
        Of the average at all values.
    individual : array (r, g)
        The curves of some rows, each less its own average: where they differ, the feature acts with others.
    support : array (g,)
        The share of the rows that could have the value, as far as a linear regression on the other features says.
    rug : array (r,)
        Values of some rows.
    labels : tuple of str
        Of the levels of a category.
    """

    name: str
    x: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    covariance: np.ndarray
    individual: np.ndarray
    support: np.ndarray
    rug: np.ndarray
    labels: tuple[str, ...] = ()

    @property
    def span(self) -> float:
        """From the lowest to the highest point."""
        return float(np.ptp(self.mean)) if self.mean.size else 0.0

    @property
    def band(self) -> np.ndarray:
        """95 % intervals at each value, (g, 2)."""
        return self.mean[:, None] + QUANTILE * self.sd[:, None] * np.array([-1.0, 1.0])

    @property
    def is_supported(self) -> np.ndarray:
        """Which values enough of the rows could have, (g,)."""
        return self.support >= LEAST_SUPPORT

    @cached_property
    def course(self) -> Course:
        """What it does: up, down, where it turns; ``curve.course.told`` says it in words."""
        return course_of(self.x, self.mean, self.covariance, self.individual, self.labels)

    def at(self, place: int) -> str:
        """One of its values as text."""
        return self.labels[place] if self.labels else f"{self.x[place]:.4g}"

    def to_frame(self) -> pd.DataFrame:
        """A data frame with a row for each value."""
        import pandas as pd

        return pd.DataFrame(
            {
                "feature": self.name,
                "value": self.labels or self.x,
                "mean": self.mean,
                "sd": self.sd,
                "lower": self.band[:, 0],
                "upper": self.band[:, 1],
                "support": self.support,
            }
        )

    def _repr_html_(self) -> str:
        return summary_html(f"{self.name}: {self.course.told}", self.to_frame())

    @property
    def leaves_the_data(self) -> bool:
        """Whether some of its values are such as nine rows of ten could not have."""
        return not self.is_supported.all()


@dataclass(frozen=True, eq=False, repr=False)
class Effects(Serializable):
    """How the prediction changes along each feature, on average over the rows as they are.

    Attributes
    ----------
    curves : tuple of Curve
        The most relevant feature first.
    average : float
        Of the predictions at the rows.
    mean_of : str
        What is predicted.
    band : str
        How the bands were made.
    of : str or None
        Which function, where the model has several.
    k_hat : float or None
        How far to trust draws that bands were pooled over: up to 0.7.
    how : str
        Whether averages are closed forms or made of the model's own predictions.
    details : mapping
    """

    curves: tuple[Curve, ...]
    average: float
    mean_of: str = "the target"
    band: str = "closed form"
    of: str | None = None
    how: str = "closed form"
    k_hat: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(curve.name for curve in self.curves)

    def __getitem__(self, name: str) -> Curve:
        for curve in self.curves:
            if curve.name == name:
                return curve
        raise KeyError(f"There is no curve of {name!r}; there are those of {join_names(self.names)}.")

    def __iter__(self) -> Iterator[Curve]:
        return iter(self.curves)

    def __len__(self) -> int:
        return len(self.curves)

    def to_frame(self) -> pd.DataFrame:
        """A data frame with a row for each value of each feature."""
        import pandas as pd

        frames = [curve.to_frame() for curve in self.curves]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    def plot(self) -> Figure:
        """A panel for each feature on one axis: average curve with its band, curves of some rows, the data below."""
        from gpsift.decomposition.plots import curve_panels

        return curve_panels(self)

    @property
    def told(self) -> str:
        """The answer in a sentence or two."""
        beyond = [curve.name for curve in self.curves if curve.leaves_the_data]
        caution = f" Curves of {join_names(beyond)} go where nine rows of ten could not be." if beyond else ""
        what = "curve" if len(self) == 1 else "curves"
        return f"{len(self)} {what} of {self.mean_of} around an average of {self.average:.4g}.{caution}"

    def __repr__(self) -> str:
        width = max([len("feature"), *(len(name) for name in self.names)])
        lines = [self.told, f"  {'feature':<{width}}  {'lowest at':>10}  {'highest at':>10}  {'span':>8}  {'sd':>8}"]
        for curve in self.curves:
            low, high = (_value(curve, int(which(curve.mean))) for which in (np.argmin, np.argmax))
            lines.append(f"  {curve.name:<{width}}  {low:>10}  {high:>10}  {curve.span:>8.3g}  {curve.sd.mean():>8.2g}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        import pandas as pd

        lines = [
            {
                "feature": curve.name,
                "acts": curve.course.told,
                "lowest": curve.at(curve.course.lowest),
                "highest": curve.at(curve.course.highest),
                "span": curve.span,
            }
            for curve in self.curves
        ]
        return summary_html(self.told, pd.DataFrame(lines))


def _value(curve: Curve, place: int) -> str:
    return curve.labels[place][:10] if curve.labels else f"{curve.x[place]:.4g}"
