"""The verb: single predictions taken apart, what each feature adds to the average."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpsift._utils.chunks import row_chunks
from gpsift._utils.notebook import words_and_table
from gpsift._utils.optional import optional_library
from gpsift._utils.threads import blas_threads_for
from gpsift.decomposition.context import Asked, closed_posterior
from gpsift.decomposition.margins import Margin, Margins, read_margins
from gpsift.decomposition.monte_carlo import sampled_shapley_values
from gpsift.decomposition.products import Products, ProductTermOfUnits
from gpsift.decomposition.variances import SMALLEST_FACTOR, legendre
from gpsift.io.savable import Savable
from gpsift.reference.base import Reference
from gpsift.relevance.groups import group_coordinates
from gpsift.relevance.rank import versions
from gpsift.relevance.scored import ScoredUnits
from gpsift.relevance.switched import among_all

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def explain(
    model: Any,
    X: Any = None,
    *,
    margins: Margins = "data",
    groups: Mapping[str, Sequence[str | int]] | None = None,
    categorical: Iterable[str | int] | None = None,
    of: str | int | None = None,
) -> Attribution:
    """Take predictions apart: Shapley values of the latent mean at rows, with their posterior sd.

    What is not known of a row is drawn from the margins of the training rows, each feature for itself: these are
    interventional SHAP values for independent features. They add up to the prediction less the average. They are in
    closed form where the model has one, and otherwise averages of its own predictions, without a posterior sd.

    Parameters
    ----------
    model : fitted model
        As in `variance_shares`.
    X : array or data frame (n, p), optional
        The rows to take apart; by default those of the fit.
    margins, groups, categorical, of : optional
        As in `variance_shares`.

    Returns
    -------
    Attribution

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> gp = gs.GP().fit(X, 2 * X[:, 0] + 0.1 * rng.normal(size=60))
    >>> found = gs.explain(gp, X[:5])
    >>> bool(np.allclose(found.average + found.values.sum(axis=1), gp.predict(X[:5]).mean))
    True
    """
    asked = Asked.read(model, X, groups, categorical, of)
    known = asked.points.inputs.at_hand
    there = read_margins(margins, asked.X if known is None else known, asked.units, asked.margined)
    with blas_threads_for(asked.model.inputs.n_rows or len(asked.X)):
        found = [_taken_apart(each, asked.X, asked.units, there) for each in asked.members]
    averages, values, variances = (np.array(each) for each in zip(*found, strict=True))
    return Attribution(
        names=asked.units.names,
        values=values.mean(axis=0),
        sd=np.sqrt(variances.mean(axis=0) + values.var(axis=0)),  # what draws agree on, and what they do not
        average=float(averages.mean()),
        points=_coordinates(asked),
        mean_of=asked.model.mean_of,
        of=asked.of,
        how=asked.how,
        details={"n_rows": len(asked.X), "versions": versions()},
    )


def _coordinates(asked: Asked) -> np.ndarray:
    """One for each unit at each row: a column itself, or the first principal coordinate of several."""
    columns = asked.units.columns
    if all(len(own) == 1 for own in columns):
        return asked.X[:, [own[0] for own in columns]]
    return group_coordinates(asked.points, columns)


def _taken_apart(
    model: Reference, X: np.ndarray, units: ScoredUnits, margins: Sequence[Margin]
) -> tuple[float, np.ndarray, np.ndarray]:
    """The average, and values and variances of all units, (n, p) each, in the units of the target."""
    placed = closed_posterior(model, X)
    if placed is None:
        mean, values = sampled_shapley_values(model, X, units.columns, margins)
        return mean, values, np.full_like(values, np.nan)
    products = Products.of(placed, units.columns, margins)
    found = shapley_values(products, placed.inputs(X))
    values, variances = (among_all(each, products.varying, len(units.columns)) for each in found)
    average = placed.y_center + placed.y_scale * products.average
    return average, placed.y_scale * values, placed.y_scale**2 * variances


# What the factors of all units take for one block of rows.
BLOCK_BYTES = 2**23


class ValuesAndVariances(NamedTuple):
    """Posterior means and variances, (n, p) each, in the units of the model."""

    mean: np.ndarray
    var: np.ndarray


def shapley_values(products: Products, X: np.ndarray) -> ValuesAndVariances:
    """Of the units at the rows of X, which holds all columns as the model sees them."""
    n, p = len(X), len(products.varying)
    mean, var = np.empty((n, p)), np.empty((n, p))
    for rows in row_chunks(n, p * len(products.weights), BLOCK_BYTES) if p else ():
        sections, prior = _of_lines(products, X[rows])
        for term in products.terms:
            sections += term.variance * _sections(term, products.triple.Z, X[rows])
            prior += term.variance * _prior(term, X[rows])
        mean[rows] = (sections @ products.weights).T
        explained = products.triple.explained(sections.reshape(-1, sections.shape[2]))
        var[rows] = (prior - explained.reshape(p, -1)).T
    return ValuesAndVariances(mean, np.maximum(var, 0.0))


def _of_lines(products: Products, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What linear terms have of l_kj, (p, n, m), and of the prior's variance, (p, n)."""
    sections, prior = [], []
    for unit, columns in enumerate(products.columns):
        own = list(columns)
        moved, slope_var = products.from_average(unit, X[:, own]), products.triple.slope_var[own]
        sections.append((moved * slope_var) @ products.triple.Z[:, own].T)
        prior.append(moved**2 @ slope_var)
    return np.stack(sections), np.stack(prior)


