"""Compute how the average prediction over the rows changes along each feature, with a posterior band.

`effects` averages the curves of `partial_dependence.py` over the rows, and returns `Effects`. A linear regression of
each feature on the others says which values of a curve the rows could have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gpsift._utils.text import join_names, summary_html
from gpsift._utils.validation import feature_index
from gpsift.decomposition.context import EffectContext, ValueGrid, value_grid
from gpsift.decomposition.course import Course, describe_curve
from gpsift.decomposition.margins import read_margins
from gpsift.decomposition.partial_dependence import CurveGrid, ModelCurves, PartialDependence, pool_draws
from gpsift.decomposition.records import FunctionRecord
from gpsift.io.serializable import Serializable
from gpsift.likelihoods.distributions import Gaussian
from gpsift.reference.base import Reference
from gpsift.reference.inputs import InputMoments
from gpsift.relevance import KL
from gpsift.relevance.conditionals import fit_conditionals
from gpsift.relevance.feature_groups import FeatureGroups
from gpsift.relevance.measure import score_groups
from gpsift.relevance.rank import versions

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# The largest number of rows that curves are averaged over: in closed form, and where each is predicted at each value.
MOST_ROWS = 2000
MOST_PREDICTED_ROWS = 200
# The number of rows whose own curves are drawn, and of rows in the rug.
N_INDIVIDUAL = 30
N_RUG = 200
# Draws of the hyperparameters that a band is pooled over: a mean and a variance need fewer than quantiles.
N_DRAWS = 50
# A row could have values within this many standard deviations of its prediction by a regression on other columns.
SUPPORT_SDS = 3.0
# A value is supported by the data if at least this share of the rows could have it.
LEAST_SUPPORT = 0.1
# The 97.5 % quantile of a normal distribution.
QUANTILE = 1.96


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
    """Average the prediction over the rows as each feature varies: a curve for each feature, with its band.

    Parameters
    ----------
    model : fitted model
        As in `variance_shares`. Curves of any other model are averages of its own predictions, without a band.
    X : array or data frame (n, p), optional
        The rows to average over; by default those of the fit. Of more than 2000 a sample is taken, and of more than 200
        for likelihoods other than normal noise and for models that only predict.
    features : iterable of names or numbers, optional
        The features, or categories, that get a curve; by default those that the model depends on.
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
    context = EffectContext.read(model, X, groups, categorical, of)
    named = context.units
    context = replace(context, units=named.ungroup(context.points.inputs.names))
    units = _select_units(features, named, context)
    rows = AveragedRows.draw(context, latent, seed)
    # Every unit has a grid: `ungroup` has split the groups that are no category.
    values = [grid for unit in units if (grid := value_grid(context, unit)) is not None]
    margins = read_margins("data", context.X, context.units.select(*units))
    columns = [context.units.columns[unit] for unit in units]
    grids = [CurveGrid(*each) for each in zip(columns, [grid.values for grid in values], margins, strict=True)]
    with context.blas_threads():
        members = [ModelCurves.of(each, rows.X, rows.is_latent) for each in context.members]
        average = float(np.mean([member.predict(rows.X)[0] for member in members]))
        if intervals and not context.is_ensemble:
            found, k_hat = _curves_of_draws(context, grids, rows, seed)
        else:
            found, k_hat = [[member.partial_dependence(grid) for grid in grids] for member in members], None
    mean_of = "the mean of an observation" if context.of is None else f"the probability of {context.of}"
    if rows.is_latent:
        mean_of = context.model.mean_of
    pooled = [pool_draws(each).add_row_sampling() for each in zip(*found, strict=True)]
    return Effects(
        curves=tuple(_make_curve(*each, context, rows) for each in zip(units, values, pooled, strict=True)),
        average=average,
        mean_of=mean_of,
        band=_describe_band(pooled, rows, len(found)),
        of=context.of,
        how="closed form" if context.is_closed and rows.is_latent else "averages of the model's own predictions",
        k_hat=k_hat,
        details={"n_rows": len(rows.X), "seed": seed, "versions": versions()},
    )


