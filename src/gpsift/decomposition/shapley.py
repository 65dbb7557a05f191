r"""Compute Shapley values of predictions in closed form, with their posterior standard deviations.

Let the units of x become known one after another, while those still unknown are drawn from their margins. The Shapley
value of unit j is the change of the prediction when unit j becomes known, averaged over all orders. It is an operator
on functions. With delta the value at x and mu the average over a margin, it is

.. math::
    \phi_j = \int_0^1 (\delta_j - \mu_j) \bigotimes_{i \ne j} \big( t \, \delta_i + (1 - t) \, \mu_i \big) \, dt ,

where the integrand is a polynomial of degree p - 1 in t (Owen 1972). Applied to k(., z_k) it gives l_kj. The posterior
mean of the value is l w, and its variance is the operator applied twice to the prior covariance, less l M l^T. The
values of a row add up to its prediction less the average.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpsift._utils.rows import row_chunks
from gpsift._utils.text import summary_html
from gpsift._utils.validation import import_optional
from gpsift.decomposition.context import EffectContext, closed_posterior
from gpsift.decomposition.margins import Margin, Margins
from gpsift.decomposition.monte_carlo import estimate_shapley_values
from gpsift.decomposition.products import Products, UnitProductTerm
from gpsift.decomposition.records import FunctionRecord
from gpsift.decomposition.variances import SMALLEST_FACTOR, legendre_nodes
from gpsift.io.serializable import Serializable
from gpsift.reference.base import Reference
from gpsift.relevance.feature_groups import FeatureGroups, group_coordinates
from gpsift.relevance.measure import scatter_scores

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# The largest number of bytes that the factors of all units take for one block of rows.
BLOCK_BYTES = 2**23
# Draws of the hyperparameters that values are pooled over.
N_DRAWS = 50
# Features of a row that are printed, at most.
MOST_LINES = 10


def explain(
    model: Any,
    X: Any = None,
    *,
    margins: Margins = "data",
    groups: Mapping[str, Sequence[str | int]] | None = None,
    categorical: Iterable[str | int] | None = None,
    of: str | int | None = None,
    intervals: bool = False,
    seed: int = 0,
) -> Attribution:
    """Attribute predictions to features: Shapley values of the latent mean at rows, with their posterior sd.

    Unknown features of a row are drawn from the margins of the training rows, each by itself: these are interventional
    SHAP values for independent features. They add up to the prediction less the average. They are in closed form where
    the model has one, and otherwise averages of its own predictions, without a posterior sd.

    Parameters
    ----------
    model : fitted model
        As in `variance_shares`.
    X : array or data frame (n, p), optional
        The rows to explain; by default those of the fit.
    margins, groups, categorical, of : optional
        As in `variance_shares`.
    intervals : bool
        Whether values, and their sd, are pooled over other hyperparameters that explain the data as well.
    seed : int
        For the draws of `intervals`.

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
    context = EffectContext.read(model, X, groups, categorical, of)
    unit_margins = context.margins(margins, context.points.inputs.training_sample)
    with context.blas_threads():
        if intervals and not context.is_ensemble:
            found = _values_of_draws(context, unit_margins, seed)
        else:
            found = [_explain_rows(each, context.X, context.units, unit_margins) for each in context.members]
    averages, values, variances = (np.array(each) for each in zip(*found, strict=True))
    columns = context.units.columns
    is_single = all(len(own) == 1 for own in columns)
    return Attribution(
        names=context.units.names,
        values=values.mean(axis=0),
        sd=np.sqrt(variances.mean(axis=0) + values.var(axis=0)),  # variance within and between draws
        average=float(averages.mean()),
        points=context.X[:, [own[0] for own in columns]] if is_single else group_coordinates(context.points, columns),
        **context.shared_fields(),
    )


