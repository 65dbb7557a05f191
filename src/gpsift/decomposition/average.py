"""The verb: how the prediction changes along each feature, on average over the rows as they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpsift._utils.grouping import number_of
from gpsift._utils.threads import blas_threads_for
from gpsift._utils.words import listed
from gpsift.decomposition.along import Along, Member, Way, pooled
from gpsift.decomposition.asked import Asked
from gpsift.decomposition.averaged_rows import AveragedRows
from gpsift.decomposition.axes import N_VALUES, Axis, axis_of
from gpsift.decomposition.margins import read_margins
from gpsift.decomposition.record_effects import Curve, Effects
from gpsift.reference.base import DrawRequest, Reference
from gpsift.relevance import KL
from gpsift.relevance.feature_groups import FeatureGroups, score_groups
from gpsift.relevance.intervals import warn_if_unreliable
from gpsift.relevance.rank import versions

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
    asked = replace(asked, units=named.ungrouped(asked.points.inputs.names))
    chosen = _by_relevance(_chosen(features, named, asked), asked)
    rows = AveragedRows.drawn(asked, latent, seed)
    axes = [_axis(unit, asked) for unit in chosen]
    ways = [_way(unit, axis, asked) for unit, axis in zip(chosen, axes, strict=True)]
    with blas_threads_for(asked.model.inputs.n_rows or len(asked.X)):
        members = [Member.of(each, rows.X, rows.is_latent) for each in asked.members]
        average = float(np.mean([member.predicted(rows.X)[0] for member in members]))
        if intervals and not asked.is_ensemble:
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
    (margin,) = read_margins("data", asked.X, asked.units.select(unit))
    return Way(asked.units.columns[unit], axis.values, margin)


def _around(asked: Asked, ways: Sequence[Way], rows: AveragedRows, seed: int) -> tuple[list[list[Along]], float]:
    """Curves with hyperparameters drawn from an approximation of their posterior, and the k-hat of these draws."""
    model = asked.model
    assert isinstance(model, Reference)
    columns = model.open_columns
    seen, X = [way.on_columns(columns) for way in ways], rows.X[:, list(columns)]

    def of(each: Reference) -> list[Along]:
        member = Member.of(each, X, rows.is_latent)
        return [member.along(way) if way.columns else _flat(way, len(X)) for way in seen]

    drawn = model.map_draws(of, DrawRequest(N_DRAWS, seed))
    warn_if_unreliable(drawn.k_hat)
    return drawn.values, drawn.k_hat


def _flat(way: Way, n: int) -> Along:
    """Along a unit that no draw depends on."""
    g = len(way.values)
    return Along(np.zeros((n, g)), np.zeros((g, g)))


def _chosen(features: Iterable[str | int] | None, named: FeatureGroups, asked: Asked) -> list[int]:
    """The numbers of what has a curve, of the features as users name them, the columns of groups among them."""
    if features is None:
        used = set(asked.model.used)
        return [unit for unit, columns in enumerate(asked.units.columns) if used.intersection(columns)]
    if isinstance(features, str):
        raise TypeError(f"`features` must list features, such as [{features!r}], got {features!r} itself.")
    return [unit for feature in features for unit in _units_of(feature, named, asked.units)]


def _units_of(feature: str | int, named: FeatureGroups, opened: FeatureGroups) -> list[int]:
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
    relevance = score_groups(measure, first, asked.points, asked.units).values.mean(axis=0)
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
