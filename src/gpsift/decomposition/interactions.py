r"""Find interactions: pairs of features whose effects depend on each other, the evidence, and the local strength.

Let V be the part of the variance of the posterior mean that needs both features of a pair. The posterior expectation of
this variance is larger than V. The excess is the undecided part: it is large if the data say little about the pair. The
evidence for the pair is V over the undecided part, and its share is V over the variance of the function.

The strength of a pair at a point is the second derivative of the mean along both features, per standard deviation of
each, over the standard deviation of the prediction (R-sens2 of the mean; Paananen et al. 2021).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from gpsift._utils.text import join_names, summary_html
from gpsift._utils.validation import feature_index
from gpsift.decomposition.context import EffectContext, closed_posterior, value_grid
from gpsift.decomposition.margins import Margins
from gpsift.decomposition.monte_carlo import estimate_surface, mixed_differences
from gpsift.decomposition.partial_dependence import ICECurves, ICERows
from gpsift.decomposition.products import ProductTriple
from gpsift.decomposition.records import FunctionRecord
from gpsift.decomposition.sobol import unit_variances
from gpsift.io.serializable import Serializable
from gpsift.reference.base import MissingCapability, Reference
from gpsift.reference.inputs import Points

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# The least evidence for an interaction: in docs/mathematics/effects.md 2 of 500 sets have a false one with more.
LEAST_EVIDENCE = 5.0
# The undecided part of a variance has a rounding error of about this share of the largest variance.
ROUNDING = 1e-10
# The largest number of pairs with a strength at each point, and of those of them with a surface.
MOST_PAIRS = 10
MOST_SURFACES = 3
SURFACE_VALUES = 25
# For models with predictions only: rows that a surface averages over, and steps of second derivatives, in standard
# deviations of a feature.
MOST_SURFACE_ROWS = 100
STEP = 0.01
# The largest number of doubles in the second derivatives at all rows.
HESSIAN_DOUBLES = 2**25
# Pairs that are printed, at most.
MOST_LINES = 10


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
    """Find the pairs of features that interact: the effect of one depends on the value of the other.

    Parameters
    ----------
    model : fitted model
        As in `variance_shares`.
    X : array or data frame (n, p), optional
        The rows at which the function is described; by default those of the fit.
    pairs : iterable of pairs of features, optional
        Pairs that get a surface in addition to the strongest ones.
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
    context = EffectContext.read(model, X, groups, categorical, of)
    units, wanted = context.units, [_read_pair(pair, context.units.names) for pair in pairs]
    unit_margins = context.margins(margins)
    with context.blas_threads():
        found = [
            unit_variances(each, context.X, units, unit_margins, shapley=False, undecided_pairs=True)
            for each in context.members
        ]
        decided = np.mean([each.pairs for each in found], axis=0)
        undecided = np.mean([each.undecided_pairs for each in found if each.undecided_pairs is not None], axis=0)
        variance = float(np.mean([each.whole for each in found]))
        varying = [pair for pair in combinations(range(len(decided)), 2) if decided[pair] > 0]
        strongest = sorted(varying, key=lambda pair: -decided[pair])[:MOST_PAIRS]
        # All rows, or evenly spaced ones where second derivatives at all of them would be too large.
        most = max(1, HESSIAN_DOUBLES // max(1, len(context.model.used)) ** 2)
        rows = context.points
        if len(rows) > most:
            rows = rows.take(slice(None, None, -(-len(rows) // most)))
        local = np.mean([_local_strength(each, rows, strongest, context) for each in context.members], axis=0)
        surfaced = list(dict.fromkeys([*strongest[:MOST_SURFACES], *wanted]))
        surfaces = [_surface(pair, context) for pair in surfaced]
    least = ROUNDING * max(float(undecided.max(initial=0.0)), float(decided.max(initial=0.0)))
    return Interactions(
        names=units.names,
        share=decided / (variance or 1.0),
        evidence=np.divide(decided, np.maximum(undecided, least), out=np.zeros_like(decided), where=decided > 0),
        least_evidence=LEAST_EVIDENCE,
        pairs=np.array(strongest, dtype=int).reshape(-1, 2),
        local=local,
        points=rows.X,
        features=context.points.inputs.names,
        surfaces=tuple(surface for surface in surfaces if surface is not None),
        **context.shared_fields(),
    )


@dataclass(frozen=True, eq=False)
class Surface:
    """The average prediction over the rows with two features at each pair of their values, (g, h).

    `x` and `y` are the values, or for categories indices of their labels; `x_rows` and `y_rows` are those of the rows.
    """

    names: tuple[str, str]
    x: np.ndarray
    y: np.ndarray
    mean: np.ndarray
    x_labels: tuple[str, ...] = ()
    y_labels: tuple[str, ...] = ()
    x_rows: np.ndarray | None = None
    y_rows: np.ndarray | None = None

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with a row for each value of the first feature, and a column for each of the second."""
        import pandas as pd

        rows = self.x_labels or [f"{value:.4g}" for value in self.x]
        columns = self.y_labels or [f"{value:.4g}" for value in self.y]
        frame = pd.DataFrame(self.mean, columns=[f"{self.names[1]} = {each}" for each in columns])
        frame.insert(0, self.names[0], list(rows), allow_duplicates=True)
        return frame

    def _repr_html_(self) -> str:
        return summary_html(f"{self.names[0]} with {self.names[1]}, on average over the rows", self.to_frame())


@dataclass(frozen=True, eq=False, repr=False)
class Interactions(FunctionRecord, Serializable):
    """Pairs of features, and the evidence that they interact.

    Attributes
    ----------
    names : tuple of str
        The features, groups and categories.
    share : array (p, p)
        The share of the variance of the function that needs both features of a pair.
    evidence : array (p, p)
        The variance that needs both, over its undecided part; NaN where the model does not know the undecided part.
    least_evidence : float
        Pairs with less are not called interactions.
    pairs : array (k, 2)
        The strongest pairs by their share, as numbers of features, whether found or not.
    local : array (n, k)
        The strength of each of `pairs` at each point: the change of the slope of the mean, in standard deviations of
        the prediction per standard deviation of each feature; NaN for groups and categories.
    points : array (n, columns)
        These points, in the user's units; `features` names the columns.
    surfaces : tuple of Surface
        Surfaces of the strongest pairs, and of those that were asked for.
    mean_of, of, how, details
        As in `VarianceShares`.
    """

    names: tuple[str, ...]
    share: np.ndarray
    evidence: np.ndarray
    least_evidence: float
    pairs: np.ndarray
    local: np.ndarray
    points: np.ndarray
    features: tuple[str, ...]
    surfaces: tuple[Surface, ...] = ()

    @property
    def is_found(self) -> np.ndarray:
        """Whether pairs have enough evidence, (p, p)."""
        return self.evidence >= self.least_evidence

    @property
    def found(self) -> tuple[tuple[str, str], ...]:
        """The pairs that interact, the largest share first."""
        pairs = [pair for pair in combinations(range(len(self.names)), 2) if self.is_found[pair]]
        pairs.sort(key=lambda pair: -self.share[pair])
        return tuple((self.names[i], self.names[j]) for i, j in pairs)

    def where(self, first: str, second: str) -> np.ndarray:
        """Return indices of the points, by falling strength of a pair of `pairs`."""
        wanted = {first, second}
        for number, (i, j) in enumerate(self.pairs.tolist()):
            if {self.names[i], self.names[j]} == wanted:
                return np.argsort(-self.local[:, number], kind="stable")
        raise ValueError(f"{first} and {second} are not among the {len(self.pairs)} strongest pairs.")

    def surface(self, first: str, second: str) -> Surface:
        """Return the surface of a pair."""
        for surface in self.surfaces:
            if set(surface.names) == {first, second}:
                return surface
        raise ValueError(
            f"There is no surface of {first} and {second}; ask for it: "
            f"interactions(..., pairs=[({first!r}, {second!r})])."
        )

    @property
    def by_largest_share(self) -> np.ndarray:
        """Features with a positive share of a pair, by their largest such share; at least two features."""
        largest = self.share.max(axis=1, initial=0.0)
        return np.argsort(-largest, kind="stable")[: max(2, int(np.count_nonzero(largest)))]

    @property
    def strongest_surface(self) -> Surface | None:
        """The surface of the first pair found that has one, or None."""
        of_pair = {frozenset(surface.names): surface for surface in self.surfaces}
        return next((of_pair[frozenset(pair)] for pair in self.found if frozenset(pair) in of_pair), None)

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with a row for each pair, the largest share first."""
        import pandas as pd

        i, j = np.triu_indices(len(self.names), 1)
        columns = {
            "first": [self.names[k] for k in i],
            "second": [self.names[k] for k in j],
            "share": self.share[i, j],
            "evidence": self.evidence[i, j],
            "found": self.is_found[i, j],
        }
        return pd.DataFrame(columns).sort_values("share", ascending=False, kind="stable").reset_index(drop=True)

    def plot(self, pair: tuple[str, str] | None = None, *, ax: Axes | None = None) -> Axes:
        """Draw the shares of all pairs as a matrix, or the surface of one pair with the data on it."""
        from gpsift.decomposition.plots import pair_matrix, pair_surface

        return pair_matrix(self, ax=ax) if pair is None else pair_surface(self, self.surface(*pair), ax=ax)

    @property
    def told(self) -> str:
        """The answer in a sentence."""
        if np.isnan(self.evidence).any():
            return "Shares of pairs only: the model does not say what the data have left open of them."
        if not self.found:
            return "No interaction found: no pair of features can be told from one that does not act together."
        pairs = ", ".join(f"{first} with {second}" for first, second in self.found[:MOST_LINES])
        more = ", ..." if len(self.found) > MOST_LINES else ""
        return f"{len(self.found)} {'pair acts' if len(self.found) == 1 else 'pairs act'} together: {pairs}{more}."

    def __repr__(self) -> str:
        frame = self.to_frame().head(MOST_LINES)
        pairs = [f"{row.first}, {row.second}" for row in frame.itertuples()]
        width = max([len("pair"), *map(len, pairs)])
        lines = [self.told, f"  {'pair':<{width}}  {'share':>6}  {'evidence':>8}"]
        lines += [
            f"{'*' if row.found else ' '} {pair:<{width}}  {row.share:>z6.3f}  {row.evidence:>8.3g}"
            for pair, row in zip(pairs, frame.itertuples(), strict=True)
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return summary_html(self.told, self.to_frame().head(MOST_LINES))


def _read_pair(pair: Any, names: tuple[str, ...]) -> tuple[int, int]:
    if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
        raise ValueError(f'`pairs` must hold pairs of features, such as [("age", "dose")], got {pair!r}.')
    numbers = [feature_index(each, names) for each in pair]
    known = [number for number in numbers if number is not None]
    if len(set(known)) < 2:
        raise ValueError(f"`pairs` names {pair!r}, which are no two features; they are {join_names(names)}.")
    return min(known), max(known)


def _local_strength(
    model: Reference, points: Points, pairs: Sequence[tuple[int, int]], context: EffectContext
) -> np.ndarray:
    """Compute R-sens2 of the mean for each pair at the points, (n, pairs); NaN for groups and categories."""
    found = np.full((len(points), len(pairs)), np.nan)
    columns, levels = context.units.columns, context.units.levels
    column = {unit: own[0] for unit, own in enumerate(columns) if unit not in levels and len(own) == 1}
    numeric = [(number, column[i], column[j]) for number, (i, j) in enumerate(pairs) if i in column and j in column]
    if not numeric:
        return found
    response = model.at(points)
    predictive_sd = np.sqrt(response.distribution(latent=context.model.mean_of != "the target").var)
    used, sd = tuple(range(model.inputs.n_features)), points.inputs.sd
    smaller = model.on_columns(model.used) if model.used else None
    try:
        if smaller is not None:
            used = model.used
            response = smaller.at(points.on_columns(used))
        hessian = response.mean_hessian()
    except MissingCapability:
        hessian = None
    for number, i, j in numeric:
        if hessian is None:
            second = mixed_differences(model, points, i, j, STEP)
        else:
            second = hessian[:, used.index(i), used.index(j)] * sd[i] * sd[j]
        found[:, number] = np.abs(second) / predictive_sd
    return found


def _surface(pair: tuple[int, int], context: EffectContext) -> Surface | None:
    """Average predictions over rows with two units at each pair of their values; None for a group of columns."""
    first, second = (value_grid(context, unit, SURFACE_VALUES) for unit in pair)
    if first is None or second is None:
        return None
    X, names = context.X, context.units.names
    columns = [context.units.columns[unit] for unit in pair]
    means = []
    for model in context.members:
        placed = closed_posterior(model, X)
        if placed is None:
            some = X[:: -(-len(X) // MOST_SURFACE_ROWS)]
            means.append(estimate_surface(model, some, columns, [first.values, second.values]))
        else:
            ice = ICERows(ProductTriple.of(placed.posterior), placed.inputs(X))
            x, y = placed.inputs_of(columns[0], first.values), placed.inputs_of(columns[1], second.values)
            means.append(placed.affine.y_center + placed.affine.y_scale * ICECurves(ice, *x).surface(*y))
    return Surface(
        names=(names[pair[0]], names[pair[1]]),
        x=first.coordinates,
        y=second.coordinates,
        mean=np.mean(means, axis=0),
        x_labels=first.labels or (),
        y_labels=second.labels or (),
        x_rows=None if first.labels else X[:, columns[0][0]],
        y_rows=None if second.labels else X[:, columns[1][0]],
    )
