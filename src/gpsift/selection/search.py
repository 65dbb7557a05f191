"""The verb: fit submodels of growing size and see how well each predicts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from gpsift.gp import GP, DrawnGP, FittedGP
from gpsift.gp.model import LIKELIHOODS
from gpsift.notices import notice
from gpsift.relevance import Measure
from gpsift.relevance.rank import versions
from gpsift.results.path import Path
from gpsift.selection.data import Data
from gpsift.selection.folds import Fold, Scheme, read_cv
from gpsift.selection.metrics import prediction_metrics
from gpsift.selection.orders import PROJECTION, descend, follow, label_of, lead, read_order
from gpsift.selection.sizes import suggest_size
from gpsift.selection.submodels import Result, choices
from gpsift.selection.units import Units
from gpsift.version import __version__
from gpsift.work import Bench, Checkpoint, Task, fingerprint

# Submodels start from the full model's hyperparameters and from short length-scales. On four data sets, maximum
# likelihood and MAP, these two fall short of the best of eight starts as seldom as three starts without the full model.
SUBMODEL_STARTS = 2


def search(
    X: Any,
    y: Any,
    measure: Measure | str | None = None,
    *,
    sizes: int | Iterable[int] | None = None,
    cv: Any = None,
    model: GP | None = None,
    reference: GP | None = None,
    fitted: FittedGP | DrawnGP | None = None,
    refit: bool = False,
    validate_search: bool = True,
    force: Iterable[str | int] | str = (),
    groups: Mapping[str, Sequence[str | int]] | None = None,
    categorical: Iterable[str | int] | None = None,
    starts: int = SUBMODEL_STARTS,
    jobs: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    seed: int = 0,
    noise_var: Any = None,
    exposure: Any = None,
    trials: Any = None,
) -> Path:
    """Fit submodels of growing size and compare their predictions with those of the full model.

    Parameters
    ----------
    X, y : array or data frame (n, p), and array (n,)
        As in `GP.fit`.
    measure : Measure or {"kl", "var", "ard", "rate", "derivative", "projection"}, optional
        By what features are put in order; `KL()` by default. "projection" adds the feature whose projected submodel is
        nearest to the full model, step by step: slower, and better where features can stand in for one another.
    sizes : int or sequence of int, optional
        Sizes of the submodels; a number is the largest. By default all, from no feature to all of them.
    cv : None, int, splitter, splits or test set
        How predictions are judged. None is leave-one-out with hyperparameters, standardisation and order found on all
        rows: fast, and optimistic. A number of folds, a scikit-learn splitter or a sequence of (train, test) row
        numbers fits everything anew in each fold. ``(X_test, y_test)`` judges on other rows; a third entry may hold
        their exposure or trials.
    model : GP, optional
        What to fit; `GP()` by default.
    reference : GP, optional
        What the full model is, if it is not `model`: say ``GP(hyper=NUTS())``.
    fitted : FittedGP or DrawnGP, optional
        ``model.fit(X, y)``, if that has been done already, so that it is not done again.
    refit : bool
        Rank anew after every removal of the last feature (backward elimination) instead of once.
    validate_search : bool
        With folds: find the order of the features in each fold anew. False takes the order of all rows, which is faster
        and optimistic.
    force : names or indices
        Features, or groups, that are in every submodel.
    groups : mapping of str to names or indices, optional
        Features that come and go together.
    categorical : names or indices, optional
        Features whose values are levels, and groups of columns that code one category, as in `rank`.
    starts : int
        Starts of the search for each submodel's hyperparameters: from those of the full model, then as in `ML2`.
    jobs : int, optional
        Processes. None asks joblib, so that ``joblib.parallel_config`` can move the fits to a cluster.
    checkpoint : path, optional
        A file that keeps every finished fit. The same call after an interruption goes on from there.
    progress : bool, optional
        Show a bar with the time left; by default where standard error is a terminal.
    seed : int
        Of the folds.
    noise_var, exposure, trials
        As in `GP.fit`.

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
    extras = {"noise_var": noise_var, "exposure": exposure, "trials": trials}
    data = Data.read(X, y, extras)
    measure = read_order(measure)
    model = GP() if model is None else model
    if refit and measure == PROJECTION:
        raise ValueError('`refit=True` re-ranks by a measure; "projection" already fits anew at every step.')
    units = Units.read(data.names, groups, force, categorical)
    likelihood = LIKELIHOODS[model.likelihood] if isinstance(model.likelihood, str) else model.likelihood
    classes = likelihood.predicts_classes
    plan = Plan(
        data=data,
        scheme=read_cv(cv, data, tuple(data.extras), classes=classes, seed=seed),
        model=model,
        reference=reference,
        fitted=_read_fitted(fitted, data),
        units=units,
        measure=measure,
        sizes=_read_sizes(sizes, units),
        starts=starts,
        refit=refit,
        validate=validate_search,
    )
    if cv is not None and plan.scheme.leaves_rows_out and len(plan.scheme.folds) > 1 and not validate_search:
        notice(
            "The order of the features was found with all rows, those left out included: the curve is optimistic. "
            "`validate_search=True` finds it in each fold anew."
        )
    kept = None if checkpoint is None else Checkpoint(checkpoint, plan.identity)
    with Bench(jobs=jobs, checkpoint=kept, progress=progress, title="submodels", total=plan.n_tasks) as bench:
        found = plan.backward(bench) if refit else plan.forward(bench)
    for message in found[-1].lead["notices"]:
        notice(message)
    path = plan.path(found, classes=classes)
    return replace(path, suggestion=suggest_size(path))


