"""The verb: how the prediction changes along each feature, on average over the rows as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gpsift._utils.grouping import number_of
from gpsift._utils.notebook import words_and_table
from gpsift._utils.threads import blas_threads_for
from gpsift._utils.words import listed
from gpsift.decomposition.context import N_VALUES, Asked, Axis, axis_of
from gpsift.decomposition.course import Course, course_of
from gpsift.decomposition.margins import read_margins
from gpsift.decomposition.partial_dependence import Along, Member, Way, pooled
from gpsift.io.savable import Savable
from gpsift.likelihoods.distributions import Gaussian
from gpsift.reference.base import Reference
from gpsift.reference.ensemble import AskedDraws
from gpsift.reference.input_moments import InputMoments
from gpsift.relevance import KL
from gpsift.relevance.conditionals import fit_conditionals
from gpsift.relevance.intervals import tell_if_unsure, uncertain
from gpsift.relevance.rank import versions
from gpsift.relevance.scored import ScoredUnits
from gpsift.relevance.switched import relevance_of_used, used_columns

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# Rows in the rug.
N_RUG = 200
# Draws of the hyperparameters that a band is pooled over: a mean and a variance need fewer than quantiles.
N_DRAWS = 50


def effects(
    model: Any,
    X: Any = None,
    features: Iterable[str | int] | None = None,
    *,
    groups: Mapping[str, Sequence[str | int]] | None = None,
    categorical: Iterable[str | int] | None = None,
    of: str | int | None = None,
    latent: bool = False,
    intervals: bool = False,
    seed: int = 0,
) -> Effects:
    """Draw the curve of each feature: the average prediction as it moves, over the rows as they are, with its band.

    Parameters
    ----------
    model : fitted model
        As in `variance_shares`. Of any other model curves are averages of its own predictions, without a band.
    X : array or data frame (n, p), optional
        The rows to average over; by default those of the fit. Of more than 2000 a sample is taken, and of more than 200
        for likelihoods other than normal noise and for models that only predict.
    features : iterable of names or numbers, optional
        Of the features, or categories, with a curve; by default those that the model depends on.
    groups, categorical : optional
        As in `rank`. A category has a value for each level; a group that is none has a curve for each of its columns.
    of : str or int, optional
        As in `variance_shares`. Curves of a class are those of its probability.
    latent : bool
        Whether curves are those of the latent function where an observation is not normal.
    intervals : bool
        Whether bands, and curves, are pooled over other hyperparameters that explain the data as well.
    seed : int
        For the choice of rows, of those with curves of their own, and of the draws of `intervals`.

    Returns
    -------
    Effects

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 3))
    >>> y = X[:, 0] ** 2 + X[:, 1] + 0.1 * rng.normal(size=80)
    >>> curves = gs.effects(gs.GP().fit(X, y))
    >>> curve = curves["x2"]
    >>> bool(np.all(np.diff(curve.mean) > 0))
    True
    """
    asked = Asked.read(model, X, groups, categorical, of)
    named = asked.units
    asked = replace(asked, units=named.opened(asked.points.inputs.names))
    chosen = _by_relevance(_chosen(features, named, asked), asked)
    rows = AveragedRows.drawn(asked, latent, seed)
    axes = [_axis(unit, asked) for unit in chosen]
    ways = [_way(unit, axis, asked) for unit, axis in zip(chosen, axes, strict=True)]
    with blas_threads_for(asked.model.inputs.n_rows or len(asked.X)):
        members = [Member.of(each, rows.X, rows.is_latent) for each in asked.members]
        average = float(np.mean([member.predicted(rows.X)[0] for member in members]))
        if intervals and not asked.model.draws:
            found, k_hat = _around(asked, ways, rows, seed)
        else:
            found, k_hat = [[member.along(way) for way in ways] for member in members], None
    curves = [pooled(each) for each in zip(*found, strict=True)]
    return Effects(
        curves=tuple(map(_curve, chosen, axes, curves, [asked] * len(curves), [rows] * len(curves))),
        average=average,
        mean_of=_mean_of(asked, rows),
        band=_band(curves, rows, len(found)),
        of=asked.of,
        how="closed form" if asked.is_closed and rows.is_latent else "averages of the model's own predictions",
        k_hat=k_hat,
        details={"n_rows": len(rows.X), "seed": seed, "versions": versions()},
    )


def _mean_of(asked: Asked, rows: AveragedRows) -> str:
    if rows.is_latent:
        return asked.model.mean_of
    return "the mean of an observation" if asked.of is None else f"the probability of {asked.of}"


def _band(curves: Sequence[Along], rows: AveragedRows, n_draws: int) -> str:
    if any(np.isnan(curve.covariance).any() for curve in curves):
        return "none: curves are averages of the model's own predictions"
    over = f", over {n_draws} draws of the hyperparameters" if n_draws > 1 else ""
    return f"{'closed form' if rows.is_latent else 'delta method'}{over}"


def _axis(unit: int, asked: Asked) -> Axis:
    axis = axis_of(unit, asked.units, asked.X, asked.points.inputs, N_VALUES)
    assert axis is not None
    return axis


def _way(unit: int, axis: Axis, asked: Asked) -> Way:
    (margin,) = read_margins("data", asked.X, asked.units.only(unit))
    return Way(asked.units.columns[unit], axis.values, margin)


def _around(asked: Asked, ways: Sequence[Way], rows: AveragedRows, seed: int) -> tuple[list[list[Along]], float]:
    """Curves with hyperparameters drawn from an approximation of their posterior, and the k-hat of these draws."""
    model = uncertain(asked.model)
    columns = model.open_columns
    seen, X = [way.on_columns(columns) for way in ways], rows.X[:, list(columns)]

    def of(each: Reference) -> list[Along]:
        member = Member.of(each, X, rows.is_latent)
        return [member.along(way) if way.columns else _flat(way, len(X)) for way in seen]

    drawn = model.over_draws(of, AskedDraws(N_DRAWS, seed))
    tell_if_unsure(drawn.k_hat)
    return drawn.values, drawn.k_hat


def _flat(way: Way, n: int) -> Along:
    """Along a unit that no draw depends on."""
    g = len(way.values)
    return Along(np.zeros((n, g)), np.zeros((g, g)))


def _chosen(features: Iterable[str | int] | None, named: ScoredUnits, asked: Asked) -> list[int]:
    """The numbers of what has a curve, of the features as users name them, the columns of groups among them."""
    if features is None:
        used = set(used_columns(asked.model))
        return [unit for unit, columns in enumerate(asked.units.columns) if used.intersection(columns)]
    if isinstance(features, str):
        raise TypeError(f"`features` must list features, such as [{features!r}], got {features!r} itself.")
    return [unit for feature in features for unit in _units_of(feature, named, asked.units)]


def _units_of(feature: str | int, named: ScoredUnits, opened: ScoredUnits) -> list[int]:
    """One unit, or those of a group's columns."""
    number = number_of(feature, named.names)
    if number is not None:
        own = set(named.columns[number])
        return [unit for unit, columns in enumerate(opened.columns) if own.issuperset(columns)]
    if feature in opened.names:
        return [opened.names.index(str(feature))]
    raise ValueError(f"There is no feature {feature!r}; the features are {listed(named.names)}.")


