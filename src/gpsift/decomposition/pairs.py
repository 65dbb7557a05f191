r"""The verb: which features act together.

The score of a pair is what share of the variance of the function needs both, V. What the data have decided of that is
seen beside E V - V, by how much the posterior expects it to be larger: a model that knows little about two features
expects much of what they might do together. Their ratio is the evidence for the pair.

Where in the data two features act together is seen from the second derivative of the mean along both, per standard
deviation of each, over the standard deviation of the prediction (R-sens2 of the mean; Paananen et al. 2021).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from gpsift._utils.grouping import number_of
from gpsift._utils.threads import blas_threads_for
from gpsift._utils.words import listed
from gpsift.decomposition.asked import Asked, closed_posterior
from gpsift.decomposition.axes import axis_of
from gpsift.decomposition.curves import RowsOfCurves, Sections
from gpsift.decomposition.margins import Margins, read_margins
from gpsift.decomposition.record_interactions import Interactions, Surface
from gpsift.decomposition.sampled import mixed_differences, sampled_surface
from gpsift.decomposition.shares import variances_of
from gpsift.decomposition.triple import ProductTriple
from gpsift.reference.base import MissingCapability, Reference, Response
from gpsift.reference.inputs import Points
from gpsift.relevance.rank import versions

# Of a pair with less evidence nothing is said: in docs/mathematics/effects.md 2 of 500 sets have a false one with more.
LEAST_EVIDENCE = 5.0
# What is open of a variance is not known to less than this share of what the prior expects of the function.
ROUNDING = 1e-10
# Pairs of which is told where they act together, and those with a surface.
MOST_PAIRS = 10
MOST_SURFACES = 3
SURFACE_VALUES = 25
# Rows that a surface averages over where it is made of predictions, and steps of second derivatives then, in standard
# deviations of a feature.
MOST_SURFACE_ROWS = 100
STEP = 0.01
# Second derivatives at all rows hold at most this many doubles.
HESSIAN_DOUBLES = 2**25


def interactions(
    model: Any,
    X: Any = None,
    *,
    pairs: Iterable[tuple[str | int, str | int]] = (),
    margins: Margins = "data",
    groups: Mapping[str, Sequence[str | int]] | None = None,
    categorical: Iterable[str | int] | None = None,
    of: str | int | None = None,
) -> Interactions:
    """Find the pairs of features that act together: the effect of one depends on the value of the other.

    Parameters
    ----------
    model : fitted model
        As in `variance_shares`.
    X : array or data frame (n, p), optional
        The rows that the function is looked at; by default those of the fit.
    pairs : iterable of pairs of features, optional
        Of which a surface is kept, besides the strongest ones.
    margins, groups, categorical, of : optional
        As in `variance_shares`.

    Returns
    -------
    Interactions

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 4))
    >>> y = X[:, 0] * X[:, 2] + X[:, 1] + 0.2 * rng.normal(size=100)
    >>> gs.interactions(gs.GP().fit(X, y)).found
    (('x1', 'x3'),)
    """
    asked = Asked.read(model, X, groups, categorical, of)
    wanted = [_read_pair(pair, asked) for pair in pairs]
    there = read_margins(margins, asked.X, asked.units, asked.margined)
    with blas_threads_for(asked.model.inputs.n_rows or len(asked.X)):
        found = [
            variances_of(each, asked.X, asked.units, there, shapley=False, open_pairs=True) for each in asked.members
        ]
        decided = np.mean([each.pairs for each in found], axis=0)
        undecided = np.mean([each.open_pairs for each in found if each.open_pairs is not None], axis=0)
        variance = float(np.mean([each.whole for each in found]))
        strongest = _strongest(decided)
        rows = _looked_at(asked)
        local = np.mean([_local(each, rows, strongest, asked) for each in asked.members], axis=0)
        surfaced = list(dict.fromkeys([*strongest[:MOST_SURFACES], *wanted]))
        surfaces = [_surface(pair, asked) for pair in surfaced]
    least = ROUNDING * max(float(undecided.max(initial=0.0)), float(decided.max(initial=0.0)))
    return Interactions(
        names=asked.units.names,
        share=decided / (variance or 1.0),
        evidence=np.divide(decided, np.maximum(undecided, least), out=np.zeros_like(decided), where=decided > 0),
        least_evidence=LEAST_EVIDENCE,
        pairs=np.array(strongest, dtype=int).reshape(-1, 2),
        local=local,
        points=rows.X,
        features=asked.points.inputs.names,
        surfaces=tuple(surface for surface in surfaces if surface is not None),
        mean_of=asked.model.mean_of,
        of=asked.of,
        how=asked.how,
        details={"n_rows": len(asked.X), "versions": versions()},
    )


def _read_pair(pair: Any, asked: Asked) -> tuple[int, int]:
    names = asked.units.names
    if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
        raise ValueError(f'`pairs` must hold pairs of features, such as [("age", "dose")], got {pair!r}.')
    numbers = [number_of(each, names) for each in pair]
    known = [number for number in numbers if number is not None]
    if len(set(known)) < 2:
        raise ValueError(f"`pairs` names {pair!r}, which are no two features; they are {listed(names)}.")
    return min(known), max(known)


def _strongest(decided: np.ndarray) -> list[tuple[int, int]]:
    """Pairs by falling share, those that have one."""
    pairs = [pair for pair in combinations(range(len(decided)), 2) if decided[pair] > 0]
    return sorted(pairs, key=lambda pair: -decided[pair])[:MOST_PAIRS]


def _looked_at(asked: Asked) -> Points:
    """The rows, or as many of them as second derivatives leave room for."""
    n_features = len(asked.model.used)
    most = max(1, HESSIAN_DOUBLES // max(1, n_features) ** 2)
    n = len(asked.points)
    return asked.points if n <= most else asked.points.take(slice(None, None, -(-n // most)))


def _local(model: Reference, points: Points, pairs: Sequence[tuple[int, int]], asked: Asked) -> np.ndarray:
    """R-sens2 of the mean for each pair at the points, (n, pairs); NaN for groups and categories."""
    own = np.full((len(points), len(pairs)), np.nan)
    columns = asked.units.columns
    moving = {unit: columns[unit][0] for unit in range(len(columns)) if _moves(unit, asked)}
    known = [number for number, pair in enumerate(pairs) if set(pair) <= set(moving)]
    if not known:
        return own
    response = model.at(points)
    unit = np.sqrt(response.distribution(latent=asked.model.mean_of != "the target").var)
    bends = _bends(model, points, response, [(moving[pairs[number][0]], moving[pairs[number][1]]) for number in known])
    own[:, known] = np.abs(bends) / unit[:, None]
    return own


def _bends(model: Reference, points: Points, response: Response, pairs: Sequence[tuple[int, int]]) -> np.ndarray:
    """Second derivatives of the mean along pairs of columns, per standard deviation of each, (n, pairs)."""
    smaller, used = _of_used(model)
    sd = points.inputs.sd
    try:
        there = response if smaller is model else smaller.at(points.on_columns(used))
        hessian = there.mean_hessian()
    except MissingCapability:
        return np.stack([mixed_differences(model, points, i, j, STEP) for i, j in pairs], axis=1)
    places = [(used.index(i), used.index(j)) for i, j in pairs]
    return np.stack([hessian[:, a, b] * sd[i] * sd[j] for (a, b), (i, j) in zip(places, pairs, strict=True)], axis=1)


def _of_used(model: Reference) -> tuple[Reference, tuple[int, ...]]:
    """The model as one of the columns that it uses, and these."""
    every = tuple(range(model.inputs.n_features))
    smaller = model.on_columns(model.used) if model.used else None
    return (model, every) if smaller is None else (smaller, model.used)


def _moves(unit: int, asked: Asked) -> bool:
    return unit not in asked.units.levels and len(asked.units.columns[unit]) == 1


def _surface(pair: tuple[int, int], asked: Asked) -> Surface | None:
    """The average over rows of what is predicted with both units set to values."""
    X = asked.X
    axes = [axis_of(unit, asked.units, X, asked.points.inputs, SURFACE_VALUES) for unit in pair]
    first, second = axes
    if first is None or second is None:
        return None
    columns = [asked.units.columns[unit] for unit in pair]
    values = [_mean_surface(each, asked, columns, [first.values, second.values]) for each in asked.members]
    return Surface(
        names=(asked.units.names[pair[0]], asked.units.names[pair[1]]),
        x=first.coordinates,
        y=second.coordinates,
        mean=np.mean(values, axis=0),
        x_labels=first.labels or (),
        y_labels=second.labels or (),
        x_rows=None if first.labels else X[:, columns[0][0]],
        y_rows=None if second.labels else X[:, columns[1][0]],
    )


def _mean_surface(
    model: Reference, asked: Asked, columns: Sequence[tuple[int, ...]], grids: Sequence[np.ndarray]
) -> np.ndarray:
    placed = closed_posterior(model, asked.X)
    if placed is None:
        return sampled_surface(model, asked.X[:: -(-len(asked.X) // MOST_SURFACE_ROWS)], columns, grids)
    (first, x), (second, y) = (placed.inputs_of(own, grid) for own, grid in zip(columns, grids, strict=True))
    rows = RowsOfCurves(ProductTriple.of(placed.posterior), placed.inputs(asked.X))
    return placed.affine.y_center + placed.affine.y_scale * Sections(rows, first, x).surface(second, y)
