r"""The verb: how the prediction changes along each feature, on average over the rows as they are.

Curves are those of `gpsift.decomposition.curves`, each less its own average over the values that the feature has in the
rows. Where an observation is not normal, curves are averages of the mean of an observation, h(m_i(t), v_i(t)); by the
delta method their covariance is that of the latent curves with the weights dh / dm / n.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gpsift.decomposition.asked import Asked, placed_posterior
from gpsift.decomposition.axes import N_VALUES, Axis, axis_of
from gpsift.decomposition.curves import RowsOfCurves, Sections
from gpsift.decomposition.margins import Margin, read_margins
from gpsift.decomposition.triple import ProductTriple
from gpsift.families import Gaussian
from gpsift.input_moments import InputMoments
from gpsift.reference import MissingCapability, PlacedPosterior, Reference, Response
from gpsift.relevance import KL
from gpsift.relevance.conditionals import fit_conditionals
from gpsift.relevance.rank import versions
from gpsift.relevance.switched import relevance_of_used, used_columns
from gpsift.results import Curve, Effects
from gpsift.threads import blas_threads_for
from gpsift.words import listed

# Rows that curves are averages over, at most; and where every row has to be predicted at every value.
MOST_ROWS = 2000
MOST_PREDICTED_ROWS = 200
# Rows with a curve of their own, and in the rug.
N_INDIVIDUAL = 30
N_RUG = 200
# A row could have a value that is within this many standard deviations of what a regression on the others expects.
WITHIN = 3.0


@dataclass(frozen=True, eq=False)
class Along:
    """The function along one unit at all rows: means (n, g) and the covariance (g, g) of their average."""

    means: np.ndarray
    covariance: np.ndarray

    def centred(self, n_values: int, weights: np.ndarray) -> Along:
        """At the first values, less the average over the others, which have weights."""
        centring = np.hstack([np.eye(n_values), np.tile(-weights, (n_values, 1))])
        return Along(self.means @ centring.T, centring @ self.covariance @ centring.T)


@dataclass(frozen=True, eq=False)
class Member:
    """A model, or a draw of it, and the rows as it sees them."""

    model: Reference
    predicted: np.ndarray  # the mean of an observation at each row, (n,)
    closed: tuple[PlacedPosterior, RowsOfCurves] | None  # None where there are predictions only

    @classmethod
    def of(cls, model: Reference, X: np.ndarray) -> Self:
        predicted = model.at(model.inputs.points(X)).distribution(latent=False).mean
        if predicted.ndim > 1:
            raise MissingCapability(
                f"{type(model).__name__} predicts several numbers at a row, which have no one curve."
            )
        try:
            placed = placed_posterior(model, X)
            rows = RowsOfCurves(ProductTriple.of(placed.posterior), placed.inputs(X))
        except MissingCapability:
            return cls(model, predicted, None)
        return cls(model, predicted, (placed, rows))


def effects(
    model: Any,
    X: Any = None,
    features: Iterable[str | int] | None = None,
    *,
    groups: Mapping[str, Sequence[str | int]] | None = None,
    categorical: Iterable[str | int] | None = None,
    seed: int = 0,
) -> Effects:
    """Draw the curve of each feature: the average prediction as it moves, over the rows as they are, with its band.

    Parameters
    ----------
    model : fitted model
        As in `variance_shares`. Of any other model curves are averages of its own predictions, without a band.
    X : array or data frame (n, p), optional
        The rows to average over; by default those of the fit. Of more than 2000 a sample is taken, and of more than 200
        for likelihoods other than normal noise.
    features : iterable of names or numbers, optional
        Of the features, or categories, with a curve; by default those that the model depends on.
    groups, categorical : optional
        As in `rank`. A category has a value for each level; a group that is none has no curve.
    seed : int
        For the choice of rows, and of those with curves of their own.

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
    asked = Asked.read(model, X, groups, categorical)
    chosen = _chosen(features, asked)
    rows = AveragedRows.drawn(asked, seed)
    with blas_threads_for(asked.model.inputs.n_rows or len(asked.X)):
        members = [Member.of(each, rows.X) for each in asked.members]
        curves = tuple(_curve(unit, asked, members, rows) for unit in _by_relevance(chosen, asked))
        predicted = [member.predicted for member in members]
    return Effects(
        curves=curves,
        average=float(np.mean(predicted)),
        mean_of=asked.model.mean_of if rows.is_normal else "the mean of an observation",
        band=_band(members[0], rows),
        details={"n_rows": len(rows.X), "seed": seed, "versions": versions()},
    )


def _band(member: Member, rows: AveragedRows) -> str:
    if member.closed is None:
        return "none: curves are averages of the model's own predictions"
    return "closed form" if rows.is_normal else "delta method"