def _sections(term: ProductTermOfUnits, Z: np.ndarray, X: np.ndarray) -> np.ndarray:
    """l_kj at each row, without the variance of the term, (p, n, m)."""
    a = term.averages[:, None, :]
    units = list(enumerate(term.columns))
    d = np.stack([term.between(j, X[:, list(own)], Z) - term.factors[j].mean_excess for j, own in units])
    return _over_orders(d, lambda t: a + t * d)


def _prior(term: ProductTermOfUnits, X: np.ndarray) -> np.ndarray:
    """The operator applied twice to the term itself, without its variance, (p, n)."""
    units = list(enumerate(term.columns))
    excess = np.stack(
        [
            term.term.excess(own, X[:, list(own)], term.nodes[j]) @ term.factors[j].weights  # to an independent value
            for j, own in units
        ]
    )
    own_excess = np.array([factor.own_excess for factor in term.factors])[:, None]
    squares = own_excess - 2.0 * excess
    nodes, weights = legendre(len(units))
    total = np.zeros_like(squares)
    for t, weight in zip(nodes, weights, strict=True):
        total += weight * _over_orders(squares, partial(_covariance, t, excess, own_excess))
    return total


def _covariance(t: float, excess: np.ndarray, own_excess: np.ndarray, s: float) -> np.ndarray:
    """Of two mixtures of the value at x and an average over the margin, with shares t and s of the first."""
    return 1.0 + (s + t - 2.0 * s * t) * excess + (1.0 - s) * (1.0 - t) * own_excess


def _over_orders(change: np.ndarray, factors_at: Callable[[float], np.ndarray]) -> np.ndarray:
    """int_0^1 change_j prod_{i != j} factors_i(t) dt, with units along the first axis."""
    total = np.zeros_like(change)
    for t, weight in zip(*legendre(len(change)), strict=True):
        factors = np.maximum(factors_at(t), SMALLEST_FACTOR)
        whole = weight * np.multiply.reduce(factors)
        np.divide(change, factors, out=factors)
        factors *= whole
        total += factors
    return total


# Features of a row that are printed, at most.
MOST_LINES = 10