def _values_of_draws(
    context: EffectContext, margins: Sequence[Margin], seed: int
) -> list[tuple[float, np.ndarray, np.ndarray]]:
    """Return the average, the values and their variances with hyperparameters drawn from their posterior."""
    kept, units, own = context.open_units(margins)
    X, n_units = context.X[:, list(context.model.open_columns)], len(context.units.columns)

    def explain_rows(each: Reference) -> tuple[float, np.ndarray, np.ndarray]:
        average, *parts = _explain_rows(each, X, units, own)
        values, variances = (scatter_scores(part, kept, n_units) for part in parts)
        return average, values, variances

    return context.map_draws(explain_rows, N_DRAWS, seed)[0]


@dataclass(frozen=True, eq=False, repr=False)
class Attribution(FunctionRecord, Serializable):
    """Predictions attributed to features: the average prediction, and the contribution of each feature.

    Attributes
    ----------
    names : tuple of str
        The features, groups and categories.
    values : array (n, p)
        Shapley values of the latent mean; with the average they add up to the prediction.
    sd : array (n, p)
        Posterior standard deviations of the values. NaN for models with predictions only.
    average : float
        The mean of the function over the margins of all features.
    points : array (n, p)
        The rows; for a group its first principal coordinate.
    mean_of, of, how, details
        As in `VarianceShares`.
    """

    names: tuple[str, ...]
    values: np.ndarray
    sd: np.ndarray
    average: float
    points: np.ndarray

    @property
    def prediction(self) -> np.ndarray:
        """The latent mean at the rows, (n,)."""
        return self.average + self.values.sum(axis=1)

    @property
    def strength(self) -> np.ndarray:
        """The mean absolute value of each feature over the rows, (p,)."""
        return np.abs(self.values).mean(axis=0)

    @property
    def order(self) -> np.ndarray:
        """Features by falling strength."""
        return np.argsort(-self.strength, kind="stable")

    def row(self, number: int) -> pd.DataFrame:
        """Return a data frame of one row with a line for each feature, the largest value first."""
        import pandas as pd

        values = self.values[number]
        columns = {"feature": self.names, "at": self.points[number], "value": values, "sd": self.sd[number]}
        order = np.argsort(-np.abs(values), kind="stable")
        return pd.DataFrame(columns).iloc[order].reset_index(drop=True)

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame of the values with a row for each point and a column for each feature."""
        import pandas as pd

        return pd.DataFrame(self.values, columns=list(self.names))

    def to_shap(self) -> Any:
        """Convert to shap's Explanation, for all of its plots: ``shap.plots.waterfall(found.to_shap()[0])``."""
        shap = import_optional("shap", "Explanations")
        return shap.Explanation(
            values=self.values.copy(),
            base_values=np.full(len(self.values), self.average),
            data=self.points.copy(),
            feature_names=list(self.names),
        )

    def plot(self, row: int = 0, *, ax: Axes | None = None) -> Axes:
        """Draw bars of the values at one row, with one posterior standard deviation."""
        from gpsift.decomposition.plots import attribution_bars

        return attribution_bars(self, row, ax=ax)

    @property
    def told(self) -> str:
        """The answer in a few words."""
        n = len(self.values)
        what = "prediction" if n == 1 else "predictions"
        return f"{n} {what} of {self.mean_of} around an average of {self.average:.4g}"

    def _repr_html_(self) -> str:
        return summary_html(self.told, self.row(0) if len(self.values) == 1 else self.to_frame())

    def __repr__(self) -> str:
        lines = [self.told]
        if len(self.values) == 1:
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


def _explain_rows(
    model: Reference, X: np.ndarray, units: FeatureGroups, margins: Sequence[Margin]
) -> tuple[float, np.ndarray, np.ndarray]:
    """Compute the average, and values and variances of all units, (n, p) each, in units of the target."""
    placed = closed_posterior(model, X)
    if placed is None:
        mean, values = estimate_shapley_values(model, X, units.columns, margins)
        return mean, values, np.full_like(values, np.nan)
    products = Products.of(placed, units.columns, margins)
    found = shapley_values(products, placed.inputs(X))
    values, variances = (scatter_scores(each, products.varying, len(units.columns)) for each in found)
    average = placed.affine.y_center + placed.affine.y_scale * products.average
    return average, placed.affine.y_scale * values, placed.affine.y_scale**2 * variances


