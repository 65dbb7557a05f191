"""The plan of a search: all of its fits as tasks, in the order in which they depend on each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpsift._utils.parallel import Runner, Task, fingerprint
from gpsift.gp import GP
from gpsift.relevance.rank import versions
from gpsift.selection.cross_validation import CVScheme, Fold, prediction_metrics
from gpsift.selection.data import Data, Units
from gpsift.selection.orders import FeatureOrder, Order
from gpsift.selection.path import Path
from gpsift.selection.submodels import Fitted, SubmodelFit, backward_step, choices, fit_and_score, fit_full
from gpsift.version import __version__


@dataclass(frozen=True, eq=False)
class FoldResult:
    """The results of a fold: the order, the fit of the full model, that of the reference, and submodels by size."""

    fold: Fold
    order: Sequence[int]
    full: SubmodelFit
    reference: SubmodelFit
    submodels: Mapping[int, SubmodelFit]

    def at(self, size: int) -> SubmodelFit:
        """The submodel of a size, which is the full model at full size."""
        return self.submodels.get(size, self.full)


@dataclass(frozen=True, eq=False)
class SearchPlan:
    """The choices of a search, and its fits as tasks.

    `reference` is the model that the full model is compared as, if it is not `model`. `fitted` is the full model of all
    rows, and `ordered` the order by it, where they are known already.
    """

    data: Data
    scheme: CVScheme
    model: GP
    reference: GP | None
    fitted: Fitted | None
    units: Units
    order: Order
    sizes: tuple[int, ...]
    ordered: FeatureOrder | None = None

    @property
    def scored(self) -> tuple[Fold, ...]:
        """The folds whose rows are scored."""
        return self.scheme.folds

    @cached_property
    def folds(self) -> tuple[Fold, ...]:
        """The scored folds, and at the end the fold of all rows, whose order is the answer."""
        folds = self.scored
        return folds if len(folds) == 1 and folds[0].name == "all" else (*folds, Fold.all_rows(self.data))

    @property
    def smaller_sizes(self) -> tuple[int, ...]:
        """Sizes below that of the full model."""
        return tuple(size for size in self.sizes if size < len(self.units))

    @property
    def has_inactive_units(self) -> bool:
        """Whether the full model leaves features inactive, and the sizes end before them."""
        return self.model.hyper.switches and max(self.sizes) < len(self.units)

    @property
    def first_backward_size(self) -> int:
        """The size from which backward elimination removes units one by one."""
        return max(self.sizes) if self.has_inactive_units else len(self.units)

    @property
    def n_tasks(self) -> int:
        """The number of fits, for the progress bar."""
        references = 0 if self.reference is None else len(self.scored)
        if self.order.eliminates:
            steps = self.first_backward_size - min(self.sizes) + 1
            return len(self.folds) * (steps + self.has_inactive_units) + references
        return len(self.folds) + references + len(self.scored) * len(self.smaller_sizes)

    @property
    def identity(self) -> Mapping[str, str]:
        """Everything that the results depend on, for a checkpoint."""
        splits = [part for fold in self.scored for part in (fold.rows, fold.train.X, fold.train.y, fold.y)]
        tests = [fold.test.X for fold in self.scored if fold.test is not None]
        return {
            "gpsift": __version__,
            "data": self.data.fingerprint,
            "splits": f"{self.scheme.label} {fingerprint(*splits, *tests)}",
            "model": choices(self.model),
            "reference": "the model" if self.reference is None else choices(self.reference),
            "measure": self.order.label,
            "units": self.units.identity,
            "sizes": str(self.sizes),
            "search": f"validate_search={self.scheme.validates_search}, starts={self.order.starts}",
        }

    def run(self, runner: Runner) -> list[FoldResult]:
        """Run all fits; returns the results of each fold, those of all rows last."""
        return self._run_backward(runner) if self.order.eliminates else self._run_forward(runner)

    def _run_forward(self, runner: Runner) -> list[FoldResult]:
        """Sort the units once by the full model, then fit submodels of growing size, as in the paper."""
        shared = None
        if not self.scheme.validates_search and len(self.folds) > 1:
            (first,) = _run(runner, fit_full, [self._full_task(self.folds[-1], self.ordered)])
            shared = FeatureOrder(_order_of(first))
        order_of = {fold.name: self.ordered if fold.name == "all" else shared for fold in self.folds}
        tasks = [self._full_task(fold, order_of[fold.name]) for fold in self.folds]
        full = dict(zip(self.folds, _run(runner, fit_full, tasks), strict=True))
        tasks = []
        for fold in self.scored:
            parent, order = full[fold].parent, _order_of(full[fold])
            for size in self.smaller_sizes:
                columns = self.units.columns_of(order[:size])
                arguments = (fold, self.model, columns, parent, self.order.starts)
                tasks.append(Task(f"{fold.name}/size {size}", arguments))
        results = iter(_run(runner, fit_and_score, tasks))
        submodels = {fold: {size: next(results) for size in self.smaller_sizes} for fold in self.scored}
        references = self._run_references(runner, full)
        return [
            FoldResult(fold, _order_of(full[fold]), full[fold], references[fold], submodels.get(fold, {}))
            for fold in self.folds
        ]

    def _run_backward(self, runner: Runner) -> list[FoldResult]:
        """Backward elimination: fit, remove the least relevant unit, and fit again, in all folds side by side.

        Units that are inactive in the full model, except those that came close, are removed first and at once.
        """
        smallest, largest = max(min(self.sizes), len(self.units.forced)), self.first_backward_size
        kept = {fold: list(range(len(self.units))) for fold in self.folds}
        removed: dict[Fold, list[int]] = {fold: [] for fold in self.folds}
        steps: dict[Fold, dict[int, SubmodelFit]] = {fold: {} for fold in self.folds}
        if self.has_inactive_units:
            tasks = [self._full_task(fold, None) for fold in self.folds]
            for fold, result in zip(self.folds, _run(runner, fit_full, tasks), strict=True):
                steps[fold][len(self.units)] = result
                kept[fold], inactive = _order_of(result)[:largest], _order_of(result)[largest:]
                removed[fold] = inactive[::-1]
        for size in range(largest, smallest - 1, -1):
            above = {fold: steps[fold].get(size + 1, steps[fold].get(len(self.units))) for fold in self.folds}
            tasks = [self._backward_task(fold, size, kept[fold], above[fold]) for fold in self.folds]
            for fold, result in zip(self.folds, _run(runner, backward_step, tasks), strict=True):
                steps[fold][size] = result
                if result.dropped is not None and size > smallest:
                    kept[fold] = [unit for unit in kept[fold] if unit != result.dropped]
                    removed[fold].append(result.dropped)
        full = {fold: steps[fold][len(self.units)] for fold in self.folds}
        references = self._run_references(runner, full)
        found = []
        for fold in self.folds:
            order = self.units.forced_first([*kept[fold], *reversed(removed[fold])])
            found.append(FoldResult(fold, order, full[fold], references[fold], steps[fold]))
        return found

    def _run_references(self, runner: Runner, full: Mapping[Fold, SubmodelFit]) -> Mapping[Fold, SubmodelFit]:
        """The scores of the reference: those of the full model, unless it is another model."""
        if self.reference is None:
            return full
        columns = self.units.all_columns
        tasks = [Task(f"{fold.name}/reference", (fold, self.reference, columns, None, None)) for fold in self.scored]
        return {**full, **dict(zip(self.scored, _run(runner, fit_and_score, tasks), strict=True))}

    def _full_task(self, fold: Fold, given: FeatureOrder | None) -> Task:
        arguments = (fold, self.model, self.units, self.order, given, max(self.sizes), self._fitted_to(fold))
        return Task(f"{fold.name}/full", arguments)

    def _backward_task(self, fold: Fold, size: int, kept: Sequence[int], above: SubmodelFit | None) -> Task:
        parent, fitted = (None, self._fitted_to(fold)) if above is None else (above.parent, None)
        return Task(f"{fold.name}/size {size}", (fold, self.model, self.units, kept, self.order, parent, fitted))

    def _fitted_to(self, fold: Fold) -> Fitted | None:
        """The full model of a fold, where it was fitted before the search."""
        return self.fitted if fold.name == "all" else None

    def path(self, found: Sequence[FoldResult], *, classes: bool) -> Path:
        """Make the record of all results."""
        scored = [each for each in found if each.fold in self.scored]
        y = np.concatenate([each.fold.y for each in scored])
        mean = np.array([np.concatenate([each.at(size).mean for each in scored]) for size in self.sizes])
        reference_mean = np.concatenate([each.reference.mean for each in scored])
        metrics = self._metrics(y, mean, classes=classes)
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
            lpd=np.array([np.concatenate([each.at(size).lpd for each in scored]) for size in self.sizes]),
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

    def _metrics(self, y: np.ndarray, mean: np.ndarray, *, classes: bool) -> list[dict[str, float]]:
        """Metrics of each size; without inputs, classes are predicted by their shares."""
        metrics = [dict(prediction_metrics(y, each, classes=classes)) for each in mean]
        if classes and self.sizes[0] == 0:
            if self.scored[0].test is None:
                # Without inputs a row that is left out makes its own class a little rarer: a perfect wrong guess.
                metrics[0] = dict(prediction_metrics(y, _class_shares(y, mean[0]), classes=classes))
            metrics[0]["auc"] = 0.5  # no inputs, no order of the rows
        return metrics


def _run(runner: Runner, function: Callable[..., SubmodelFit], tasks: Sequence[Task]) -> list[SubmodelFit]:
    return [SubmodelFit.read(result) for result in runner.run(function, tasks)]


def _order_of(full: SubmodelFit) -> list[int]:
    assert full.order is not None  # the full model has one
    return full.order


def _class_shares(y: np.ndarray, like: np.ndarray) -> np.ndarray:
    """The share of class 1, or of every class, as the prediction of all rows."""
    if like.ndim == 1:
        return np.full(like.shape, y.mean())
    return np.broadcast_to(np.bincount(y.astype(int), minlength=like.shape[1]) / y.size, like.shape)
