r"""Decompose the variance of a fitted function: first-order and total Sobol indices, Shapley effects, pairs.

`variance_shares` divides the variances of `variances.py`, or of `monte_carlo.py` for models without closed forms, by
the variance of the function, and returns `VarianceShares` (Sobol 2001; Owen 2014).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from gpsift._utils.text import percent, summary_html
from gpsift.decomposition.context import EffectContext, closed_posterior, noise_var
from gpsift.decomposition.margins import Margin, Margins
from gpsift.decomposition.monte_carlo import estimate_variances
from gpsift.decomposition.products import Products
from gpsift.decomposition.records import FunctionRecord
from gpsift.decomposition.variances import Variances, variances
from gpsift.io.serializable import Serializable
from gpsift.reference.base import Reference
from gpsift.relevance.feature_groups import FeatureGroups
from gpsift.relevance.ranking import LEVEL

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# The draws are evenly spread over the posterior: ends of intervals are as accurate as with 200 independent draws, both
# measured against 4000.
N_DRAWS = 128
# Shares of single features.
SHARES = ("first", "total", "shapley")


def variance_shares(
    model: Any,
    X: Any = None,
    margins: Margins = "data",
    *,
    groups: Mapping[str, Sequence[str | int]] | None = None,
    categorical: Iterable[str | int] | None = None,
    of: str | int | None = None,
    intervals: bool = False,
    seed: int = 0,
) -> VarianceShares:
    """Decompose the variance of a fitted function: the share of each feature alone, in all, and with each other one.

    Features are taken as independent, each with its own margin. For correlated features the shares describe the
    function as if they were not correlated. Everything is in closed form where the model has one, and otherwise
    averages of its own predictions; the record says which.

    Parameters
    ----------
    model : fitted model
        Such as ``GP().fit(X, y)``, or one of another library. Closed forms exist for latent posteriors that are a
        triple and whose kernel is a sum of ours.
    X : array or data frame (n, p), optional
        The rows whose values are the margins; by default those of the fit.
    margins : {"data", "uniform", "normal"} or mapping
        How the values of each feature are distributed: as in the rows, uniformly over their range, or normally with
        their mean and standard deviation; or a mapping from features to values, or to pairs of values and weights, with
        the rows' own margins for all others. Categories and groups are distributed as in the rows.
    groups, categorical : optional
        As in `rank`: columns that are one unit, and units whose values are levels.
    of : str or int, optional
        The function, for a model of several: "class 0", or 0, for classes, whose functions are the latent ones less
        the average of all classes; the name or the number of an output.
    intervals : bool
        Whether to give intervals over other hyperparameters that explain the data as well.
    seed : int
        For the draws of `intervals`.

    Returns
    -------
    VarianceShares

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(80, 3))
    >>> y = 3 * X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=80)
    >>> shares = gs.variance_shares(gs.GP().fit(X, y))
    >>> bool(shares.pairs[0, 1] > 0.03), bool(shares.total[2] < 0.01)
    (True, True)
    """
    context = EffectContext.read(model, X, groups, categorical, of)
    unit_margins = context.margins(margins)
    with context.blas_threads():
        found = [unit_variances(each, context.X, context.units, unit_margins) for each in context.members]
        noises = [noise_var(each, context.X) for each in context.members]
        draws, k_hat = found if context.is_ensemble else [], None
        if intervals and not context.is_ensemble:
            draws, k_hat = _variances_of_draws(context, unit_margins, seed)
    variance = float(np.mean([each.whole for each in found]))
    shares = {name: np.mean([getattr(each, name) for each in found], axis=0) for name in (*SHARES, "pairs")}
    return VarianceShares(
        names=context.units.names,
        **{name: value / (variance or 1.0) for name, value in shares.items()},
        variance=variance,
        noise_var=None if noises[0] is None else float(np.mean([each for each in noises if each is not None])),
        margins=margins if isinstance(margins, str) else "data, but for " + ", ".join(margins),
        draws={
            name: np.array([getattr(each, name) / (float(each.whole) or 1.0) for each in draws])
            for name in (SHARES if draws else ())
        },
        k_hat=k_hat,
        **context.shared_fields(seed=seed if k_hat is not None else None),
    )


@dataclass(frozen=True, eq=False, repr=False)
class VarianceShares(FunctionRecord, Serializable):
    """The variance of a function of independent features, decomposed.

    Shares are parts of the variance of the function, without noise.

    Attributes
    ----------
    names : tuple of str
        The features, groups and categories.
    first : array (p,)
        First-order indices: the share of the average curve of a feature.
    total : array (p,)
        Total indices: the share of a feature alone and in interactions. They add up to more than 1 where features
        interact.
    shapley : array (p,)
        Shapley effects: shares of interactions are divided equally among their features. They add up to 1.
    pairs : array (p, p)
        Superset indices: the share that needs both features of a pair, alone or with others; 0 on the diagonal.
    variance : float
        The variance of the function, in squared units of what `mean_of` says.
    noise_var : float or None
        The variance of the noise around the function, where that is normal.
    margins : str
        How features were taken to be distributed.
    mean_of : str
        The quantity of which the function is the mean.
    draws : mapping of str to array (s, p)
        `first`, `total` and `shapley` with other hyperparameters, where these were drawn.
    k_hat : float or None
        How far to trust draws that intervals were made from: up to 0.7.
    of : str or None
        The function, where the model has several.
    how : str
        Whether averages are closed forms or made of the model's own predictions.
    details : mapping
    """

    names: tuple[str, ...]
    first: np.ndarray
    total: np.ndarray
    shapley: np.ndarray
    pairs: np.ndarray
    variance: float
    noise_var: float | None
    margins: str
    draws: Mapping[str, np.ndarray] = field(default_factory=dict)
    k_hat: float | None = None

    @property
    def order(self) -> np.ndarray:
        """Features by falling Shapley share."""
        return np.argsort(-self.shapley, kind="stable")

    @property
    def noise_share(self) -> float | None:
        """The share of noise in the variance of an observation; None where noise is not normal."""
        if self.noise_var is None:
            return None
        whole = self.variance + self.noise_var
        return self.noise_var / whole if whole > 0 else 0.0

    @property
    def interacting(self) -> float:
        """The share of the variance that features have only together."""
        return float(max(0.0, 1.0 - self.first.sum())) if self.variance > 0 else 0.0

    def interval(self, share: str = "shapley", level: float = LEVEL) -> np.ndarray:
        """Return the central interval of "first", "total" or "shapley" over draws of the hyperparameters, (p, 2)."""
        if share not in self.draws:
            raise ValueError(
                "There are intervals of first, total and shapley, for variance_shares(..., intervals=True) or drawn "
                f"hyperparameters, GP(hyper=NUTS()); asked for {share!r}."
            )
        return np.quantile(self.draws[share], [0.5 - level / 2, 0.5 + level / 2], axis=0).T

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with a row for each feature, the largest share first."""
        import pandas as pd

        columns: dict[str, Any] = {"feature": self.names}
        for name in SHARES:
            columns[name] = getattr(self, name)
            if name in self.draws:
                columns[f"{name}_lower"], columns[f"{name}_upper"] = self.interval(name).T
        return pd.DataFrame(columns).iloc[self.order].reset_index(drop=True)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw one bar of Shapley shares, with the share of noise."""
        from gpsift.decomposition.plots import stacked_shares

        return stacked_shares(self, ax=ax)

    @property
    def told(self) -> str:
        """The answer in a sentence or two."""
        share = self.noise_share
        noise = "" if share is None else f" Noise is {percent(share)} of the variance of an observation."
        if not self.variance > 0:
            return f"The function does not vary.{noise}"
        return f"Of the variance of the function {percent(self.interacting)} is what features do only together.{noise}"

    def __repr__(self) -> str:
        width = max(len("feature"), *(len(name) for name in self.names))
        lines = [self.told, f"  {'feature':<{width}}  {'first':>6}  {'total':>6}  {'shapley':>7}"]
        lines += [
            f"  {row.feature:<{width}}  {row.first:>z6.3f}  {row.total:>z6.3f}  {row.shapley:>z7.3f}"
            for row in self.to_frame().itertuples()
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return summary_html(self.told, self.to_frame())


def unit_variances(
    model: Reference, X: np.ndarray, units: FeatureGroups, margins: Sequence[Margin], **parts: bool
) -> Variances:
    """Compute variances of all units, in squared units of the target; 0 for units that the model does not depend on."""
    placed = closed_posterior(model, X)
    if placed is not None:
        products = Products.of(placed, units.columns, margins)
        return _scatter(variances(products, **parts), products.varying, len(units.columns), placed.affine.y_scale**2)
    kept, _ = units.on_columns(model.used)
    columns, own = [units.columns[unit] for unit in kept], [margins[unit] for unit in kept]
    return _scatter(estimate_variances(model, X[0], columns, own, **parts), kept, len(units.columns))


def _scatter(found: Variances, kept: Sequence[int], n_units: int, factor: float = 1.0) -> Variances:
    """Place variances of some units among those of all units, and multiply them by a factor."""

    def scatter(values: np.ndarray | None) -> np.ndarray | None:
        if values is None:
            return None
        wide = np.zeros((n_units,) * values.ndim)
        wide[np.ix_(*[list(kept)] * values.ndim)] = factor * values
        return wide

    return Variances(**{field.name: scatter(getattr(found, field.name)) for field in fields(found)})  # type: ignore[arg-type]


def _variances_of_draws(context: EffectContext, margins: Sequence[Margin], seed: int) -> tuple[list[Variances], float]:
    """Compute variances with hyperparameters drawn from their approximate posterior, and the k-hat of these draws."""
    kept, units, own = context.open_units(margins)
    X = context.X[:, list(context.model.open_columns)]
    draws, k_hat = context.map_draws(lambda each: unit_variances(each, X, units, own), N_DRAWS, seed)
    return [_scatter(each, kept, len(context.units.columns)) for each in draws], k_hat
