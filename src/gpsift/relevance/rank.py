"""Rank the features of a model: read the arguments, apply a measure, and make the `Ranking`."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from itertools import chain, islice
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy

from gpsift._utils.progress import track
from gpsift._utils.rows import Rows, Totals
from gpsift._utils.threads import blas_threads_for
from gpsift._utils.warnings import warn
from gpsift.reference.base import Reference
from gpsift.reference.ensemble import Ensemble, members_of
from gpsift.reference.inputs import Inputs
from gpsift.reference.lookup import as_reference
from gpsift.relevance.ard import ARD
from gpsift.relevance.derivative import Derivative
from gpsift.relevance.feature_groups import FeatureGroups, group_coordinates
from gpsift.relevance.intervals import draw_scores, draw_scores_of_members
from gpsift.relevance.kl import KL
from gpsift.relevance.measure import Measure, apply_measure, score_groups
from gpsift.relevance.points import RankedPoints
from gpsift.relevance.ranking import HYPERPARAMETERS, Ranking, ScoreDraws
from gpsift.relevance.rate import RATE
from gpsift.relevance.var import VAR
from gpsift.version import __version__

if TYPE_CHECKING:
    from gpsift.reference.dask import ClusterRows

NOTHING_EXPLAINED = (
    "The model does not predict better than no inputs at all, or not by more than fitting noise would give "
    "(leave-one-out elpd and evidence against the empty model), so the ranking says little about the data. See the "
    "quality of the fit; with priors, `GP(hyper=MAP())`, or with `Sift()` it fits less of the noise."
)


def rank(
    model: Any,
    X: Any = None,
    measure: Measure | str | None = None,
    *,
    groups: Mapping[str, Sequence[str | int]] | None = None,
    categorical: Iterable[str | int] | None = None,
    points: int | Any = None,
    aggregate: str | float = "mean",
    intervals: bool = False,
    seed: int = 0,
) -> Ranking:
    """Rank the features of a fitted model by how its predictions react to them.

    Parameters
    ----------
    model : fitted model
        Such as ``GP().fit(X, y)``, or a model of another library that `as_reference` reads.
    X : array or data frame (n, p), optional
        The points at which features are scored; by default those that the model was fitted on. Rows of dask collections
        are scored where they are: scores are those of all rows, pointwise scores those of a sample of 10,000.
    measure : Measure or {"kl", "var", "ard", "rate", "derivative"}, optional
        `KL()` by default; `VAR()`, `Derivative()`, `RATE()`, `ARD()`.
    groups : mapping of str to sequence of names or indices, optional
        Features to score together, such as ``{"place": ["lat", "lon"]}``: the columns of a category, the powers of a
        variable. All others are scored one by one. For `KL`, `VAR`, `Derivative` and `RATE`.
    categorical : iterable of names or indices, optional
        Features whose values are levels, and groups of columns that code one category together (indicators): scored by
        changes from level to level, for `KL` and `VAR`. By default those that the model treats as categories.
    points : int or indices, optional
        Use only this many rows of X, drawn with `seed`, or the rows with these indices.
    aggregate : {"mean", "max"} or float
        How the scores of the points are aggregated: the mean as in the paper, the maximum, which finds features that
        matter for few rows, or a quantile between 0 and 1.
    intervals : bool
        Whether to compute now, in the time of a fit or two, where the true strengths of the features lie: the scores
        that a model would have that knows the function. Otherwise `Ranking.strength`, `Ranking.interval` and
        `Ranking.rank_probability` compute them when called. A model whose hyperparameters were drawn (`NUTS`) has
        intervals in any case.
    seed : int
        For the choice of `points` and the draws of `intervals`.

    Returns
    -------
    Ranking

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=60)
    >>> ranking = gs.rank(gs.GP().fit(X, y), X)
    >>> [ranking.names[j] for j in ranking.order][0]
    'x1'
    """
    model, measure = as_reference(model), get_measure(measure)
    _check_aggregate(aggregate)
    read = RankedPoints.read(model.inputs, X, points, seed, measure)
    scored, rows = read.points, read.full_data
    if intervals and rows is not None and not isinstance(model, Ensemble):
        raise ValueError("`intervals` looks at rows in memory; pass some of them as `X`, such as `X.head(1000)`.")
    feature_groups = FeatureGroups.read(groups, categorical, scored.inputs)
    if model.explains is False:
        warn(NOTHING_EXPLAINED)

    members = members_of(model)
    with blas_threads_for(len(scored) if scored.inputs.X is None else len(scored.inputs.X)):
        is_ensemble = isinstance(model, Ensemble)
        # An ensemble has draws, too: its members come once more for these, in one count of what is done.
        steps = track(chain(members, members), 2 * len(members)) if is_ensemble else track(members, len(members))
        found = [score_groups(measure, each, scored, feature_groups) for each in islice(steps, len(members))]
    first = found[0]
    for message in first.notices:
        warn(message)

    is_pointwise = first.values.ndim == 2
    if is_pointwise and rows is not None:
        scores = [
            aggregate_over_rows(rows, partial(_score_rows, measure, _drop_rows(each), feature_groups), aggregate)
            for each in track(members, len(members))
        ]
    else:
        scores = [aggregate_over_points(each.values, aggregate) for each in found]

    draws: ScoreDraws | None = None
    draw_scores_later = None  # a function for points in memory; an ensemble has draws
    aggregated = partial(aggregate_over_points, aggregate=aggregate)
    if is_ensemble:
        if rows is None:
            draws = draw_scores_of_members(steps, len(members), measure, scored, feature_groups, aggregated, seed)
        draws = draws or ScoreDraws(np.array(scores), HYPERPARAMETERS)
    elif rows is None:
        draw_scores_later = partial(draw_scores, model, measure, scored, feature_groups, aggregated, seed)

    used, slopes = _used_groups(model, feature_groups)
    ranking = Ranking(
        measure=measure.label,
        scores=np.mean(scores, axis=0),
        pointwise=_average([each.values for each in found]) if is_pointwise else None,
        names=feature_groups.names,
        units=first.units,
        points=group_coordinates(scored, feature_groups.columns),
        rows=read.rows,
        terms={name: _average([each.terms[name] for each in found]) for name in first.terms},
        details={
            "aggregate": aggregate if is_pointwise else None,
            "n_points": read.n_scored,
            "seed": seed if read.is_sample else None,
            **first.details,
            "versions": versions(),
            **_details_of_groups(feature_groups, scored.inputs, groups),
        },
        draws=None if draws is None else draws.scores,
        drawn=None if draws is None else draws.drawn,
        used=used,
        slopes=slopes,
        draw_scores=draw_scores_later,
    )
    return ranking.with_intervals() if intervals else ranking


def aggregate_over_points(values: np.ndarray, aggregate: str | float) -> np.ndarray:
    """Aggregate the scores of points, (n, p), to one for each group; scores without points, (p,), are unchanged."""
    if values.ndim == 1:
        return values
    if isinstance(aggregate, str):
        return values.mean(axis=0) if aggregate == "mean" else values.max(axis=0)
    return np.quantile(values, aggregate, axis=0)


def aggregate_over_rows(
    source: ClusterRows, score_rows: Callable[[Rows], np.ndarray], aggregate: str | float
) -> np.ndarray:
    """Aggregate the scores of all rows of a dask collection; `score_rows` returns those of a chunk, (n, p)."""
    if not isinstance(aggregate, str):
        raise ValueError(
            f"A quantile, aggregate={aggregate!r}, needs the scores of all rows at once, and these are rows of a dask "
            'collection. Use "mean" or "max", or some of the rows: `rank(..., points=10_000)`.'
        )
    found = source.map_reduce(partial(score_sums, score_rows))
    return found.total / found.n if aggregate == "mean" else found.largest


@dataclass(frozen=True, eq=False)
class ScoreSums(Totals):
    """The sum and the largest of the pointwise scores of n rows, (p,) each."""

    n: int
    total: np.ndarray
    largest: np.ndarray

    def __add__(self, other: Self) -> Self:
        return type(self)(self.n + other.n, self.total + other.total, np.maximum(self.largest, other.largest))


def score_sums(score_rows: Callable[[Rows], np.ndarray], rows: Rows) -> ScoreSums:
    """Sum the scores of a chunk of rows. Dask's dashboard shows the name of this function."""
    values = score_rows(rows)
    return ScoreSums(len(values), values.sum(axis=0), values.max(axis=0))


