"""Fit and score submodels: a model restricted to some of the columns.

`fit_submodel` fits one. `fit_full`, `fit_and_score` and `backward_step` are the tasks of a search. They can run in
other processes, and their results (`SubmodelFit`) are stored in checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np

from gpsift._utils.warnings import collect_warnings, messages
from gpsift.gp import GP, ML2, DrawnGP, FittedGP, Fixed
from gpsift.gp.hyperparameters.choices import Hyper
from gpsift.kernels import Constant, Kernel
from gpsift.selection.cross_validation import Fold
from gpsift.selection.data import Data, Units
from gpsift.selection.orders import FeatureOrder, Order, rank_units

Fitted = FittedGP | DrawnGP
ParentStart = Mapping[str, Any]  # arguments of `GP.fit` for a warm start from a larger model


def submodel(model: GP, columns: Sequence[int], *, starts: int | None) -> GP:
    """Return the model for some of the columns; without any it is a constant.

    `starts` is the number of starts of the search for hyperparameters; None leaves it as it is in the model.
    """
    hyper = model.hyper if starts is None else model.hyper.for_chosen_features()
    if isinstance(hyper, Fixed):
        hyper = _restrict(hyper, model.kernel, columns)
    elif starts is not None and hasattr(hyper, "starts"):
        hyper = replace(hyper, starts=starts)  # type: ignore[type-var]
    kernel = model.kernel.for_columns(columns) if columns else Constant()
    return replace(model, kernel=kernel, hyper=hyper)


def _restrict(hyper: Fixed, kernel: Kernel, columns: Sequence[int]) -> Hyper:
    """Restrict the fixed hyperparameters of a model with this kernel to some of the columns."""
    lost: set[str] = set()
    if not columns:
        lost = {parameter.name for parameter in kernel.parameters} - {parameter.name for parameter in Constant.PARAMS}
    values: dict[str, Any] = {name: value for name, value in hyper.values.items() if name not in lost}
    for name, value in values.items():
        if np.ndim(value):
            values[name] = np.asarray(value)[list(columns)]
    return Fixed(**values)


def fit_submodel(
    data: Data, model: GP, columns: Sequence[int], *, parent: ParentStart | None, starts: int | None
) -> Fitted:
    """Fit the model on some of the columns of the data, with a warm start from a larger model."""
    chosen = submodel(model, columns, starts=starts)
    # A constant kernel ignores its inputs, but the table needs a column.
    known: Mapping[str, Any] = {**(parent or {}), **data.extras}
    return chosen.fit(data.table(columns or [0]), data.y, **known)


def parent_start(fitted: Fitted, hyper: Hyper) -> ParentStart:
    """Return arguments of `GP.fit` for smaller models: starting hyperparameters, and an upper bound of the evidence.

    A feature with an infinite length-scale is absent, so a submodel is a limit of the larger model, whose marginal
    likelihood is an upper bound of its own. That needs parameters for each feature, and no prior.
    """
    if isinstance(fitted, DrawnGP):
        return {}
    labels = fitted.kernel.param_labels(fitted.inputs.names)
    declared = zip(fitted.kernel.parameters, labels, strict=True)
    has_shared = any(parameter.per_feature and feature is None for parameter, (_, feature) in declared)
    is_limit = isinstance(hyper, ML2) and not has_shared
    values = fitted.hyperparameters.items()
    return {
        "start": {name: value for name, value in values if 0 < value < np.inf},  # without inactive features
        "ceiling": fitted.log_marginal_likelihood if is_limit else None,
    }


def describe_model(model: GP) -> str:
    """Return the choices of a model as text, for a checkpoint."""
    return ", ".join(f"{f.name}={getattr(model, f.name)!r}" for f in fields(model))


@dataclass(frozen=True, eq=False)
class SubmodelFit:
    """The result of a fit: predictions of the scored rows, and a warm start for smaller models.

    `order`, `scores` and `kl` are those of the full model, as in `FeatureOrder`.
    """

    lpd: np.ndarray  # of each scored row
    mean: np.ndarray  # (n,), or the probability of each class (n, C)
    converged: bool  # the search for hyperparameters
    explains: bool = True  # whether it predicts better than no inputs, by more than selection would give by chance
    notices: tuple[str, ...] = ()  # of the fit and the ranking
    parent: ParentStart = field(default_factory=dict)
    order: Sequence[int] = ()
    scores: Sequence[float] | None = None
    kl: np.ndarray | None = None
    dropped: int | None = None  # in backward elimination, the unit that is removed next

    @classmethod
    def of(cls, fitted: Fitted, columns: Sequence[int], test: Data | None, n_all: int) -> Self:
        """Score a model on some of n_all columns, on test rows or on each row given the others."""
        quality, converged = fitted.quality, fitted.report.converged
        explains = bool(columns) and quality.explains_as_chosen(len(columns), n_all)
        if test is None:
            return cls(quality.lpd, quality.loo_mean, converged, explains)
        prediction = fitted.predict(test.table(columns or [0]), **test.prediction_options)
        return cls(prediction.log_density(test.y), prediction.mean, converged, explains)

    @classmethod
    def read(cls, plain: Mapping[str, Any]) -> Self:
        """Restore the result of a task."""
        kl = None if plain["kl"] is None else np.asarray(plain["kl"])
        arrays = {"lpd": np.asarray(plain["lpd"], dtype=float), "mean": np.asarray(plain["mean"], dtype=float)}
        return cls(**{**plain, **arrays, "notices": tuple(plain["notices"]), "kl": kl})


def fit_full(
    fold: Fold, model: GP, units: Units, order: Order, given: FeatureOrder | None, largest: int, fitted: Fitted | None
) -> SubmodelFit:
    """Fit the full model, score it and sort the units; `fitted` and `given` replace the fit and the order."""
    columns = units.all_columns
    with collect_warnings() as caught:
        if fitted is None:
            fitted = fit_submodel(fold.train, model, columns, parent=None, starts=None)
        found = SubmodelFit.of(fitted, columns, fold.test, len(fold.train.names))
        made = order.sort(fitted, units, largest) if given is None else given
    notices = (*messages(caught), *made.notices)
    parent = parent_start(fitted, model.hyper)
    return replace(found, parent=parent, order=made.order, scores=made.scores, kl=made.kl, notices=notices)


def fit_and_score(
    fold: Fold, model: GP, columns: Sequence[int], parent: ParentStart | None, starts: int | None
) -> SubmodelFit:
    """Fit and score one submodel."""
    with collect_warnings() as caught:
        fitted = fit_submodel(fold.train, model, columns, parent=parent, starts=starts)
        found = SubmodelFit.of(fitted, columns, fold.test, len(fold.train.names))
    return replace(found, notices=tuple(messages(caught)))


def backward_step(
    fold: Fold,
    model: GP,
    units: Units,
    kept: Sequence[int],
    order: Order,
    parent: ParentStart | None,
    fitted: Fitted | None,
) -> SubmodelFit:
    """Fit and score the submodel on the remaining units, and choose the unit to remove next.

    `parent` is the warm start from the model with one unit more; the first step has none. `fitted` replaces the fit.
    """
    assert order.scoring is not None  # backward elimination has a measure
    columns = units.columns_of(kept)
    dropped: int | None = None
    with collect_warnings() as caught:
        if fitted is None:
            starts = None if parent is None else order.starts
            fitted = fit_submodel(fold.train, model, columns, parent=parent, starts=starts)
        found = SubmodelFit.of(fitted, columns, fold.test, len(fold.train.names))
        free = [place for place, unit in enumerate(kept) if unit not in units.forced]
        if free:
            scores = rank_units(fitted, units.subset(kept), order.scoring).scores
            dropped = kept[min(free, key=lambda place: scores[place])]
    parent = parent_start(fitted, model.hyper)
    return replace(found, parent=parent, dropped=dropped, notices=tuple(messages(caught)))
