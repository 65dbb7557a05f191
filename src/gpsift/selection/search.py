"""Fit submodels of growing size, and compare their predictions with those of the full model.

`SearchPlan` divides a search into tasks, which are fits, and runs them in the order in which they need each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import Any, Unpack

import numpy as np

from gpsift._utils.parallel import Runner, Task, Work, fingerprint
from gpsift._utils.warnings import warn
from gpsift.gp import GP, DrawnGP, FittedGP, first_member
from gpsift.likelihoods import read_likelihood
from gpsift.reference.base import N_CLOSE
from gpsift.reference.inputs import same_rows
from gpsift.relevance import Measure
from gpsift.relevance.rank import versions
from gpsift.selection.cross_validation import CVScheme, Fold, HeldOut, prediction_metrics, read_held_out
from gpsift.selection.data import Data, Features, ObservationOptions, Units, is_whole
from gpsift.selection.orders import FeatureOrder, Order, read_order
from gpsift.selection.path import Path, Rule, suggest_size
from gpsift.selection.submodels import (
    Fitted,
    SubmodelFit,
    backward_step,
    describe_model,
    fit_and_score,
    fit_full,
    fit_submodel,
)
from gpsift.version import __version__

# With more features a search of all sizes warns.
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
        to those that the full model uses and the few that are nearest to being used.
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

    If no sizes are given, a model that leaves features inactive is fitted first. The largest submodel then has its
    active features, and the few that are nearest to being active.
    """
    model = GP() if model is None else model
    scheme = read_held_out(cv).scheme(data, classes=read_likelihood(model.likelihood).predicts_classes)
    other, fitted = (reference, None) if isinstance(reference, GP) else (None, reference)
    if fitted is not None:
        _check_fitted(fitted, data)
    elif sizes is None and model.hyper.switches:
        fitted = fit_submodel(data, model, units.all_columns, parent=None, starts=None)
    if fitted is not None and sizes is None:
        sizes = n_candidate_units(fitted, units)

    smallest, largest = len(units.forced), len(units)
    if sizes is None:
        wanted = list(range(smallest, largest + 1))
        if largest > MANY_FEATURES:
            warn(
                f"Submodels of all sizes up to {largest} are fitted, which takes long. Give `sizes`, or use "
                "`model=GP(hyper=Sift())`, which switches features on one by one and compares submodels of those."
            )
    else:
        wanted = list(range(smallest, int(sizes) + 1)) if is_whole(sizes) else sorted(set(sizes))
    wrong = [size for size in wanted if not isinstance(size, Integral) or not smallest <= size <= largest]
    if wrong or not wanted:
        forced = f" (the {smallest} forced unit(s) are in every submodel)" if smallest else ""
        raise ValueError(f"`sizes` must lie between {smallest} and {largest}{forced}, got {sizes!r}.")
    return SearchPlan(data, scheme, model, other, fitted, units, order, tuple(int(size) for size in wanted))


def _check_fitted(given: Any, data: Data) -> None:
    """Raise an error if a fitted reference is not a GP of this package, or was fitted to other data."""
    if not isinstance(given, FittedGP | DrawnGP):
        raise TypeError(
            f"`reference` must be a GP, or what its `fit(X, y)` returns, got {type(given).__name__}: submodels of "
            "other models cannot be fitted."
        )
    one = first_member(given)
    is_same = same_rows(one.inputs.X, data.X) and np.array_equal(one.y_train, data.y)
    if given.inputs.names != data.names or not is_same:
        raise ValueError(
            "`reference` was fitted to other rows or columns than `X` and `y`. Leave it out, or fit it to them."
        )


def n_candidate_units(fitted: FittedGP | DrawnGP, units: Units) -> int:
    """Count the units of the largest submodel: the active ones of the full model, and the few nearest to active."""
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
    path = plan.make_path(found, classes=read_likelihood(plan.model.likelihood).predicts_classes)
    return replace(path, suggestion=suggest_size(path, rule))


@dataclass(eq=False)
class FoldResult:
    """The results of a fold: the order, the fits of the full model and of the reference, and submodels by size."""

    fold: Fold
    order: list[int] = field(default_factory=list)
    full: SubmodelFit = field(init=False)
    reference: SubmodelFit = field(init=False)
    submodels: dict[int, SubmodelFit] = field(default_factory=dict)

    def submodel(self, size: int) -> SubmodelFit:
        """Return the submodel of a size, which is the full model at full size."""
        return self.submodels.get(size, self.full)


