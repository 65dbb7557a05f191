"""The verb: apply a measure to a model and make the record."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import scipy

from gpsift._utils.notices import notice
from gpsift._utils.progress import counted
from gpsift._utils.threads import blas_threads_for
from gpsift.reference.base import Reference
from gpsift.reference.inputs import Inputs
from gpsift.reference.lookup import as_reference
from gpsift.relevance.everywhere import scores_everywhere
from gpsift.relevance.groups import group_coordinates
from gpsift.relevance.intervals import ScoresAround, scores_around
from gpsift.relevance.measure import Measure, Relevance
from gpsift.relevance.named import read_measure
from gpsift.relevance.points import RankedPoints
from gpsift.relevance.ranking import Ranking
from gpsift.relevance.scored import ScoredUnits
from gpsift.relevance.switched import relevance_of_used, used_units
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
        The points at which to look; by default those that the model was fitted on. Rows of dask collections are visited
        where they are: scores are those of all rows, what is told point by point is that of a sample of 10,000.
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
    measure = read_measure(measure)
    _check_aggregate(aggregate)
    looked = RankedPoints.read(model.inputs, X, points, seed, measure)
    if intervals and looked.everywhere is not None and not model.draws:
        raise ValueError("`intervals` looks at rows in memory; pass some of them as `X`, such as `X.head(1000)`.")
    units = ScoredUnits.read(groups, categorical, looked.points.inputs)
    if model.explains is False:
        notice(NOTHING_EXPLAINED)
    scored = _Scored(model, measure, looked, units, aggregate)
    found = scored.relevances()
    first = found[0]
    for message in first.notices:
        notice(message)
    scores = scored.scores(found)
    is_pointwise = first.values.ndim == 2
    used, slopes = used_units(model, units)
    ranking = Ranking(
        measure=measure.label,
        scores=np.mean(scores, axis=0),
        pointwise=_average([each.values for each in found]) if is_pointwise else None,
        names=units.names,
        units=first.units,
        points=group_coordinates(looked.points, units.columns),
        rows=looked.numbers,
        terms={name: _average([each.terms[name] for each in found]) for name in first.terms},
        details={
            "aggregate": aggregate if is_pointwise else None,
            "n_points": looked.n_scored,
            "seed": seed if looked.drawn else None,
            **first.details,
            "versions": versions(),
            **_details_of_units(units, looked.points.inputs, groups),
        },
        draws=np.array(scores) if model.draws else None,
        used=used,
        slopes=slopes,
        around=scored.around(seed),
    )
    return ranking.with_intervals() if intervals else ranking


@dataclass(frozen=True, eq=False)
class _Scored:
    """What is scored: the units of a model by a measure at points, whose scores are aggregated."""

    model: Reference
    measure: Measure
    looked: RankedPoints
    units: ScoredUnits
    aggregate: str | float

    def relevances(self) -> list[Relevance]:
        """Of the model, or of each of its draws."""
        points, X = self.looked.points, self.looked.points.inputs.X
        with blas_threads_for(len(points) if X is None else len(X)):
            return [relevance_of_used(self.measure, each, points, self.units) for each in self._members()]

    def scores(self, found: Sequence[Relevance]) -> list[np.ndarray]:
        """Aggregated over the points, or over all rows where these are elsewhere."""
        if found[0].values.ndim == 1:
            return [each.values for each in found]
        everywhere = self.looked.everywhere
        if everywhere is None:
            return [self.aggregated(each.values) for each in found]
        return [
            scores_everywhere(everywhere, self.measure, each, self.units, self.aggregate) for each in self._members()
        ]

    def around(self, seed: int) -> Callable[[], ScoresAround] | None:
        """What makes scores with other hyperparameters, of points in memory; a model of draws has them."""
        if self.looked.everywhere is not None or self.model.draws:
            return None
        return partial(scores_around, self.model, self.measure, self.looked.points, self.units, self.aggregated, seed)

    def aggregated(self, pointwise: np.ndarray) -> np.ndarray:
        """The scores of points as one for each unit."""
        if isinstance(self.aggregate, str):
            return pointwise.mean(axis=0) if self.aggregate == "mean" else pointwise.max(axis=0)
        return np.quantile(pointwise, self.aggregate, axis=0)

    def _members(self) -> Iterator[Reference]:
        """The draws of the model, or itself if it has none."""
        members = self.model.draws or (self.model,)
        return counted(members, len(members))


def _details_of_units(
    units: ScoredUnits, inputs: Inputs, groups: Mapping[str, Sequence[str | int]] | None
) -> dict[str, Any]:
    """Which columns the groups have, and how many levels the categories, where there are any."""
    details: dict[str, Any] = {}
    if groups:
        columns = dict(zip(units.names, units.columns, strict=True))
        details["groups"] = {name: tuple(inputs.names[j] for j in columns[name]) for name in groups}
    if units.levels:
        details["levels"] = dict(units.n_levels)
    return details


def _average(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return arrays[0] if len(arrays) == 1 else np.mean(arrays, axis=0)


def versions() -> dict[str, str]:
    """Versions of what computed a result."""
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