def _by_relevance(chosen: Sequence[int], asked: Asked) -> list[int]:
    """The most relevant first, by KL."""
    first = next(iter(asked.members))
    measure = KL(latent=asked.of is not None)  # one of several functions has no observation of its own
    relevance = relevance_of_used(measure, first, asked.points, asked.units).values.mean(axis=0)
    return sorted(dict.fromkeys(chosen), key=lambda unit: -relevance[unit])


def _curve(unit: int, axis: Axis, along: Along, asked: Asked, rows: AveragedRows) -> Curve:
    columns = asked.units.columns[unit]
    return Curve(
        name=asked.units.names[unit],
        x=axis.coordinates,
        mean=along.means.mean(axis=0),
        sd=np.sqrt(np.maximum(np.diag(along.covariance), 0.0)),
        covariance=along.covariance,
        individual=along.means[rows.is_shown],
        support=rows.regression.support(columns, axis),
        rug=np.empty(0) if axis.labels is not None else rows.X[:N_RUG, columns[0]],
        labels=axis.labels or (),
    )


# Rows that curves are averages over, at most; and where every row has to be predicted at every value.
MOST_ROWS = 2000
MOST_PREDICTED_ROWS = 200
# Rows with a curve of their own.
N_INDIVIDUAL = 30
# A row could have a value that is within this many standard deviations of what a regression on the others expects.
WITHIN = 3.0