@dataclass(frozen=True, eq=False)
class SearchPlan:
    """The choices of a search, and its fits as tasks.

    `reference` is the choice of the full model that submodels are compared with, if it is not `model`. `fitted` is the
    full model fitted to all rows, and `known_order` its order of the units, if they are known already.
    """

    data: Data
    scheme: CVScheme
    model: GP
    reference: GP | None
    fitted: Fitted | None
    units: Units
    order: Order
    sizes: tuple[int, ...]
    known_order: FeatureOrder | None = None

    @cached_property
    def folds(self) -> tuple[Fold, ...]:
        """The scored folds, and at the end the fold of all rows, whose order is the answer."""
        folds = self.scheme.folds
        return folds if len(folds) == 1 and folds[0].name == "all" else (*folds, Fold.all_rows(self.data))

    @property
    def smaller_sizes(self) -> tuple[int, ...]:
        """Sizes below that of the full model."""
        return tuple(size for size in self.sizes if size < len(self.units))

    @property
    def has_inactive_units(self) -> bool:
        """Whether the full model leaves features inactive, and no submodel has all of them."""
        return self.model.hyper.switches and max(self.sizes) < len(self.units)

    @property
    def first_backward_size(self) -> int:
        """The size from which backward elimination removes units one by one."""
        return max(self.sizes) if self.has_inactive_units else len(self.units)

    @property
    def n_tasks(self) -> int:
        """The number of fits, for the progress bar."""
        n_folds, n_scored = len(self.folds), len(self.scheme.folds)
        references = 0 if self.reference is None else n_scored
        if self.order.eliminates:
            steps = self.first_backward_size - min(self.sizes) + 1
            return n_folds * (steps + self.has_inactive_units) + references
        return n_folds + references + n_scored * len(self.smaller_sizes)

    @property
    def identity(self) -> Mapping[str, str]:
        """Everything that the results depend on, for a checkpoint."""
        folds = self.scheme.folds
        splits = [part for fold in folds for part in (fold.rows, fold.train.X, fold.train.y, fold.y)]
        tests = [fold.test.X for fold in folds if fold.test is not None]
        return {
            "gpsift": __version__,
            "data": self.data.fingerprint,
            "splits": f"{self.scheme.label} {fingerprint(*splits, *tests)}",
            "model": describe_model(self.model),
            "reference": "the model" if self.reference is None else describe_model(self.reference),
            "measure": self.order.label,
            "units": self.units.identity,
            "sizes": str(self.sizes),
            "search": f"validate_search={self.scheme.validates_search}, starts={self.order.starts}",
        }

    def run(self, runner: Runner) -> list[FoldResult]:
        """Run all fits; return the results of each fold, those of all rows last."""
        results = [FoldResult(fold) for fold in self.folds]
        if self.order.eliminates:
            self._run_backward(runner, results)
        else:
            self._run_forward(runner, results)
        for each in results:
            each.reference = each.full
        if self.reference is not None:
            tasks = [
                Task(f"{fold.name}/reference", (fold, self.reference, self.units.all_columns, None, None))
                for fold in self.scheme.folds
            ]
            for each, fit in zip(results, _run_fits(runner, fit_and_score, tasks), strict=False):  # all rows come last
                each.reference = fit
        return results

    def _run_forward(self, runner: Runner, results: Sequence[FoldResult]) -> None:
        """Sort the units once by the full model, then fit all submodels along that order, as in the paper."""
        if self.scheme.validates_search or len(results) == 1:
            self._fit_full(runner, results)
        else:
            self._fit_full(runner, results[-1:])
            self._fit_full(runner, results[:-1], FeatureOrder(results[-1].order))
        scored, tasks = results[: len(self.scheme.folds)], []
        for each in scored:
            for size in self.smaller_sizes:
                columns = self.units.columns_of(each.order[:size])
                arguments = (each.fold, self.model, columns, each.full.parent, self.order.starts)
                tasks.append(Task(f"{each.fold.name}/size {size}", arguments))
        fits = iter(_run_fits(runner, fit_and_score, tasks))
        for each in scored:
            each.submodels = {size: next(fits) for size in self.smaller_sizes}

    def _run_backward(self, runner: Runner, results: Sequence[FoldResult]) -> None:
        """Eliminate backwards: fit, remove the least relevant unit, and fit again, in all folds at the same time.

        Units that are inactive in the full model are removed first, except the few that are nearest to being active.
        """
        n_units, smallest = len(self.units), max(min(self.sizes), len(self.units.forced))
        if self.has_inactive_units:
            self._fit_full(runner, results)
        for each in results:
            if self.has_inactive_units:
                each.submodels[n_units] = each.full
            else:
                each.order = list(range(n_units))
        for size in range(self.first_backward_size, smallest - 1, -1):
            tasks = []
            for each in results:
                above = each.submodels.get(size + 1, each.submodels.get(n_units))
                parent, fitted = (None, self._fitted_to(each.fold)) if above is None else (above.parent, None)
                arguments = (each.fold, self.model, self.units, each.order[:size], self.order, parent, fitted)
                tasks.append(Task(f"{each.fold.name}/size {size}", arguments))
            for each, fit in zip(results, _run_fits(runner, backward_step, tasks), strict=True):
                each.submodels[size] = fit
                if fit.dropped is not None and size > smallest:
                    each.order.remove(fit.dropped)  # the units that are left come first
                    each.order.insert(size - 1, fit.dropped)
        for each in results:
            each.full, each.order = each.submodels[n_units], self.units.put_forced_first(each.order)

    def _fit_full(self, runner: Runner, results: Sequence[FoldResult], shared: FeatureOrder | None = None) -> None:
        """Fit the full model of each fold, and sort its units, unless the folds share an order."""
        tasks = []
        for each in results:
            known = self.known_order if each.fold.name == "all" else shared
            arguments = (each.fold, self.model, self.units, self.order, known, max(self.sizes))
            tasks.append(Task(f"{each.fold.name}/full", (*arguments, self._fitted_to(each.fold))))
        for each, fit in zip(results, _run_fits(runner, fit_full, tasks), strict=True):
            each.full, each.order = fit, list(fit.order)

    def _fitted_to(self, fold: Fold) -> Fitted | None:
        """Return the full model of a fold if it was fitted before the search, or None."""
        return self.fitted if fold.name == "all" else None

    def make_path(self, found: Sequence[FoldResult], *, classes: bool) -> Path:
        """Make the path of all results."""
        scored = found[: len(self.scheme.folds)]
        y = np.concatenate([each.fold.y for each in scored])
        mean = np.array([np.concatenate([each.submodel(size).mean for each in scored]) for size in self.sizes])
        reference_mean = np.concatenate([each.reference.mean for each in scored])
        metrics = [dict(prediction_metrics(y, each, classes=classes)) for each in mean]
        if classes and self.sizes[0] == 0:
            if scored[0].fold.test is None:
                # A model without inputs predicts the shares of the classes among the other rows, where the class
                # of the row left out is a little rarer. The shares among all rows avoid this bias.
                shares = y.mean() if mean.ndim == 2 else np.bincount(y.astype(int), minlength=mean.shape[2]) / y.size
                metrics[0] = dict(prediction_metrics(y, np.broadcast_to(shares, mean[0].shape), classes=classes))
            metrics[0]["auc"] = 0.5  # a model without inputs does not order the rows
        full = found[-1].full
        return Path(
            measure=self.order.label,
            names=self.units.names,
            members=tuple(tuple(self.data.names[column] for column in columns) for columns in self.units.columns),
            order=np.array(found[-1].order),
            sizes=np.array(self.sizes),
            scheme=self.scheme.label,
            validated=self.scheme.is_validated,
            rows=np.concatenate([each.fold.rows for each in scored]),
            y=y,
            lpd=np.array([np.concatenate([each.submodel(size).lpd for each in scored]) for size in self.sizes]),
            reference_lpd=np.concatenate([each.reference.lpd for each in scored]),
            mean=mean,
            reference_mean=reference_mean,
            metrics={name: np.array([each[name] for each in metrics]) for name in metrics[0]},
            reference_metrics=prediction_metrics(y, reference_mean, classes=classes),
            kl=full.kl,
            fold_orders=tuple(np.array(each.order) for each in scored) if len(scored) > 1 else (),
            notices=full.notices,
            explains=any(fit.explains for fit in (full, *found[-1].submodels.values())),
            unconverged=sum(not fit.converged for each in found for fit in each.submodels.values()),
            details={
                "starts": self.order.starts,
                "forced": self.units.forced_names,
                "scores": full.scores,
                "versions": versions(),
            },
        )


def _run_fits(runner: Runner, function: Callable[..., SubmodelFit], tasks: Sequence[Task]) -> list[SubmodelFit]:
    return [SubmodelFit.read(result) for result in runner.run(function, tasks)]