@dataclass(frozen=True, eq=False)
class Curve:
    """The average prediction along one feature, less its own average over the rows.

    Attributes
    ----------
    name : str
    x : array (g,)
        Values of the feature, or for a category the indices of its `labels`.
    mean, sd : arrays (g,)
        The average over the rows, and the standard deviation of the average over all rows that there could be: that of
        the posterior, and of the rows as a sample.
    covariance : array (g, g)
        The covariance of this average at all values.
    individual : array (r, g)
        The curves of some rows, each less its own average: where they differ, the feature acts with others.
    support : array (g,)
        The share of the rows that could have the value, as far as a linear regression on the other features says.
    rug : array (r,)
        Values of some rows.
    labels : tuple of str
        The levels of a category.
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
        """The difference between the largest and the smallest value of `mean`."""
        return float(np.ptp(self.mean)) if self.mean.size else 0.0

    @property
    def band(self) -> np.ndarray:
        """95 % intervals at each value, (g, 2)."""
        return self.mean[:, None] + QUANTILE * self.sd[:, None] * np.array([-1.0, 1.0])

    @property
    def is_supported(self) -> np.ndarray:
        """Whether enough of the rows could have each value, (g,)."""
        return self.support >= LEAST_SUPPORT

    @property
    def leaves_the_data(self) -> bool:
        """Whether nine rows of ten could not have some of the values."""
        return not self.is_supported.all()

    @cached_property
    def course(self) -> Course:
        """The rises and falls of the curve, and where it turns; ``curve.course.told`` has them in words."""
        return describe_curve(self.x, self.mean, self.covariance, self.individual, self.labels)

    def at(self, place: int) -> str:
        """Return one of the values as text."""
        return self.labels[place] if self.labels else f"{self.x[place]:.4g}"

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with a row for each value."""
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


@dataclass(frozen=True, eq=False, repr=False)
class Effects(FunctionRecord, Serializable):
    """The effects of features on the prediction, on average over the rows.

    Attributes
    ----------
    curves : tuple of Curve
        The most relevant feature first.
    average : float
        The mean prediction over the rows.
    band : str
        How the bands were made.
    k_hat : float or None
        How far to trust draws that bands were pooled over: up to 0.7.
    mean_of, of, how, details
        As in `VarianceShares`; `mean_of` is the quantity that is predicted.
    """

    curves: tuple[Curve, ...]
    average: float
    band: str = "closed form"
    k_hat: float | None = None

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
        """Return a data frame with a row for each value of each feature."""
        import pandas as pd

        frames = [curve.to_frame() for curve in self.curves]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    def plot(self) -> Figure:
        """Draw a panel for each feature on one axis: average curve with its band, curves of some rows, the data."""
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
            low, high = (curve.at(int(place)) for place in (np.argmin(curve.mean), np.argmax(curve.mean)))
            low, high = (low[:10], high[:10]) if curve.labels else (low, high)
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


@dataclass(frozen=True, eq=False)
class AveragedRows:
    """The rows that curves are averaged over, with a linear regression of each varying column on the others."""

    X: np.ndarray  # (n, p) in the user's units
    is_shown: np.ndarray  # whether rows have a curve of their own, (n,)
    is_latent: bool  # whether curves are those of the latent mean, which is also the mean of a Gaussian observation
    regressed: tuple[int, ...]  # the columns of the regressions
    fitted: np.ndarray  # (n, k)
    residual_sd: np.ndarray  # (k,)

    @classmethod
    def draw(cls, context: EffectContext, latent: bool, seed: int) -> Self:
        """Choose rows of the context, at random where there are too many."""
        rng = np.random.default_rng(seed)
        first = context.first_member
        response = first.at(first.inputs.points(context.X[:1]))
        is_latent = latent or isinstance(response.distribution(latent=False), Gaussian)
        most = MOST_ROWS if is_latent and context.is_closed else MOST_PREDICTED_ROWS
        X = context.X[_sample_rows(len(context.X), most, rng)]
        is_shown = np.zeros(len(X), dtype=bool)
        is_shown[_sample_rows(len(X), N_INDIVIDUAL, rng)] = True
        varying = tuple(column for column in context.model.used if np.ptp(X[:, column]) > 0)
        if not varying or len(X) < 3:
            return cls(X, is_shown, is_latent, (), np.empty((len(X), 0)), np.empty(0))
        inputs = X[:, list(varying)]
        conditionals = fit_conditionals(InputMoments.of(inputs), "auto")
        return cls(X, is_shown, is_latent, varying, conditionals.mean(inputs), conditionals.sd)

    def support(self, unit: Sequence[int], grid: ValueGrid) -> np.ndarray:
        """Return the share of rows that could have each value; 1 for categories, which have no regression."""
        if grid.labels is not None or unit[0] not in self.regressed:
            return np.ones(len(grid.values))
        k = self.regressed.index(unit[0])
        return np.mean(np.abs(grid.values[:, 0] - self.fitted[:, [k]]) <= SUPPORT_SDS * self.residual_sd[k], axis=0)


