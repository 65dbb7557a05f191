"""One submodel: the same model on some of the columns, fitted and scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np

from gpsift._utils.warnings import collect_warnings, messages
from gpsift.gp import GP, ML2, DrawnGP, FittedGP, Fixed
from gpsift.gp.hyperparameters.choices import PER_FEATURE, Hyper
from gpsift.kernels import Constant
from gpsift.selection.cross_validation import Fold
from gpsift.selection.data import Data, Units
from gpsift.selection.orders import Order, Ordered, unit_scores

Parent = Mapping[str, Any]  # of a larger model: arguments of `GP.fit`


def submodel(model: GP, columns: Sequence[int], *, starts: int | None) -> GP:
    """The model for some of the columns; without any it is a constant.

    `starts` is how often the search for hyperparameters is started, None as often as the model says.
    """
    hyper = model.hyper if starts is None else model.hyper.for_chosen_features()
    if isinstance(hyper, Fixed):
        hyper = _fixed_for(hyper, columns)
    elif starts is not None and hasattr(hyper, "starts"):
        hyper = replace(hyper, starts=starts)  # type: ignore[type-var]
    kernel = model.kernel.for_columns(columns) if columns else Constant()
    return replace(model, kernel=kernel, hyper=hyper)


def _fixed_for(hyper: Fixed, columns: Sequence[int]) -> Hyper:
    values = dict(hyper.values)
    if not columns:
        of_kernel = {"lengthscale", "signal_var", "linear_var", "shape"}
        values = {name: value for name, value in values.items() if name not in of_kernel}
    for name in PER_FEATURE:
        if name in values and np.ndim(values[name]):
            values[name] = np.asarray(values[name])[list(columns)]
    return Fixed(**values)


def fit_submodel(
    data: Data, model: GP, columns: Sequence[int], *, parent: Parent | None, starts: int | None
) -> FittedGP | DrawnGP:
    """Fit the model on some of the columns of the data, with what is known from a larger model."""
    chosen = submodel(model, columns, starts=starts)
    # A constant ignores its inputs; some column has to be there.
    known: Mapping[str, Any] = {**(parent or {}), **data.extras}
    return chosen.fit(data.table(columns or [0]), data.y, **known)


@dataclass(frozen=True, eq=False)
class SubmodelFit:
    """What the fit of a submodel gave, on the rows that are scored and for the fits that follow.

    `order`, `scores` and `kl` are those of the full model, as in `Ordered`.
    """

    lpd: np.ndarray  # of each scored row
    mean: np.ndarray  # (n,), or the probability of each class (n, C)
    converged: bool  # the search for hyperparameters
    explains: bool = (
        True  # whether it predicts better than no inputs, and by more than its choice among many would give
    )
    notices: tuple[str, ...] = ()  # of the fit and the ranking
    parent: Parent = field(default_factory=dict)  # what the fits of smaller models know from this one
    order: list[int] | None = None
    scores: list[float] | None = None
    kl: np.ndarray | None = None
    dropped: int | None = None  # in backward elimination, the unit that goes next

    @classmethod
    def of(cls, fitted: FittedGP | DrawnGP, columns: Sequence[int], test: Data | None, n_all: int) -> Self:
        """Of a fitted submodel on some columns of all, scored on test rows, or on each row given the others."""
        quality, converged = fitted.quality, fitted.report.converged
        explains = bool(columns) and quality.explains_as_chosen(len(columns), n_all)
        if test is None:
            return cls(quality.lpd, quality.loo_mean, converged, explains)
        prediction = fitted.predict(test.table(columns or [0]), **test.sizes)
        return cls(prediction.log_density(test.y), prediction.mean, converged, explains)

    @classmethod
    def read(cls, plain: Mapping[str, Any]) -> Self:
        """As it comes out of another process or a checkpoint."""
        kl = None if plain["kl"] is None else np.asarray(plain["kl"])
        arrays = {"lpd": np.asarray(plain["lpd"], dtype=float), "mean": np.asarray(plain["mean"], dtype=float)}
        return cls(**{**plain, **arrays, "notices": tuple(plain["notices"]), "kl": kl})


def as_parent(fitted: FittedGP | DrawnGP, hyper: Hyper) -> Parent:
    """What the fits of smaller models know from this one, as arguments of `GP.fit`: where to start and where to stop.

    A feature with an infinite length-scale is absent, so a submodel is a limit of the larger model and its marginal
    likelihood has the larger one's as a ceiling. That holds where every feature has parameters of its own and no prior
    weighs on them.
    """
    if isinstance(fitted, DrawnGP):
        return {}
    of_features = [feature for kind, feature in fitted.kernel.param_labels(fitted.inputs.names) if kind in PER_FEATURE]
    is_limit = isinstance(hyper, ML2) and None not in of_features
    values = fitted.hyperparameters.items()
    return {
        "start": {name: value for name, value in values if 0 < value < np.inf},  # not of features that are switched off
        "ceiling": fitted.log_marginal_likelihood if is_limit else None,
    }


def choices(model: GP) -> str:
    """The model in words, for a checkpoint."""
    return ", ".join(f"{f.name}={getattr(model, f.name)!r}" for f in fields(model))


Fitted = FittedGP | DrawnGP


def lead(
    fold: Fold, model: GP, units: Units, order: Order, given: Ordered | None, largest: int, fitted: Fitted | None
) -> SubmodelFit:
    """Fit the full model unless it is there, score it, and put the units in order, unless their order is given."""
    with collect_warnings() as caught:
        columns = units.all_columns
        if fitted is None:
            fitted = fit_submodel(fold.train, model, columns, parent=None, starts=None)
        found = SubmodelFit.of(fitted, columns, fold.test, len(fold.train.names))
        made = order.of(fitted, units, largest) if given is None else given
    notices = (*messages(caught), *made.notices)
    parent = as_parent(fitted, model.hyper)
    return replace(found, parent=parent, order=made.order, scores=made.scores, kl=made.kl, notices=notices)


def follow(fold: Fold, model: GP, columns: Sequence[int], parent: Parent | None, starts: int | None) -> SubmodelFit:
    """Fit and score one submodel."""
    with collect_warnings() as caught:
        fitted = fit_submodel(fold.train, model, columns, parent=parent, starts=starts)
        found = SubmodelFit.of(fitted, columns, fold.test, len(fold.train.names))
    return replace(found, notices=tuple(messages(caught)))


def eliminate(
    fold: Fold, model: GP, units: Units, kept: Sequence[int], order: Order, above: Parent | None, fitted: Fitted | None
) -> SubmodelFit:
    """Fit the submodel on the units that are left unless it is there, score it, and name the next to go.

    `above` is what is known from the model with one unit more; the first has none above it.
    """
    assert order.scoring is not None  # what eliminates has a measure
    with collect_warnings() as caught:
        columns = units.columns_of(kept)
        if fitted is None:
            starts = None if above is None else order.starts
            fitted = fit_submodel(fold.train, model, columns, parent=above, starts=starts)
        found = SubmodelFit.of(fitted, columns, fold.test, len(fold.train.names))
        free = [place for place, unit in enumerate(kept) if unit not in units.forced]
        dropped = None
        if free:
            scores = unit_scores(fitted, units.within(kept), order.scoring)
            dropped = kept[min(free, key=lambda place: scores[place])]
    parent = as_parent(fitted, model.hyper)
    return replace(found, parent=parent, dropped=dropped, notices=tuple(messages(caught)))
