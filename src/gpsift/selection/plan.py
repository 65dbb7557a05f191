"""All fits of a search: how its choices become tasks, and their results a record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpsift._utils.parallel import Runner, Task, fingerprint
from gpsift.gp import GP, DrawnGP, FittedGP
from gpsift.relevance.rank import versions
from gpsift.selection.cross_validation import Fold, Scheme, prediction_metrics
from gpsift.selection.data import Data, Units
from gpsift.selection.orders import Order, Ordered
from gpsift.selection.path import Path
from gpsift.selection.submodels import SubmodelFit, choices, eliminate, follow, lead
from gpsift.version import __version__


@dataclass(frozen=True, eq=False)
class Found:
    """What a fold gave: the order, the fit of the full model, that of the reference and those of submodels by size."""

    fold: Fold
    order: Sequence[int]
    full: SubmodelFit
    reference: SubmodelFit
    submodels: Mapping[int, SubmodelFit]

    def at(self, size: int) -> SubmodelFit:
        """The submodel of a size; at full size, the full model."""
        return self.submodels.get(size, self.full)


@dataclass(frozen=True, eq=False)
class Plan:
    """All choices of a search, and how they become tasks.

    `reference` is what the full model is compared as, if it is not `model`; `fitted` is the full model of all rows and
    `ordered` the order by it, where they are there already.
    """

    data: Data
    scheme: Scheme
    model: GP
    reference: GP | None
    fitted: FittedGP | DrawnGP | None
    units: Units
    order: Order
    sizes: tuple[int, ...]
    ordered: Ordered | None = None

    @cached_property
    def folds(self) -> tuple[Fold, ...]:
        """Those that are scored, then all rows, whose order is the answer."""
        folds = self.scored
        return folds if len(folds) == 1 and folds[0].name == "all" else (*folds, Fold.all_rows(self.data))

    @property
    def scored(self) -> tuple[Fold, ...]:
        """The folds whose predictions count."""
        return self.scheme.folds

    @property
    def smaller(self) -> tuple[int, ...]:
        """Sizes below that of the full model."""
        return tuple(size for size in self.sizes if size < len(self.units))

    @property
    def is_switched(self) -> bool:
        """Whether the full model leaves features switched off, and the sizes end before them."""
        return self.model.hyper.switches and max(self.sizes) < len(self.units)

    @property
    def first_elimination(self) -> int:
        """The size from which units are removed one by one."""
        return max(self.sizes) if self.is_switched else len(self.units)

    @property
    def n_tasks(self) -> int:
        """How many fits there are, for the progress bar."""
        references = 0 if self.reference is None else len(self.scored)
        if self.order.eliminates:
            return len(self.folds) * (self.first_elimination - min(self.sizes) + 1 + self.is_switched) + references
        return len(self.folds) + references + len(self.scored) * len(self.smaller)

    @property
    def identity(self) -> Mapping[str, str]:
        """What the results depend on, for a checkpoint."""
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

    def run(self, runner: Runner) -> list[Found]:
        """What each fold gives, all rows last."""
        return self._backward(runner) if self.order.eliminates else self._forward(runner)

    def _forward(self, runner: Runner) -> list[Found]:
        """The paper's search: order the units once on the full model, then fit submodels of growing size."""
        shared = None
        if not self.scheme.validates_search and len(self.folds) > 1:
            (first,) = _run(runner, lead, [self._lead_task(self.folds[-1], self.ordered)])
            shared = Ordered(_order_of(first))
        order_of = {fold.name: self.ordered if fold.name == "all" else shared for fold in self.folds}
        tasks = [self._lead_task(fold, order_of[fold.name]) for fold in self.folds]
        full = dict(zip(self.folds, _run(runner, lead, tasks), strict=True))
        tasks = [self._follow_task(fold, size, full[fold]) for fold in self.scored for size in self.smaller]
        results = iter(_run(runner, follow, tasks))
        submodels = {fold: {size: next(results) for size in self.smaller} for fold in self.scored}
        references = self._references(runner, full)
        return [
            Found(fold, _order_of(full[fold]), full[fold], references[fold], submodels.get(fold, {}))
            for fold in self.folds
        ]

    def _backward(self, runner: Runner) -> list[Found]:
        """Backward elimination: fit, drop the least relevant unit, fit again; all folds side by side.

        Units that the full model leaves switched off, but for those that came close, go first and all at once.
        """
        smallest, largest = max(min(self.sizes), len(self.units.forced)), self.first_elimination
        kept = {fold: list(range(len(self.units))) for fold in self.folds}
        gone: dict[Fold, list[int]] = {fold: [] for fold in self.folds}
        steps: dict[Fold, dict[int, SubmodelFit]] = {fold: {} for fold in self.folds}
        if self.is_switched:
            tasks = [self._lead_task(fold, None) for fold in self.folds]
            for fold, result in zip(self.folds, _run(runner, lead, tasks), strict=True):
                steps[fold][len(self.units)] = result
                kept[fold], off = _order_of(result)[:largest], _order_of(result)[largest:]
                gone[fold] = off[::-1]
        for size in range(largest, smallest - 1, -1):
            above = {fold: steps[fold].get(size + 1, steps[fold].get(len(self.units))) for fold in self.folds}
            tasks = [self._eliminate_task(fold, size, kept[fold], above[fold]) for fold in self.folds]
            for fold, result in zip(self.folds, _run(runner, eliminate, tasks), strict=True):
                steps[fold][size] = result
                if result.dropped is not None and size > smallest:
                    kept[fold] = [unit for unit in kept[fold] if unit != result.dropped]
                    gone[fold].append(result.dropped)
        full = {fold: steps[fold][len(self.units)] for fold in self.folds}
        references = self._references(runner, full)
        found = []
        for fold in self.folds:
            free = [unit for unit in kept[fold] if unit not in self.units.forced]
            order = [*self.units.forced, *free, *reversed(gone[fold])]
            found.append(Found(fold, order, full[fold], references[fold], steps[fold]))
        return found

    def _lead_task(self, fold: Fold, given: Ordered | None) -> Task:
        arguments = (fold, self.model, self.units, self.order, given, max(self.sizes), self._fitted_to(fold))
        return Task(f"{fold.name}/full", arguments)

    def _follow_task(self, fold: Fold, size: int, full: SubmodelFit) -> Task:
        columns = self.units.columns_of(_order_of(full)[:size])
        return Task(f"{fold.name}/size {size}", (fold, self.model, columns, full.parent, self.order.starts))

    def _eliminate_task(self, fold: Fold, size: int, kept: Sequence[int], above: SubmodelFit | None) -> Task:
        parent, fitted = (None, self._fitted_to(fold)) if above is None else (above.parent, None)
        return Task(f"{fold.name}/size {size}", (fold, self.model, self.units, kept, self.order, parent, fitted))

    def _fitted_to(self, fold: Fold) -> FittedGP | DrawnGP | None:
        """The full model of a fold, where it came with the question."""
        return self.fitted if fold.name == "all" else None

    def _references(self, runner: Runner, full: Mapping[Fold, SubmodelFit]) -> Mapping[Fold, SubmodelFit]:
        """The scores of the reference: the full model's own, unless another was asked for."""
        if self.reference is None:
            return full
        columns = self.units.all_columns
        tasks = [Task(f"{fold.name}/reference", (fold, self.reference, columns, None, None)) for fold in self.scored]
        return {**full, **dict(zip(self.scored, _run(runner, follow, tasks), strict=True))}

    def path(self, found: Sequence[Found], *, classes: bool) -> Path:
        """The record of all that was found."""
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
        """Of each size; classes without inputs are predicted by their shares."""
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