def _sample_rows(n: int, most: int, rng: np.random.Generator) -> np.ndarray:
    """Draw at most `most` of n row numbers, ascending."""
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


def _select_units(features: Iterable[str | int] | None, named: FeatureGroups, context: EffectContext) -> list[int]:
    """Select the units that get a curve, by falling KL; a group of `named` gives the units of its columns."""
    units, selected = context.units, []
    if features is None:
        used = set(context.model.used)
        selected = [unit for unit, columns in enumerate(units.columns) if used.intersection(columns)]
    elif isinstance(features, str):
        raise TypeError(f"`features` must list features, such as [{features!r}], got {features!r} itself.")
    for feature in features or ():
        number = feature_index(feature, named.names)
        if number is not None:
            own = set(named.columns[number])
            selected += [unit for unit, columns in enumerate(units.columns) if own.issuperset(columns)]
        elif feature in units.names:
            selected.append(units.names.index(str(feature)))
        else:
            raise ValueError(f"There is no feature {feature!r}; the features are {join_names(named.names)}.")
    measure = KL(latent=context.of is not None)  # one of several functions has no observation of its own
    relevance = score_groups(measure, context.first_member, context.points, units).values.mean(axis=0)
    return sorted(dict.fromkeys(selected), key=lambda unit: -relevance[unit])


def _curves_of_draws(
    context: EffectContext, grids: Sequence[CurveGrid], rows: AveragedRows, seed: int
) -> tuple[list[list[PartialDependence]], float]:
    """Compute curves with hyperparameters drawn from their approximate posterior, and the k-hat of these draws."""
    columns = context.model.open_columns
    kept, X = [grid.on_columns(columns) for grid in grids], rows.X[:, list(columns)]

    def curves(each: Reference) -> list[PartialDependence]:
        member = ModelCurves.of(each, X, rows.is_latent)
        return [member.partial_dependence(grid) for grid in kept]

    return context.map_draws(curves, N_DRAWS, seed)


def _make_curve(
    unit: int, grid: ValueGrid, found: PartialDependence, context: EffectContext, rows: AveragedRows
) -> Curve:
    columns = context.units.columns[unit]
    return Curve(
        name=context.units.names[unit],
        x=grid.coordinates,
        mean=found.curves.mean(axis=0),
        sd=np.sqrt(np.maximum(np.diag(found.covariance), 0.0)),
        covariance=found.covariance,
        individual=found.curves[rows.is_shown],
        support=rows.support(columns, grid),
        rug=np.empty(0) if grid.labels is not None else rows.X[:N_RUG, columns[0]],
        labels=grid.labels or (),
    )


def _describe_band(curves: Sequence[PartialDependence], rows: AveragedRows, n_draws: int) -> str:
    if any(np.isnan(curve.covariance).any() for curve in curves):
        return "none: curves are averages of the model's own predictions"
    over = f", over {n_draws} draws of the hyperparameters" if n_draws > 1 else ""
    return f"{'closed form' if rows.is_latent else 'delta method'}{over}"