class PosteriorValues(NamedTuple):
    """Posterior means and variances of Shapley values, (n, p) each, in the units of the model."""

    mean: np.ndarray
    var: np.ndarray


def shapley_values(products: Products, X: np.ndarray) -> PosteriorValues:
    """Compute Shapley values of the units at rows of X, which has all columns in the units of the model."""
    n, p = len(X), len(products.varying)
    mean, var = np.empty((n, p)), np.empty((n, p))
    for rows in row_chunks(n, p * len(products.triple.weights), BLOCK_BYTES) if p else ():
        applied, prior = _linear_part(products, X[rows])
        for term in products.terms:
            applied += term.variance * _term_part(term, products, X[rows])
            prior += term.variance * _term_prior(term, products, X[rows])
        mean[rows] = (applied @ products.triple.weights).T
        explained = products.triple.explained_variance(applied.reshape(-1, applied.shape[2]))
        var[rows] = (prior - explained.reshape(p, -1)).T
    return PosteriorValues(mean, np.maximum(var, 0.0))


def _linear_part(products: Products, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute the contributions of linear terms to l_kj, (p, n, m), and to the prior variance, (p, n)."""
    applied, prior = [], []
    for unit, columns in enumerate(products.columns):
        own = list(columns)
        moved, slope_var = products.subtract_average(unit, X[:, own]), products.triple.slope_var[own]
        applied.append((moved * slope_var) @ products.triple.Z[:, own].T)
        prior.append(moved**2 @ slope_var)
    return np.stack(applied), np.stack(prior)


def _term_part(term: UnitProductTerm, products: Products, X: np.ndarray) -> np.ndarray:
    """Compute l_kj of a term with variance 1 at each row, (p, n, m)."""
    Z, units = products.triple.Z, zip(products.columns, term.factors, strict=True)
    d = np.stack([term.term.excess(own, X[:, list(own)], Z[:, list(own)]) - unit.mean_excess for own, unit in units])
    a = term.averages[:, None, :]
    return _average_over_orders(d, lambda t: a + t * d)


def _term_prior(term: UnitProductTerm, products: Products, X: np.ndarray) -> np.ndarray:
    """Apply the operator twice to a term with variance 1, (p, n)."""
    units = zip(products.columns, products.margins, strict=True)
    # The average of kappa - 1 between the value at x and an independent one.
    excess = np.stack([term.term.excess(own, X[:, list(own)], unit.nodes) @ unit.weights for own, unit in units])
    own_excess = np.array([factor.own_excess for factor in term.factors])[:, None]
    squares = own_excess - 2.0 * excess
    total = np.zeros_like(squares)
    for t, weight in zip(*legendre_nodes(len(products.columns)), strict=True):

        def covariance(s: float, t: float = t) -> np.ndarray:
            """Compute the covariance of two mixtures of the value at x, weighted by t and s, and the average."""
            return 1.0 + (s + t - 2.0 * s * t) * excess + (1.0 - s) * (1.0 - t) * own_excess

        total += weight * _average_over_orders(squares, covariance)
    return total


def _average_over_orders(change: np.ndarray, factors_at: Callable[[float], np.ndarray]) -> np.ndarray:
    """Integrate change_j prod_{i != j} factors_i(t) over t from 0 to 1, with units along the first axis."""
    total = np.zeros_like(change)
    for t, weight in zip(*legendre_nodes(len(change)), strict=True):
        factors = np.maximum(factors_at(t), SMALLEST_FACTOR)
        whole = weight * np.multiply.reduce(factors)
        np.divide(change, factors, out=factors)
        factors *= whole
        total += factors
    return total
