"""The verb: what share of the variance of a function each feature has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from gpsift._utils.threads import blas_threads_for
from gpsift.decomposition.asked import Asked, closed_posterior, noise_var
from gpsift.decomposition.margins import Margin, Margins, read_margins
from gpsift.decomposition.products import Products
from gpsift.decomposition.record_variance_shares import VarianceShares
from gpsift.decomposition.sampled import sampled_variances
from gpsift.decomposition.variances import Variances, variances
from gpsift.reference.base import DrawRequest, Reference
from gpsift.relevance.feature_groups import FeatureGroups
from gpsift.relevance.intervals import warn_if_unreliable
from gpsift.relevance.rank import versions

# They fill the posterior evenly: ends of intervals are as near to those of 4000 draws as with 200 independent ones.
N_DRAWS = 128


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
    """Take the variance of a fitted function apart: what each feature does alone, in all, and with each of the others.

    Features are taken as independent of each other, each with its own margin: of features that go along with each other
    the shares answer what the function would do if they did not. Everything is in closed form where the model has one,
    and otherwise averages of its own predictions; the record says which.

    Parameters
    ----------
    model : fitted model
        Such as ``GP().fit(X, y)``, or one of another library. Closed forms are there for latent posteriors that are a
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
        Which function, of a model of several: "class 0", or 0, of classes, whose functions are the latent ones less
        the average of all classes; the name or the number of an output.
    intervals : bool
        Whether to say how far the data leave the shares open, with other hyperparameters that explain them as well.
    seed : int
        Of the draws of `intervals`.

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
    asked = Asked.read(model, X, groups, categorical, of)
    there = read_margins(margins, asked.X, asked.units, asked.margined)
    with blas_threads_for(asked.model.inputs.n_rows or len(asked.X)):
        found = [variances_of(each, asked.X, asked.units, there) for each in asked.members]
        noises = [noise_var(each, asked.X) for each in asked.members]
        draws, k_hat = found if asked.is_ensemble else [], None
        if intervals and not asked.is_ensemble:
            draws, k_hat = _variances_around(asked, there, seed)
    variance = float(np.mean([each.whole for each in found]))
    means = {name: np.mean([getattr(each, name) for each in found], axis=0) for name in VarianceShares.SHARES}
    return VarianceShares(
        names=asked.units.names,
        **{name: value / (variance or 1.0) for name, value in means.items()},
        variance=variance,
        noise_var=None if noises[0] is None else float(np.mean([each for each in noises if each is not None])),
        margins=margins if isinstance(margins, str) else "data, but for " + ", ".join(margins),
        mean_of=asked.model.mean_of,
        draws={name: _shares_of_draws(draws, name) for name in VarianceShares.SHARES if name != "pairs" and draws},
        k_hat=k_hat,
        of=asked.of,
        how=asked.how,
        details={"n_rows": len(asked.X), "seed": seed if k_hat is not None else None, "versions": versions()},
    )


def variances_of(
    model: Reference, X: np.ndarray, units: FeatureGroups, margins: Sequence[Margin], **parts: bool
) -> Variances:
    """Of all units, in squared units of the target: those that the model does not depend on have 0."""
    placed = closed_posterior(model, X)
    if placed is None:
        return _sampled(model, X, units, margins, **parts)
    products = Products.of(placed, units.columns, margins)
    found = variances(products, **parts)
    return _among_all(found, products.varying, len(units.columns), placed.affine.y_scale**2)


def _sampled(
    model: Reference, X: np.ndarray, units: FeatureGroups, margins: Sequence[Margin], **parts: bool
) -> Variances:
    used = set(model.used)
    kept = [unit for unit, columns in enumerate(units.columns) if used.intersection(columns)]
    columns, there = [units.columns[unit] for unit in kept], [margins[unit] for unit in kept]
    return _among_all(sampled_variances(model, X[0], columns, there, **parts), kept, len(units.columns), 1.0)


def _among_all(found: Variances, kept: Sequence[int], n_units: int, times: float) -> Variances:
    """The same among all units, in other units of measurement."""

    def spread(values: np.ndarray | None) -> np.ndarray | None:
        if values is None:
            return None
        wide = np.zeros((n_units,) * values.ndim)
        wide[np.ix_(*[list(kept)] * values.ndim)] = times * values
        return wide

    return Variances(**{field.name: spread(getattr(found, field.name)) for field in fields(found)})  # type: ignore[arg-type]


def _variances_around(asked: Asked, margins: Sequence[Margin], seed: int) -> tuple[list[Variances], float]:
    """With hyperparameters drawn from an approximation of their posterior, and the k-hat of these draws."""
    model = asked.model
    assert isinstance(model, Reference)
    columns = model.open_columns
    kept, fewer = asked.on_columns(columns)
    seen = [_on_columns(margins[unit], asked.units.columns[unit], columns) for unit in kept]
    X = asked.X[:, list(columns)]
    drawn = model.map_draws(lambda each: variances_of(each, X, fewer, seen), DrawRequest(N_DRAWS, seed))
    warn_if_unreliable(drawn.k_hat)
    return [_among_all(each, kept, len(asked.units.columns), 1.0) for each in drawn.values], drawn.k_hat


def _on_columns(margin: Margin, unit: Sequence[int], columns: Sequence[int]) -> Margin:
    """The margin of what a unit has among some columns."""
    return margin.on([place for place, column in enumerate(unit) if column in columns])


def _shares_of_draws(draws: Sequence[Variances], name: str) -> np.ndarray:
    """Of each draw, (s, p)."""
    return np.array([getattr(each, name) / (float(each.whole) or 1.0) for each in draws])
