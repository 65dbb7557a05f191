"""The verb: the nearest submodel on chosen features, as a fitted model of those columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpsift._utils.threads import blas_threads_for
from gpsift._utils.words import listed
from gpsift.gp import DrawnGP, FittedGP
from gpsift.gp.inference import Inferred
from gpsift.gp.inference.exact import log_evidence_of
from gpsift.reference.base import MissingCapability, Reference
from gpsift.reference.posterior import exact_posterior
from gpsift.selection.projector import Projector, Submodel
from gpsift.selection.record_projection import Projection, ProjectionPath


def project(
    reference: FittedGP,
    features: Sequence[str | int] | str,
    *,
    start: Projection | ProjectionPath | None = None,
    left_out: bool = True,
) -> Projection[FittedGP]:
    r"""The submodel on some of the features whose predictions are nearest to those of a fitted model.

    It is conditioned on the same observations, its kernel sees the chosen features only, and its hyperparameters, the
    noise among them, minimise the divergence of its predictions from the reference's,

    .. math:: J = \sum_i \mathrm{KL}(p_i \,\|\, q_i),

    p_i and q_i being the predictive distributions of an observation at training point i given all other points. It is
    not fitted to the data a second time, but to what the reference has learned from them.

    Parameters
    ----------
    reference : FittedGP
        Such as ``GP().fit(X, y)``.
    features : sequence of names or indices
        The features that the submodel may use; none is allowed.
    start : Projection or ProjectionPath, optional
        Of the same reference, on some of the features: the search starts there too, and ends no farther away. Of a
        path, the largest submodel with no other features is taken.
    left_out : bool
        Whether predictions are compared at points that are left out. In-sample predictions have a trivial minimum,
        where the submodel reproduces the data whatever its features: see the documentation.

    Returns
    -------
    Projection

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=60)
    >>> gp = gs.GP().fit(X, y)
    >>> both, one = gs.project(gp, ["x1", "x2"]), gs.project(gp, ["x1"])
    >>> bool(both.explained > 0.9), bool(one.explained < 0.5)
    (True, True)
    >>> both.gp.predict(X[:, :2]).mean.shape
    (60,)

    References
    ----------
    Piironen and Vehtari (2016), Projection predictive model selection for Gaussian processes.
    """
    check_reference(reference)
    chosen = read_chosen(features, reference.inputs.names)
    with blas_threads_for(reference.y_train.size):
        projector = Projector(reference, left_out=left_out)
        submodel = projector.project(sorted(chosen), read_start(start, chosen, projector))
        gp = as_fitted(reference, projector, submodel, chosen)
    return Projection(
        gp=gp,
        features=chosen,
        names=tuple(reference.inputs.names[j] for j in chosen),
        kl=submodel.kl,
        kl_empty=projector.empty.kl,
        left_out=left_out,
        n_points=projector.n_points,
        n_features=reference.inputs.n_features,
        converged=submodel.converged,
        n_evaluations=submodel.n_evaluations,
        labels=projector.space.labels,
        log_params=submodel.log_params,
    )


def as_fitted(reference: FittedGP, projector: Projector, submodel: Submodel, columns: Sequence[int]) -> FittedGP:
    """The submodel as a model of its columns in this order; without any, of all columns, which it ignores."""
    columns = list(columns) or list(range(reference.inputs.n_features))
    ascending = sorted(columns)
    kernel = projector.kernel_of(submodel.log_params, ascending).for_columns([ascending.index(j) for j in columns])
    noise_var, t = projector.space.noise_var(submodel.log_params), projector.sites.target
    posterior, jitter = exact_posterior(kernel, projector.X[:, columns], t, projector.sites.var + noise_var)
    q = np.diagonal(posterior.M)
    likelihood = reference.likelihood
    has_evidence = likelihood.has_closed_form  # sites made for another kernel have none
    if has_evidence and not likelihood.knows_noise:
        likelihood = likelihood.with_noise_var(noise_var)
    names = tuple(reference.inputs.names[j] for j in columns)
    return replace(
        reference,
        likelihood=likelihood,
        inferred=Inferred(
            posterior=posterior,
            log_evidence=log_evidence_of(t, posterior.weights, posterior.L) if has_evidence else np.nan,
            cavity_mean=t - posterior.weights / q,
            cavity_var=np.maximum(1.0 / q - posterior.site_var, 0.0),
            jitter=jitter,
        ),
        scaling=replace(
            reference.scaling,
            x_center=reference.scaling.x_center[columns],
            x_scale=reference.scaling.x_scale[columns],
        ),
        inputs=replace(reference.inputs, names=names, X=reference.inputs.X[:, columns]),  # type: ignore[index]
        report=replace(
            reference.report,
            converged=submodel.converged,
            message="projected from a model of more features",
            objectives=(),
            starts_agree=True,
            moving_features=(),
            n_evaluations=submodel.n_evaluations,
            at_limit=(),
            jitter=jitter,
            constant_columns=tuple(name for name in reference.report.constant_columns if name in names),
            stepped_features=(),
            n_searched=0,
        ),
    )


def check_reference(given: Any) -> None:
    """Refuse what cannot be projected."""
    if isinstance(given, FittedGP):
        return
    if isinstance(given, DrawnGP):
        raise MissingCapability(
            "A model of many draws has no one projection: project one of its `members`, or a model fitted with "
            "`GP(hyper=MAP())`."
        )
    kind = type(given).__name__
    if isinstance(given, Reference):
        raise MissingCapability(f"Projection needs the posterior of a model such as `GP().fit(X, y)`; {kind} has none.")
    advice = "Pass its `gp_`." if hasattr(given, "gp_") else "Pass what its `fit(X, y)` returns."
    raise TypeError(
        f"`reference` must be a fitted model such as `GP().fit(X, y)`, got {kind}. "
        f"{advice if hasattr(given, 'fit') else 'Fit a model first.'}"
    )


def read_chosen(features: Any, names: Sequence[str]) -> tuple[int, ...]:
    """Columns by names or indices, in the order given."""
    chosen: list[int] = []
    for item in [features] if isinstance(features, str) else features:
        column = list(names).index(item) if isinstance(item, str) and item in names else item
        is_index = isinstance(column, int | np.integer) and not isinstance(column, bool)
        if not is_index or column not in range(len(names)):
            raise ValueError(
                f"`features` names {item!r}, but the {len(names)} features of the model are {listed(names)}."
            )
        if column in chosen:
            raise ValueError(f"`features` names {names[column]!r} twice.")
        chosen.append(int(column))
    return tuple(chosen)


def read_start(start: Any, chosen: Sequence[int], projector: Projector) -> Submodel | None:
    """The submodel from which to start besides the reference."""
    if start is None:
        return None
    if isinstance(start, ProjectionPath):
        size = max(size for size in map(int, start.sizes) if set(start.columns(size)) <= set(chosen))
        features, log_params = start.columns(size), start.log_params[size]
    elif isinstance(start, Projection):
        features, log_params = start.features, start.log_params
        other = [name for name, j in zip(start.names, features, strict=True) if j not in chosen]
        if other:
            raise ValueError(f"`start` has features that are not among those to project on: {', '.join(other)}.")
    else:
        raise TypeError(f"`start` must be a Projection or a ProjectionPath, got {type(start).__name__}.")
    if start.labels != projector.space.labels:
        raise ValueError("`start` is a projection of another model: it has other hyperparameters than the reference.")
    return Submodel(tuple(features), log_params, np.inf)