@dataclass(frozen=True, eq=False)
class Found:
    """What a fold gave: the order, the reference's scores and those of each submodel."""

    fold: Fold
    order: Sequence[int]
    lead: Result
    reference: Result
    submodels: Mapping[int, Result]


@dataclass(frozen=True, eq=False)
class Plan:
    """All choices of a search, and how they become tasks."""

    data: Data
    scheme: Scheme
    model: GP
    reference: GP | None
    fitted: FittedGP | DrawnGP | None
    units: Units
    measure: Measure | str
    sizes: tuple[int, ...]
    starts: int
    refit: bool
    validate: bool

    @cached_property
    def folds(self) -> tuple[Fold, ...]:
        """Those that are scored, then all rows, whose order is the answer."""
        folds = self.scheme.folds
        return folds if len(folds) == 1 and folds[0].name == "all" else (*folds, self._all_rows)

    @cached_property
    def _all_rows(self) -> Fold:
        return Fold("all", self.data, None, np.arange(self.data.y.size))

    @property
    def scored(self) -> tuple[Fold, ...]:
        """The folds whose predictions count."""
        return self.scheme.folds

    @property
    def smaller(self) -> tuple[int, ...]:
        """Sizes below that of the full model."""
        return tuple(size for size in self.sizes if size < len(self.units))

    @property
    def n_tasks(self) -> int:
        """How many fits there are, for the progress bar."""
        references = 0 if self.reference is None else len(self.scored)
        if self.refit:
            return len(self.folds) * (len(self.units) - min(self.sizes) + 1) + references
        return len(self.folds) + references + len(self.scored) * len(self.smaller)

    @property
    def identity(self) -> Mapping[str, str]:
        """What the results depend on, for a checkpoint."""
        splits = [part for fold in self.scored for part in (fold.rows, fold.train.X, fold.train.y, fold.y)]
        tests = [fold.test.X for fold in self.scored if fold.test is not None]
        return {
            "gpsift": __version__,
            "data": fingerprint(
                self.data.X, self.data.y, self.data.names, *sorted(self.data.extras), *self.data.extras.values()
            ),
            "splits": f"{self.scheme.label} {fingerprint(*splits, *tests)}",
            "model": choices(self.model),
            "reference": "the model" if self.reference is None else choices(self.reference),
            "measure": label_of(self.measure),
            "units": f"{self.units.columns}, forced {self.units.forced}, categories {self.units.categorical}",
            "sizes": str(self.sizes),
            "search": f"refit={self.refit}, validate_search={self.validate}, starts={self.starts}",
        }

    def forward(self, bench: Bench) -> list[Found]:
        """The paper's search: order the units once on the full model, then fit submodels of growing size."""
        shared = None
        if not self.validate and len(self.folds) > 1:
            (first,) = bench.run(lead, [self._lead_task(self._all_rows, None)])
            shared = first["order"]
        order_of = {fold.name: None if fold.name == "all" else shared for fold in self.folds}
        leads = bench.run(lead, [self._lead_task(fold, order_of[fold.name]) for fold in self.folds])
        by_fold = dict(zip(self.folds, leads, strict=True))
        tasks = [
            Task(
                f"{fold.name}/size {size}",
                (
                    fold.train,
                    fold.test,
                    self.model,
                    self.units.columns_of(by_fold[fold]["order"][:size]),
                    by_fold[fold]["parent"],
                    self.starts,
                ),
            )
            for fold in self.scored
            for size in self.smaller
        ]
        results = iter(bench.run(follow, tasks))
        submodels = {
            fold: {size: next(results) for size in self.smaller} if fold in self.scored else {} for fold in self.folds
        }
        references = self._references(bench, by_fold)
        return [
            Found(fold, by_fold[fold]["order"], by_fold[fold], references[fold], submodels[fold]) for fold in self.folds
        ]

    def backward(self, bench: Bench) -> list[Found]:
        """Backward elimination: fit, drop the least relevant unit, fit again; all folds side by side."""
        assert isinstance(self.measure, Measure)
        smallest = max(min(self.sizes), len(self.units.forced))
        kept = {fold: list(range(len(self.units))) for fold in self.folds}
        gone: dict[Fold, list[int]] = {fold: [] for fold in self.folds}
        steps: dict[Fold, dict[int, Result]] = {fold: {} for fold in self.folds}
        for size in range(len(self.units), smallest - 1, -1):
            tasks = []
            for fold in self.folds:
                above = steps[fold].get(size + 1)
                parent, starts = (None, None) if above is None else (above["parent"], self.starts)
                fitted = self._fitted_to(fold) if above is None else None
                arguments = (
                    fold.train, fold.test, self.model, self.units, kept[fold], self.measure, parent, starts, fitted
                )  # fmt: skip
                tasks.append(Task(f"{fold.name}/size {size}", arguments))
            for fold, result in zip(self.folds, bench.run(descend, tasks), strict=True):
                steps[fold][size] = result
                if "drop" in result and size > smallest:
                    kept[fold] = [unit for unit in kept[fold] if unit != result["drop"]]
                    gone[fold].append(result["drop"])
        full = {fold: steps[fold][len(self.units)] for fold in self.folds}
        references = self._references(bench, full)
        found = []
        for fold in self.folds:
            free = [unit for unit in kept[fold] if unit not in self.units.forced]
            order = [*self.units.forced, *free, *reversed(gone[fold])]
            found.append(Found(fold, order, full[fold], references[fold], steps[fold]))
        return found

    def _lead_task(self, fold: Fold, order: Sequence[int] | None) -> Task:
        arguments = (
            fold.train, fold.test, self.model, self.units, self.measure, order, max(self.sizes), self._fitted_to(fold)
        )  # fmt: skip
        return Task(f"{fold.name}/full", arguments)

    def _fitted_to(self, fold: Fold) -> FittedGP | DrawnGP | None:
        """The full model of a fold, where it came with the question."""
        return self.fitted if fold.name == "all" else None

    def _references(self, bench: Bench, full: Mapping[Fold, Result]) -> Mapping[Fold, Result]:
        """The scores of the reference: the full model's own, unless another was asked for."""
        if self.reference is None:
            return full
        columns = self.units.columns_of(range(len(self.units)))
        tasks = [
            Task(f"{fold.name}/reference", (fold.train, fold.test, self.reference, columns, None, None))
            for fold in self.scored
        ]
        return {**full, **dict(zip(self.scored, bench.run(follow, tasks), strict=True))}

    def path(self, found: Sequence[Found], *, classes: bool) -> Path:
        """The record of all that was found."""
        scored = [each for each in found if each.fold in self.scored]
        everything = found[-1]
        y = np.concatenate([each.fold.y for each in scored])
        mean = np.array([_joined(scored, size, "mean") for size in self.sizes])
        reference_mean = np.concatenate([np.asarray(each.reference["mean"]) for each in scored])
        metrics = [dict(prediction_metrics(y, each, classes=classes)) for each in mean]
        if classes and self.sizes[0] == 0:
            if self.scheme.folds[0].test is None:
                # Without inputs a row that is left out makes its own class a little rarer: a perfect wrong guess.
                metrics[0] = dict(prediction_metrics(y, _class_shares(y, mean[0]), classes=classes))
            metrics[0]["auc"] = 0.5  # no inputs, no order of the rows
        several = len(scored) > 1
        return Path(
            measure=label_of(self.measure) + (", re-ranked after every removal" if self.refit else ""),
            names=self.units.names,
            members=tuple(tuple(self.data.names[column] for column in columns) for columns in self.units.columns),
            order=np.array(everything.order),
            sizes=np.array(self.sizes),
            scheme=self.scheme.label,
            validated=self.scheme.leaves_rows_out and (not several or self.validate),
            rows=np.concatenate([each.fold.rows for each in scored]),
            y=y,
            lpd=np.array([_joined(scored, size, "lpd") for size in self.sizes]),
            reference_lpd=np.concatenate([np.asarray(each.reference["lpd"]) for each in scored]),
            mean=mean,
            reference_mean=reference_mean,
            metrics={name: np.array([each[name] for each in metrics]) for name in metrics[0]},
            reference_metrics=prediction_metrics(y, reference_mean, classes=classes),
            kl=np.asarray(everything.lead["kl"]) if "kl" in everything.lead else None,
            fold_orders=tuple(np.array(each.order) for each in scored) if several else (),
            notes=self._notes(found),
            details={
                "starts": self.starts,
                "forced": [self.units.names[unit] for unit in self.units.forced],
                "scores": everything.lead.get("scores"),
                "versions": versions(),
            },
        )

    def _notes(self, found: Sequence[Found]) -> tuple[str, ...]:
        notes = list(found[-1].lead["notices"])
        failed = sum(
            "did not converge" in " ".join(each["notices"]) for one in found for each in one.submodels.values()
        )
        if failed:
            notes.append(f"the search for hyperparameters did not converge in {failed} submodel(s)")
        return tuple(notes)


def _joined(found: Sequence[Found], size: int, what: str) -> np.ndarray:
    """What the submodels of one size gave in all folds; at full size, what the full model gave."""
    return np.concatenate([np.asarray(each.submodels.get(size, each.lead)[what], dtype=float) for each in found])


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


def _read_fitted(fitted: FittedGP | DrawnGP | None, data: Data) -> FittedGP | DrawnGP | None:
    if fitted is None:
        return None
    one = fitted.members[0] if isinstance(fitted, DrawnGP) else fitted
    same_rows = np.array_equal(one.X_train, data.X) and np.array_equal(one.y_train, data.y)
    if fitted.feature_names != data.names or not same_rows:
        raise ValueError(
            "`fitted` was fitted to other rows or columns than `X` and `y`. Leave it out, or fit it to them."
        )
    return fitted


def _class_shares(y: np.ndarray, like: np.ndarray) -> np.ndarray:
    """The share of class 1, or of every class, as the prediction of all rows."""
    if like.ndim == 1:
        return np.full(like.shape, y.mean())
    return np.broadcast_to(np.bincount(y.astype(int), minlength=like.shape[1]) / y.size, like.shape)
