"""Search: fit submodels of growing size, and compare their predictions with those of the full model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from numbers import Integral
from typing import Any, Unpack

import numpy as np

from gpsift._utils.parallel import Work
from gpsift._utils.warnings import warn
from gpsift.gp import GP, DrawnGP, FittedGP, one_of
from gpsift.likelihoods import read_likelihood
from gpsift.reference.base import N_CLOSE
from gpsift.reference.inputs import same_rows
from gpsift.relevance import Measure
from gpsift.selection.cross_validation import HeldOut, read_held_out
from gpsift.selection.data import Data, Features, ObservationOptions, Units
from gpsift.selection.orders import Order, read_order
from gpsift.selection.path import Path
from gpsift.selection.plan import SearchPlan
from gpsift.selection.sizes import Rule, suggest_size
from gpsift.selection.submodels import fit_submodel

# With more features sizes should be limited, or features be activated one by one.
MANY_FEATURES = 300


def search(
    X: Any,
    y: Any,
    measure: Measure | Order | str | None = None,
    *,
    sizes: int | Iterable[int] | None = None,
    cv: HeldOut | Any = None,
    model: GP | None = None,
    reference: GP | FittedGP | DrawnGP | None = None,
    features: Features = Features(),
    work: Work = Work(),
    **observed: Unpack[ObservationOptions],
) -> Path:
    """Fit submodels of growing size and compare their predictions with those of the full model.

    Parameters
    ----------
    X, y : array or data frame (n, p), and array (n,)
        As in `GP.fit`.
    measure : Measure, Order or {"kl", "var", "ard", "rate", "derivative", "projection"}, optional
        The order of the features: `KL()` on the full model by default, which is ``Ranked(KL())``. ``Backward`` ranks
        again after every removal of the last feature. "projection", which is ``ForwardProjection()``, adds the feature
        whose projected submodel is nearest to the full model, step by step: slower, and better where features can
        replace one another.
    sizes : int or sequence of int, optional
        Sizes of the submodels; a number is the largest. By default all, from no feature to all of them; with ``Sift()``
        to those that the full model uses and the few that came close.
    cv : HeldOut, int, splitter or splits, optional
        How predictions are scored: ``LeaveOneOut()`` by default, ``Folds(...)`` or ``TestSet(X, y)``. A number of
        folds, a scikit-learn splitter or a sequence of (train, test) row numbers goes to `Folds`.
    model : GP, optional
        The model to fit; `GP()` by default. Submodels of ``GP(hyper=Sift())`` have its prior and all of their features,
        which are chosen already.
    reference : GP, FittedGP or DrawnGP, optional
        The full model, if it is not `model`, say ``GP(hyper=NUTS())``; or ``model.fit(X, y)``, which is then not
        fitted again.
    features : Features
        Groups, categories, and features that are in every submodel.
    work : Work
        Processes, checkpoint and progress.
    **observed
        `noise_var`, `exposure`, `trials` as in `GP.fit`.

    Returns
    -------
    Path

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4))
    >>> y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=60)
    >>> path = gs.search(X, y)
    >>> path.features(2)
    ['x1', 'x2']
    >>> gs.suggest_size(path).size
    2
    """
    data = Data.read(X, y, observed)
    order, units = read_order(measure), features.units(data.names)
    return run_plan(make_plan(data, order, sizes=sizes, cv=cv, model=model, reference=reference, units=units), work)


def make_plan(
    data: Data, order: Order, *, sizes: Any, cv: Any, model: GP | None, reference: Any, units: Units
) -> SearchPlan:
    """Check the choices of a search, and make its plan.

    A model that leaves features inactive is fitted here if no sizes are given: these end with its active features and
    the few that came close.
    """
    model = GP() if model is None else model
    is_choice = isinstance(reference, GP)
    scheme = read_held_out(cv).scheme(data, classes=read_likelihood(model.likelihood).predicts_classes)
    fitted = None if is_choice else _read_fitted(reference, data)
    if fitted is None and sizes is None and model.hyper.switches:
        fitted = fit_submodel(data, model, units.all_columns, parent=None, starts=None)
    if fitted is not None and sizes is None:
        sizes = n_candidate_units(fitted, units)
    if sizes is None and len(units) > MANY_FEATURES:
        warn(
            f"Submodels of all sizes up to {len(units)} are fitted, which takes long. Give `sizes`, or use "
            "`model=GP(hyper=Sift())`, which switches features on one by one and compares submodels of those."
        )
    return SearchPlan(
        data=data,
        scheme=scheme,
        model=model,
        reference=reference if is_choice else None,
        fitted=fitted,
        units=units,
        order=order,
        sizes=_read_sizes(sizes, units),
    )


def n_candidate_units(fitted: FittedGP | DrawnGP, units: Units) -> int:
    """The number of candidate units for submodels: the active ones of the full model, and those that came close."""
    n_used = len(units.active(fitted.used))
    n_known = int(np.isfinite(fitted.slopes).sum())
    return min(len(units), n_used + min(N_CLOSE, n_known))


def run_plan(plan: SearchPlan, work: Work, rule: Rule = "one-se") -> Path:
    """Run all fits of a plan, and suggest a size by a rule."""
    if plan.scheme.leaves_rows_out and not plan.scheme.is_validated:
        warn(
            "The order of the features was found with all rows, those left out included: the curve is optimistic. "
            "`validate_search=True` finds it in each fold anew."
        )
    with work.runner("submodels", plan.n_tasks, plan.identity) as runner:
        found = plan.run(runner)
    for message in found[-1].full.notices:
        warn(message)
    path = plan.path(found, classes=read_likelihood(plan.model.likelihood).predicts_classes)
    return replace(path, suggestion=suggest_size(path, rule))


def _read_sizes(sizes: Any, units: Units) -> tuple[int, ...]:
    smallest, largest = len(units.forced), len(units)
    if sizes is None:
        return tuple(range(smallest, largest + 1))
    if isinstance(sizes, Integral) and not isinstance(sizes, bool):
        wanted = list(range(smallest, int(sizes) + 1))
    else:
        wanted = sorted(set(sizes))
    wrong = [size for size in wanted if not isinstance(size, Integral) or not smallest <= size <= largest]
    if wrong or not wanted:
        forced = f" (the {smallest} forced unit(s) are in every submodel)" if smallest else ""
        raise ValueError(f"`sizes` must lie between {smallest} and {largest}{forced}, got {sizes!r}.")
    return tuple(int(size) for size in wanted)


def _read_fitted(reference: Any, data: Data) -> FittedGP | DrawnGP | None:
    if reference is None:
        return None
    if not isinstance(reference, FittedGP | DrawnGP):
        raise TypeError(
            f"`reference` must be a GP, or what its `fit(X, y)` returns, got {type(reference).__name__}: submodels of "
            "other models cannot be fitted."
        )
    one = one_of(reference)
    is_same = same_rows(one.inputs.X, data.X) and np.array_equal(one.y_train, data.y)
    if reference.inputs.names != data.names or not is_same:
        raise ValueError(
            "`reference` was fitted to other rows or columns than `X` and `y`. Leave it out, or fit it to them."
        )
    return reference