@dataclass(frozen=True, eq=False, repr=False)
class Attribution(Savable):
    """Predictions taken apart: the average, and what each feature adds to it.

    Attributes
    ----------
    names : tuple of str
        Of the features, groups and categories.
    values : array (n, p)
        Shapley values of the latent mean; with the average they add up to the prediction.
    sd : array (n, p)
        Their posterior standard deviations: what the data leave open. NaN where there are predictions only.
    average : float
        Of the function over the margins of all features.
    points : array (n, p)
        The rows; of a group its first principal coordinate.
    mean_of : str
        What the function is the mean of.
    of : str or None
        Which function, where the model has several.
    how : str
        Whether averages are closed forms or made of the model's own predictions.
    details : mapping
    """

    names: tuple[str, ...]
    values: np.ndarray
    sd: np.ndarray
    average: float
    points: np.ndarray
    mean_of: str = "the target"
    of: str | None = None
    how: str = "closed form"
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def prediction(self) -> np.ndarray:
        """The latent mean at the rows, (n,)."""
        return self.average + self.values.sum(axis=1)

    @property
    def strength(self) -> np.ndarray:
        """The mean size of the values of each feature over the rows, (p,)."""
        return np.abs(self.values).mean(axis=0)

    @property
    def order(self) -> np.ndarray:
        """Features by falling strength."""
        return np.argsort(-self.strength, kind="stable")

    def row(self, number: int) -> pd.DataFrame:
        """One row taken apart, a line for each feature, the largest value first."""
        import pandas as pd

        columns = {
            "feature": self.names,
            "at": self.points[number],
            "value": self.values[number],
            "sd": self.sd[number],
        }
        order = np.argsort(-np.abs(self.values[number]), kind="stable")
        return pd.DataFrame(columns).iloc[order].reset_index(drop=True)

    def to_frame(self) -> pd.DataFrame:
        """A data frame of the values with a row for each point and a column for each feature."""
        import pandas as pd

        return pd.DataFrame(self.values, columns=list(self.names))

    def to_shap(self) -> Any:
        """The values as shap's Explanation, for all of its plots: ``shap.plots.waterfall(found.to_shap()[0])``."""
        shap = optional_library("shap", "Explanations")
        return shap.Explanation(
            values=self.values.copy(),
            base_values=np.full(len(self.values), self.average),
            data=self.points.copy(),
            feature_names=list(self.names),
        )

    def plot(self, row: int = 0, *, ax: Axes | None = None) -> Axes:
        """Bars of one row: what each feature adds, with one posterior standard deviation."""
        from gpsift.decomposition.plots import row_taken_apart

        return row_taken_apart(self, row, ax=ax)

    @property
    def told(self) -> str:
        """The answer in a few words."""
        n = len(self.values)
        what = "prediction" if n == 1 else "predictions"
        return f"{n} {what} of {self.mean_of} around an average of {self.average:.4g}"

    def _repr_html_(self) -> str:
        return words_and_table(self.told, self.row(0) if len(self.values) == 1 else self.to_frame())

    def __repr__(self) -> str:
        n = len(self.values)
        lines = [self.told]
        if n == 1:
            frame = self.row(0).head(MOST_LINES)
            width = max(len("feature"), *(len(name) for name in frame["feature"]))
            lines.append(f"  {'feature':<{width}}  {'at':>10}  {'adds':>10}  {'sd':>8}")
            lines += [
                f"  {row.feature:<{width}}  {row.at:>10.4g}  {row.value:>+10.4g}  {row.sd:>8.2g}"
                for row in frame.itertuples()
            ]
            return "\n".join(lines)
        width = max(len("feature"), *(len(name) for name in self.names))
        lines.append(f"  {'feature':<{width}}  {'mean size':>10}  {'mean sd':>8}")
        lines += [
            f"  {self.names[j]:<{width}}  {self.strength[j]:>10.4g}  {self.sd[:, j].mean():>8.2g}"
            for j in self.order[:MOST_LINES]
        ]
        return "\n".join(lines)