@dataclass(frozen=True, eq=False)
class AveragedRows:
    """The rows that curves are averages over, and what is told of some of them."""

    X: np.ndarray  # (n, p) in the user's units
    is_shown: np.ndarray  # (n,), those with a curve of their own
    is_latent: bool  # whether curves are those of the latent mean, which the mean of a normal observation is, too
    regression: Regression

    @classmethod
    def drawn(cls, asked: Asked, latent: bool, seed: int) -> Self:
        rng = np.random.default_rng(seed)
        is_latent = latent or _is_normal(asked)
        is_summed = is_latent and asked.is_closed
        X = asked.X[_some(len(asked.X), MOST_ROWS if is_summed else MOST_PREDICTED_ROWS, rng)]
        is_shown = np.zeros(len(X), dtype=bool)
        is_shown[_some(len(X), N_INDIVIDUAL, rng)] = True
        return cls(X, is_shown, is_latent, Regression.of(X, used_columns(asked.model)))


@dataclass(frozen=True, eq=False)
class Regression:
    """What each column is expected to be given the others that a model uses, and how far it is from that."""

    columns: tuple[int, ...]
    mean: np.ndarray  # (n, k)
    sd: np.ndarray  # (k,)

    @classmethod
    def of(cls, X: np.ndarray, columns: Sequence[int]) -> Self:
        varying = tuple(column for column in columns if np.ptp(X[:, column]) > 0)
        if not varying or len(X) < 3:
            return cls((), np.empty((len(X), 0)), np.empty(0))
        there = X[:, list(varying)]
        conditionals = fit_conditionals(InputMoments.of(there), "auto")
        return cls(varying, conditionals.mean(there), conditionals.sd)

    def support(self, unit: Sequence[int], axis: Axis) -> np.ndarray:
        """The share of rows that could have each value; 1 for categories, of which it does not know."""
        if axis.labels is not None or unit[0] not in self.columns:
            return np.ones(len(axis.values))
        k = self.columns.index(unit[0])
        return np.mean(np.abs(axis.values[:, 0] - self.mean[:, [k]]) <= WITHIN * self.sd[k], axis=0)


def _is_normal(asked: Asked) -> bool:
    first = next(iter(asked.members))
    response = first.at(first.inputs.points(asked.X[:1]))
    return isinstance(response.distribution(latent=False), Gaussian)


def _some(n: int, most: int, rng: np.random.Generator) -> np.ndarray:
    """At most this many of n numbers, ascending."""
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


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
        return words_and_table(f"{self.name}: {self.course.told}", self.to_frame())

    @property
    def leaves_the_data(self) -> bool:
        """Whether some of its values are such as nine rows of ten could not have."""
        return not self.is_supported.all()


@dataclass(frozen=True, eq=False, repr=False)
class Effects(Savable):
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
        raise KeyError(f"There is no curve of {name!r}; there are those of {listed(self.names)}.")

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
        caution = f" Curves of {listed(beyond)} go where nine rows of ten could not be." if beyond else ""
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
        return words_and_table(self.told, pd.DataFrame(lines))


def _value(curve: Curve, place: int) -> str:
    return curve.labels[place][:10] if curve.labels else f"{curve.x[place]:.4g}"