def _score_rows(measure: Measure, model: Reference, groups: FeatureGroups, rows: Rows) -> np.ndarray:
    return apply_measure(measure, model, model.inputs.points(rows.X, size=rows.size), groups).values


def _drop_rows(model: Any) -> Reference:
    """Copy the model without its rows, so that little data are sent to workers."""
    return model if model.inputs.source is None else replace(model, inputs=replace(model.inputs, source=None))


def _used_groups(model: Reference | Ensemble, groups: FeatureGroups) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return which groups a model uses, and the steepest slopes of the others; None where it uses all columns."""
    used_columns = set(model.used)
    if len(used_columns) == model.inputs.n_features:
        return None, None
    used = np.array([bool(used_columns.intersection(columns)) for columns in groups.columns])
    slopes = np.array([model.slopes[list(columns)].max() for columns in groups.columns])
    return used, np.where(used, -np.inf, slopes)


def _details_of_groups(
    scored: FeatureGroups, inputs: Inputs, groups: Mapping[str, Sequence[str | int]] | None
) -> dict[str, Any]:
    """Return the columns of named groups and the numbers of levels of categories, for `Ranking.details`."""
    details: dict[str, Any] = {}
    if groups:
        columns = dict(zip(scored.names, scored.columns, strict=True))
        details["groups"] = {name: tuple(inputs.names[j] for j in columns[name]) for name in groups}
    if scored.levels:
        details["levels"] = {scored.names[k]: len(each.shares) for k, each in scored.levels.items()}
    return details


def _average(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return arrays[0] if len(arrays) == 1 else np.mean(arrays, axis=0)


def versions() -> dict[str, str]:
    """Return the versions of the software that computed a result."""
    return {
        "gpsift": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }


def _check_aggregate(aggregate: Any) -> None:
    is_number = isinstance(aggregate, Real) and not isinstance(aggregate, bool)
    if (isinstance(aggregate, str) and aggregate in ("mean", "max")) or (is_number and 0 <= aggregate <= 1):
        return
    raise ValueError(f'`aggregate` must be "mean", "max" or a quantile between 0 and 1, got {aggregate!r}.')


class MeasureName(StrEnum):
    """The names of the measures with their default choices."""

    KL = "kl"
    VAR = "var"
    ARD = "ard"
    RATE = "rate"
    DERIVATIVE = "derivative"


MEASURES: Mapping[str, type[Measure]] = {
    MeasureName.KL: KL,
    MeasureName.VAR: VAR,
    MeasureName.ARD: ARD,
    MeasureName.RATE: RATE,
    MeasureName.DERIVATIVE: Derivative,
}


def get_measure(measure: Any, *others: str) -> Measure:
    """Return a measure unchanged, or the measure of a name; None is `KL()`.

    `others` are further names that the caller accepts, for the error message.
    """
    if measure is None:
        return KL()
    if isinstance(measure, Measure):
        return measure
    if isinstance(measure, str) and measure in MEASURES:
        return MEASURES[measure]()
    if isinstance(measure, type) and issubclass(measure, Measure):
        raise TypeError(f"`measure` must be an instance: write {measure.__name__}() with parentheses.")
    names = ", ".join(f'"{name}"' for name in (*MEASURES, *others))
    refusal = (
        f"`measure` must be a measure such as KL(), VAR() or ARD(), which scores every feature, or one of {names}, got "
        f"{measure!r}."
    )
    raise ValueError(refusal) if isinstance(measure, str) else TypeError(refusal)
