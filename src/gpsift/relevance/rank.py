"""The verb: apply a measure to a model and make the record."""

from __future__ import annotations

import operator
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
import scipy

from gpsift.adapters import as_reference
from gpsift.notices import notice
from gpsift.reference import Reference
from gpsift.relevance.categories import Levels, own_categories, read_categories
from gpsift.relevance.groups import group_coordinates, read_groups
from gpsift.relevance.kl import KL
from gpsift.relevance.measure import Measure, Relevance
from gpsift.results import Ranking
from gpsift.tables import read_features
from gpsift.threads import blas_threads_for
from gpsift.version import __version__


def rank(
    model: Any,
    X: Any = None,
    measure: Measure | None = None,
    *,
    groups: Mapping[str, Sequence[str | int]] | None = None,
    categorical: Iterable[str | int] | None = None,
    points: int | Any = None,
    aggregate: str | float = "mean",
    seed: int = 0,
) -> Ranking:
    """Rank the features of a fitted model by how its predictions react to them.

    Parameters
    ----------
    model : fitted model
        Such as ``GP().fit(X, y)``, or a model of another library that `as_reference` reads.
    X : array or data frame (n, p), optional
        The points at which to look; by default those that the model was fitted on.
    measure : Measure, optional
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
    seed : int
        For the choice of `points`.

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
    measure = KL() if measure is None else measure
    model = as_reference(model)
    _check_measure(measure)
    _check_aggregate(aggregate)
    values = _read_points(model, X)
    names, columns = read_groups(groups, model.feature_names)
    if categorical is None:
        categories = own_categories(model, columns)
    else:
        categories = read_categories(categorical, names, columns, model.feature_names)
    rows = _choose_rows(points, values.shape[0], seed)
    if model.explains is False:
        notice(
            "The model does not predict better than no inputs at all, or not by more than fitting noise would give "
            "(leave-one-out elpd and evidence against the empty model), so the ranking says little about the data. See "
            "the quality of the fit."
        )
    with blas_threads_for(values.shape[0] if model.X_train is None else model.X_train.shape[0]):
        levels = {unit: Levels.found(model, values, columns[unit], names[unit]) for unit in categories}
        drawn = [_relevance(measure, member, values, rows, columns, levels) for member in model.draws]
        found = drawn or [_relevance(measure, model, values, rows, columns, levels)]
    first = found[0]
    for message in first.notices:
        notice(message)
    is_pointwise = first.values.ndim == 2
    draws = np.array([_aggregated(each.values, aggregate) if is_pointwise else each.values for each in found])
    details = {
        "aggregate": aggregate if is_pointwise else None,
        "n_points": values.shape[0] if rows is None else len(rows),
        "seed": seed if rows is not None and np.ndim(points) == 0 else None,
        **first.details,
        "versions": versions(),
    }
    if groups:
        members = dict(zip(names, columns, strict=True))
        details["groups"] = {name: tuple(model.feature_names[j] for j in members[name]) for name in groups}
    if levels:
        details["levels"] = {names[unit]: len(each.shares) for unit, each in levels.items()}
    return Ranking(
        measure=measure.label,
        scores=draws.mean(axis=0),
        pointwise=_average([each.values for each in found]) if is_pointwise else None,
        names=names,
        units=first.units,
        points=group_coordinates(model, values, rows, columns),
        rows=np.arange(values.shape[0]) if rows is None else rows,
        terms={name: _average([each.terms[name] for each in found]) for name in first.terms},
        details=details,
        draws=draws if drawn else None,
    )


def _relevance(
    measure: Measure,
    model: Reference,
    X: np.ndarray,
    rows: np.ndarray | None,
    units: tuple[tuple[int, ...], ...],
    levels: Mapping[int, Levels],
) -> Relevance:
    """Scores of the units: categories by their levels, all others as they move."""
    moving = tuple(unit for number, unit in enumerate(units) if number not in levels)
    found = _moving_relevance(measure, model, X, rows, moving) if moving else None
    if not levels:
        assert found is not None
        return found
    changing = {unit: measure.category_relevance(model, X, rows, each) for unit, each in levels.items()}
    return _merged(found, changing, len(units))


def _moving_relevance(
    measure: Measure, model: Reference, X: np.ndarray, rows: np.ndarray | None, units: tuple[tuple[int, ...], ...]
) -> Relevance:
    """Units of one column each, whatever they are called, are the features themselves."""
    if any(len(unit) > 1 for unit in units):
        return measure.group_relevance(model, X, rows, units)
    found = measure.relevance(model, X, rows)
    columns = [unit[0] for unit in units]
    if len(columns) == X.shape[1]:
        return found
    terms = {name: term[..., columns] for name, term in found.terms.items()}
    return replace(found, values=found.values[..., columns], terms=terms)


def _merged(moving: Relevance | None, changing: Mapping[int, Relevance], n_units: int) -> Relevance:
    """The scores of both kinds of units in the order of the units."""
    first = moving if moving is not None else next(iter(changing.values()))
    others = [unit for unit in range(n_units) if unit not in changing]

    def joined(part: Callable[[Relevance], np.ndarray]) -> np.ndarray:
        columns = {unit: part(each) for unit, each in changing.items()}
        if moving is not None:
            columns |= dict(zip(others, part(moving).T, strict=True))
        return np.column_stack([columns[unit] for unit in range(n_units)])

    units = first.units
    for each in changing.values():
        units = units if each.units in units else f"{units}, of categories {each.units}"
    terms = {name: joined(operator.methodcaller("term", name)) for name in first.terms}
    return replace(first, values=joined(operator.attrgetter("values")), units=units, terms=terms)


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


def _check_measure(measure: Any) -> None:
    if isinstance(measure, Measure):
        return
    if isinstance(measure, type) and issubclass(measure, Measure):
        raise TypeError(f"`measure` must be an instance: write {measure.__name__}() with parentheses.")
    raise TypeError(f"`measure` must be a measure such as KL(), VAR() or ARD(), got {measure!r}.")


def _read_points(model: Reference, X: Any) -> np.ndarray:
    if X is None:
        if model.X_train is None:
            raise ValueError("This model does not know its training inputs; pass the points to look at as `X`.")
        return model.X_train
    if type(X) is np.ndarray and model.X_train is not None and np.array_equal(X, model.X_train):
        return model.X_train  # the same array from here on, checked when the model was fitted
    values, names = read_features(X)
    model.check_features(names, values.shape[1])
    return values


def _choose_rows(points: Any, n: int, seed: int) -> np.ndarray | None:
    if points is None:
        return None
    if isinstance(points, int | np.integer) and not isinstance(points, bool):
        if points < 1:
            raise ValueError(f"`points` must be at least 1, got {points}.")
        if points >= n:
            return None
        return np.sort(np.random.default_rng(seed).choice(n, size=int(points), replace=False))
    rows = np.asarray(points)
    if rows.dtype == bool and rows.shape == (n,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or rows.size == 0 or rows.dtype.kind not in "iu":
        raise ValueError("`points` must be a number of rows, or a 1-d array of row indices or of n booleans.")
    if rows.min() < 0 or rows.max() >= n:
        raise ValueError(f"`points` names row {rows.max() if rows.max() >= n else rows.min()} but `X` has {n} rows.")
    return rows


def _check_aggregate(aggregate: Any) -> None:
    is_number = isinstance(aggregate, Real) and not isinstance(aggregate, bool)
    if (isinstance(aggregate, str) and aggregate in ("mean", "max")) or (is_number and 0 <= aggregate <= 1):
        return
    raise ValueError(f'`aggregate` must be "mean", "max" or a quantile between 0 and 1, got {aggregate!r}.')


def _aggregated(pointwise: np.ndarray, aggregate: str | float) -> np.ndarray:
    if isinstance(aggregate, str):
        return pointwise.mean(axis=0) if aggregate == "mean" else pointwise.max(axis=0)
    return np.quantile(pointwise, aggregate, axis=0)