@dataclass(frozen=True, eq=False)
class AveragedRows:
    """The rows that curves are averages over, and what is told of some of them."""

    X: np.ndarray  # (n, p) in the user's units
    is_shown: np.ndarray  # (n,), those with a curve of their own
    is_normal: bool  # whether the mean of an observation is the latent mean
    regression: Regression

    @classmethod
    def drawn(cls, asked: Asked, seed: int) -> Self:
        rng = np.random.default_rng(seed)
        first = next(iter(asked.members))
        response = first.at(first.inputs.points(asked.X[:1]))
        is_normal = isinstance(response.distribution(latent=False), Gaussian)
        X = asked.X[_some(len(asked.X), MOST_ROWS if is_normal else MOST_PREDICTED_ROWS, rng)]
        is_shown = np.zeros(len(X), dtype=bool)
        is_shown[_some(len(X), N_INDIVIDUAL, rng)] = True
        return cls(X, is_shown, is_normal, Regression.of(X, used_columns(asked.model)))


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


def _some(n: int, most: int, rng: np.random.Generator) -> np.ndarray:
    """At most this many of n numbers, ascending."""
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


def _chosen(features: Iterable[str | int] | None, asked: Asked) -> list[int]:
    """The units with a curve, by their numbers."""
    names, columns = asked.units.names, asked.units.columns
    has_curve = [unit in asked.units.levels or len(columns[unit]) == 1 for unit in range(len(names))]
    if features is None:
        used = set(used_columns(asked.model))
        return [unit for unit, does in enumerate(has_curve) if does and used.intersection(columns[unit])]
    if isinstance(features, str):
        raise TypeError(f"`features` must list features, such as [{features!r}], got {features!r} itself.")
    chosen = []
    for feature in features:
        unit = names.index(feature) if feature in names else feature
        if not isinstance(unit, int | np.integer) or not 0 <= unit < len(names):
            raise ValueError(f"There is no feature {feature!r}; the features are {listed(names)}.")
        if not has_curve[unit]:
            raise ValueError(f"{names[unit]!r} is a group of columns, along which there is no one curve.")
        chosen.append(int(unit))
    return chosen


def _by_relevance(chosen: Sequence[int], asked: Asked) -> list[int]:
    """The most relevant first, by KL."""
    first = next(iter(asked.members))
    relevance = relevance_of_used(KL(), first, asked.points, asked.units).values.mean(axis=0)
    return sorted(dict.fromkeys(chosen), key=lambda unit: -relevance[unit])


def _curve(unit: int, asked: Asked, members: Sequence[Member], rows: AveragedRows) -> Curve:
    columns = asked.units.columns[unit]
    axis = axis_of(unit, asked.units, asked.X, asked.points.inputs.names, N_VALUES)
    assert axis is not None
    (margin,) = read_margins("data", asked.X, asked.units.only(unit))
    along = _pooled([_along(member, columns, axis, margin, rows) for member in members])
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


def _pooled(draws: Sequence[Along]) -> Along:
    """Over draws of the hyperparameters: what they agree on, and what they do not."""
    averages = np.array([each.means.mean(axis=0) for each in draws])
    between = (averages - averages.mean(axis=0)).T @ (averages - averages.mean(axis=0)) / len(draws)
    means = np.mean([each.means for each in draws], axis=0)
    return Along(means, np.mean([each.covariance for each in draws], axis=0) + between)


def _along(member: Member, unit: Sequence[int], axis: Axis, margin: Margin, rows: AveragedRows) -> Along:
    """At the values of the axis, less the average over the margin, in the units of what is observed."""
    values = np.concatenate([axis.values, margin.nodes])
    if member.closed is None:
        along = Along(_observed(member.model, unit, values, rows.X)[0], np.full((len(values), len(values)), np.nan))
    else:
        along = _closed(member.model, *member.closed, unit, values, rows)
    return along.centred(len(axis.values), margin.weights)


def _closed(
    model: Reference,
    placed: PlacedPosterior,
    there: RowsOfCurves,
    unit: Sequence[int],
    values: np.ndarray,
    rows: AveragedRows,
) -> Along:
    sections = Sections(there, *placed.inputs_of(unit, values))
    if rows.is_normal:
        means, slopes = placed.y_scale * sections.means(), np.ones((len(values), len(rows.X)))
    else:
        means, response = _observed(model, unit, values, rows.X)
        slopes = response.mean_slope().reshape(len(values), len(rows.X))
    return Along(means, placed.y_scale**2 * sections.covariance(slopes / len(rows.X)))


def _observed(model: Reference, unit: Sequence[int], values: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, Response]:
    """The mean of an observation of each row at each value, (n, g), and the response, at all rows of each value."""
    moved = np.tile(X, (len(values), 1))
    moved[:, list(unit)] = np.repeat(values, len(X), axis=0)
    response = model.at(model.inputs.points(moved))
    return response.distribution(latent=False).mean.reshape(len(values), len(X)).T, response
