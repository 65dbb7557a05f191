"""Rank the features of a model: read the arguments, apply a measure, and make the `Ranking`."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import scipy

from gpsift._utils.progress import track
from gpsift._utils.rows import Rows
from gpsift._utils.threads import blas_threads_for
from gpsift._utils.warnings import warn
from gpsift.reference.base import Reference
from gpsift.reference.ensemble import Ensemble, members_of
from gpsift.reference.inputs import Inputs
from gpsift.reference.lookup import as_reference
from gpsift.relevance.ard import ARD
from gpsift.relevance.dask import aggregate_scores
from gpsift.relevance.derivative import Derivative
from gpsift.relevance.feature_groups import FeatureGroups, apply_measure, group_coordinates, score_groups
from gpsift.relevance.intervals import draw_scores
from gpsift.relevance.kl import KL
from gpsift.relevance.measure import Measure, Relevance
from gpsift.relevance.points import RankedPoints
from gpsift.relevance.ranking import Ranking, ScoreDraws
from gpsift.relevance.rate import RATE
from gpsift.relevance.var import VAR
from gpsift.version import __version__

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
        variable. All others stay on their own. For `KL`, `VAR`, `Derivative` and `RATE`.
    categorical : iterable of names or indices, optional
        Features whose values are levels, and groups of columns that code one category together (indicators): scored by
        changes from level to level, for `KL` and `VAR`. By default those that the model itself takes as categories.
    points : int or indices, optional
        Use only this many rows of X, drawn with `seed`, or the rows with these indices.
    aggregate : {"mean", "max"} or float
        How the scores of the points become one: the mean as in the paper, the maximum, which finds features that matter
        for few rows, or a quantile between 0 and 1.
    intervals : bool
        Whether to say at once how far the data leave the scores open: for the price of a fit or two, scores with other
        hyperparameters that explain the data as well. Without, `Ranking.interval` and `Ranking.rank_probability` do it
        when they are asked. A model whose hyperparameters were drawn (`NUTS`) has them anyway.
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
    model = as_reference(model)
    measure = get_measure(measure)
    _check_aggregate(aggregate)
    read = RankedPoints.read(model.inputs, X, points, seed, measure)
    if intervals and read.full_data is not None and not isinstance(model, Ensemble):
        raise ValueError("`intervals` looks at rows in memory; pass some of them as `X`, such as `X.head(1000)`.")
    feature_groups = FeatureGroups.read(groups, categorical, read.points.inputs)
    if model.explains is False:
        warn(NOTHING_EXPLAINED)
    scoring = _Scoring(model, measure, read, feature_groups, aggregate)
    found = scoring.relevances()
    first = found[0]
    for message in first.notices:
        warn(message)
    scores = scoring.scores(found)
    is_pointwise = first.values.ndim == 2
    used, slopes = _used_groups(model, feature_groups)
    ranking = Ranking(
        measure=measure.label,
        scores=np.mean(scores, axis=0),
        pointwise=_average([each.values for each in found]) if is_pointwise else None,
        names=feature_groups.names,
        units=first.units,
        points=group_coordinates(read.points, feature_groups.columns),
        rows=read.rows,
        terms={name: _average([each.terms[name] for each in found]) for name in first.terms},
        details={
            "aggregate": aggregate if is_pointwise else None,
            "n_points": read.n_scored,
            "seed": seed if read.is_sample else None,
            **first.details,
            "versions": versions(),
            **_details_of_groups(feature_groups, read.points.inputs, groups),
        },
        draws=np.array(scores) if isinstance(model, Ensemble) else None,
        used=used,
        slopes=slopes,
        draw_scores=scoring.draw_scores(seed),
    )
    return ranking.with_intervals() if intervals else ranking


@dataclass(frozen=True, eq=False)
class _Scoring:
    """A measure, the model, points and groups that it scores, and how the scores of the points become one."""

    model: Reference | Ensemble
    measure: Measure
    read: RankedPoints
    groups: FeatureGroups
    aggregate: str | float

    def relevances(self) -> list[Relevance]:
        """Score the points, for each member of an ensemble."""
        points, X = self.read.points, self.read.points.inputs.X
        with blas_threads_for(len(points) if X is None else len(X)):
            return [score_groups(self.measure, each, points, self.groups) for each in self._members()]

    def scores(self, found: Sequence[Relevance]) -> list[np.ndarray]:
        """Aggregate the scores over the points, or compute and aggregate those of all rows of a dask collection."""
        if found[0].values.ndim == 1:
            return [each.values for each in found]
        rows = self.read.full_data
        if rows is None:
            return [self.aggregated(each.values) for each in found]
        return [
            aggregate_scores(rows, partial(_score_rows, self.measure, _without_rows(each), self.groups), self.aggregate)
            for each in self._members()
        ]

    def draw_scores(self, seed: int) -> Callable[[], ScoreDraws] | None:
        """Return the function that scores other hyperparameters, for points in memory; an ensemble needs none."""
        if self.read.full_data is not None or isinstance(self.model, Ensemble):
            return None
        return partial(draw_scores, self.model, self.measure, self.read.points, self.groups, self.aggregated, seed)

    def aggregated(self, pointwise: np.ndarray) -> np.ndarray:
        """The scores of points as one for each group."""
        if isinstance(self.aggregate, str):
            return pointwise.mean(axis=0) if self.aggregate == "mean" else pointwise.max(axis=0)
        return np.quantile(pointwise, self.aggregate, axis=0)

    def _members(self) -> Iterator[Reference]:
        members = members_of(self.model)
        return track(members, len(members))


def _score_rows(measure: Measure, model: Reference, groups: FeatureGroups, rows: Rows) -> np.ndarray:
    """Score a chunk of rows where it is."""
    return apply_measure(measure, model, model.inputs.points(rows.X, size=rows.size), groups).values


def _without_rows(model: Any) -> Reference:
    """The model without its own rows, which makes it light enough to be sent to where rows are."""
    return model if model.inputs.source is None else replace(model, inputs=replace(model.inputs, source=None))


def _used_groups(model: Reference | Ensemble, groups: FeatureGroups) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Which groups a model uses, and the steepest slopes of the others; None where it uses all columns."""
    on = set(model.used)
    if len(on) == model.inputs.n_features:
        return None, None
    used = np.array([bool(on.intersection(columns)) for columns in groups.columns])
    slopes = np.array([model.slopes[list(columns)].max() for columns in groups.columns])
    return used, np.where(used, -np.inf, slopes)


def _details_of_groups(
    scored: FeatureGroups, inputs: Inputs, groups: Mapping[str, Sequence[str | int]] | None
) -> dict[str, Any]:
    """The columns of named groups and the numbers of levels of categories, for the details of the ranking."""
    details: dict[str, Any] = {}
    if groups:
        columns = dict(zip(scored.names, scored.columns, strict=True))
        details["groups"] = {name: tuple(inputs.names[j] for j in columns[name]) for name in groups}
    if scored.levels:
        details["levels"] = dict(scored.n_levels)
    return details


def _average(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return arrays[0] if len(arrays) == 1 else np.mean(arrays, axis=0)


def versions() -> dict[str, str]:
    """Versions of the software that computed a result."""
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
    """The names of the measures; each stands for the measure with its default choices."""

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
    """Return the measure that is given as an object, by its name, or as None, which is `KL()`.

    `others` are further names that the caller understands, for the error message.
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
