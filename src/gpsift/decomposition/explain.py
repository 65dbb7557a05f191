"""The verb: single predictions taken apart, what each feature adds to the average."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gpsift._utils.threads import blas_threads_for
from gpsift.decomposition.asked import Asked, closed_posterior
from gpsift.decomposition.margins import Margin, Margins, read_margins
from gpsift.decomposition.products import Products
from gpsift.decomposition.record_attribution import Attribution
from gpsift.decomposition.sampled import sampled_shapley_values
from gpsift.decomposition.shapley import shapley_values
from gpsift.reference.base import Reference
from gpsift.relevance.feature_groups import FeatureGroups, group_coordinates, scatter_scores
from gpsift.relevance.rank import versions


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
    known = asked.points.inputs.training_sample
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
    model: Reference, X: np.ndarray, units: FeatureGroups, margins: Sequence[Margin]
) -> tuple[float, np.ndarray, np.ndarray]:
    """The average, and values and variances of all units, (n, p) each, in the units of the target."""
    placed = closed_posterior(model, X)
    if placed is None:
        mean, values = sampled_shapley_values(model, X, units.columns, margins)
        return mean, values, np.full_like(values, np.nan)
    products = Products.of(placed, units.columns, margins)
    found = shapley_values(products, placed.inputs(X))
    values, variances = (scatter_scores(each, products.varying, len(units.columns)) for each in found)
    average = placed.affine.y_center + placed.affine.y_scale * products.average
    return average, placed.affine.y_scale * values, placed.affine.y_scale**2 * variances
