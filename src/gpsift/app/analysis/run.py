"""The whole way from a table to an answer: prepare, fit, rank, search, sample."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace
from inspect import signature
from numbers import Integral
from pathlib import Path as FilePath
from typing import Any, Self

from gpsift._utils.notices import Notices, messages, notice
from gpsift._utils.parallel import Work, fit_bar, share_bar, waiting_bar
from gpsift._utils.progress import counted
from gpsift.app.analysis.called import call_code
from gpsift.app.analysis.cautions import cautions_of
from gpsift.app.analysis.choices import Reading, Selection
from gpsift.app.analysis.record import Analysis
from gpsift.app.findings import Finding, FindingKind
from gpsift.app.tables.tabular import Prepared
from gpsift.gp import GP, DrawnGP, FittedGP
from gpsift.gp.choose_inference import LARGEST_QUICK
from gpsift.gp.hyperparameters import Hyper, Sift
from gpsift.gp.sparse import Sparse
from gpsift.reference.base import MissingCapability
from gpsift.relevance import ARD, KL, VAR, Measure
from gpsift.relevance.ranking import Ranking
from gpsift.selection.data import Data
from gpsift.selection.held_out import Folds
from gpsift.selection.orders import Order, Ordered, Ranked, read_order, unit_ranking
from gpsift.selection.record_path import Path
from gpsift.selection.record_stability import Stability
from gpsift.selection.units import Features

# A search takes as many fits as sizes.
MOST_ROWS_OF_A_SEARCH = 1000
# Where inference iterates, each fit takes ten times as long: 840 rows of two classes took more than three minutes.
MOST_ROWS_OF_AN_ITERATED_SEARCH = 500
# Sparse inference takes about a minute on this many.
MOST_ROWS_OF_A_SPARSE_RANKING = 20_000
LARGEST_PATH = 30
# All length-scales at once are too many to be searched for, and orders that try every column take too many fits. A
# model whose columns are switched on one by one has no such limit.
MANY_COLUMNS = 300
# VAR conditions every column that is used on the others that are: a third power of their number, half a minute at 5000.
MOST_COLUMNS_OF_VAR = 2000
LIKELIHOOD_OF_TASK = {"regression": "gaussian", "counts": "poisson"}


def analyse(
    data: Any,
    target: str | int | None = None,
    *,
    measure: Measure | Order | str | None = None,
    select: bool | Selection = True,
    samples: int = 0,
    likelihood: str | None = None,
    hyper: Hyper | None = None,
    reading: Reading = Reading(),
    seed: int = 0,
    work: Work = Work(),
) -> Analysis:
    """Which columns of a table matter for one of them, how many are enough, and how sure that is.

    Parameters
    ----------
    data : data frame, path or Prepared
        The table, or a file of it in any of the usual forms, or what `prepare` made of one. What a careful analyst
        would do with it before a first fit is done, and told among the cautions; ``Reading(strict=True)`` refuses.
    target : str or int, optional
        The column to explain; a `Prepared` table has it.
    measure : Measure, Order or str, optional
        What decides the order, as in `search`; `KL()` by default. VAR and ARD are shown beside it.
    select : bool or Selection
        Search submodels of growing size, too; a `Selection` says how they are judged.
    samples : int
        On how many random samples of the rows to rank again, for the stability of the order.
    likelihood : str, optional
        As in `GP`; by default what goes with the task.
    hyper : Hyper, optional
        `Sift()` by default: columns are switched on one by one, as far as they pay for themselves. With `MAP()` and
        `ML2()` all are used, with `NUTS()` scores have intervals.
    reading : Reading
        How the table is read: columns to leave out, categories, missing values, how many rows.
    seed : int
        Of everything random.
    work : Work
        Processes, checkpoint and progress. The checkpoint is a folder that keeps the finished fits of search and
        samples.

    Returns
    -------
    Analysis

    Examples
    --------
    >>> import gpsift as gs
    >>> from sklearn.datasets import load_diabetes
    >>> frame = load_diabetes(as_frame=True, scaled=False).frame[:150]
    >>> answer = gs.analyse(frame[["bmi", "bp", "age", "target"]], "target")
    >>> answer.leading.names[answer.leading.order[0]]
    'bmi'
    """
    began = time.perf_counter()
    asked = _not_by_default(
        measure=measure,
        select=select,
        samples=samples,
        likelihood=likelihood,
        hyper=hyper,
        reading=reading,
        seed=seed,
    )
    with waiting_bar("reading", work.progress):
        table = reading.read(data, target)
    notes = list(table.notes)
    selection = (Selection() if select else None) if isinstance(select, bool) else select
    hyper = (hyper or Sift(seed=seed)).with_groups(table.groups)
    model = GP(likelihood=likelihood or likelihood_for(table), hyper=hyper)
    ranks_only = not (selection or samples)
    table, model = within_reach(table, model, reading, seed=seed, ranks_only=ranks_only, notes=notes)
    fits = _Fits.of(table, model, read_order(measure), seed, work)
    if fits.inference_is_sparse:
        notes.append(fits.inference_is_sparse)
    if fits.many_at_once:
        notes.insert(0, fits.many_at_once)
    with share_bar("ranking", work.progress):
        rankings, known = fits.rankings(notes)
    path, unsearched = fits.path(selection, known, notes) if selection else (None, None)
    steady = fits.stability(samples) if samples else None
    return Analysis(
        source=source_of(data),
        target=table.target,
        task=table.task,
        rows=table.rows,
        X=table.X,
        y=table.y,
        classes=table.classes,
        groups=table.groups,
        dates=table.dates,
        recipe=table.recipe,
        model=fits.fitted,
        rankings=rankings,
        path=path,
        unsearched=unsearched,
        stability=steady,
        cautions=cautions_of(fits.fitted, table, notes),
        command=call_code(data, target, asked),
        seed=seed,
        seconds=time.perf_counter() - began,
    )


def _not_by_default(**asked: Any) -> dict[str, Any]:
    """The arguments of `analyse` that are not what they are by default."""
    default_of = {name: each.default for name, each in signature(analyse).parameters.items()}
    return {name: each for name, each in asked.items() if each != default_of[name]}


def source_of(data: Any) -> str:
    """Where a table came from, in words."""
    if not isinstance(data, str | FilePath):
        return "a data frame"
    return "standard input" if str(data) == "-" else str(data)


def likelihood_for(table: Prepared) -> str:
    """What goes with the task of a table."""
    if table.task == "classification":
        return "bernoulli" if len(table.classes) == 2 else "softmax"
    return LIKELIHOOD_OF_TASK[table.task]


def within_reach(
    table: Prepared, model: GP, reading: Reading, *, seed: int, ranks_only: bool, notes: list[Finding]
) -> tuple[Prepared, GP]:
    """Rows few enough, and an inference, that the work ends while one waits; that rows were drawn is noted."""
    is_gaussian = model.likelihood == "gaussian"
    may_be_sparse = ranks_only and is_gaussian and not model.hyper.samples
    if not ranks_only:
        limit = MOST_ROWS_OF_A_SEARCH if is_gaussian else MOST_ROWS_OF_AN_ITERATED_SEARCH
    else:
        limit = MOST_ROWS_OF_A_SPARSE_RANKING if may_be_sparse else LARGEST_QUICK
    table = reading.limited(table, limit, seed, notes)
    if may_be_sparse and len(table.y) > LARGEST_QUICK:
        model = replace(model, inference=Sparse())
    return table, model


@dataclass(frozen=True, eq=False)
class _Fits:
    """One model of one table, and what is done with it: rankings, submodels, samples of the rows."""

    table: Prepared
    model: GP
    fitted: FittedGP | DrawnGP
    order: Order
    seed: int
    work: Work
    folder: FilePath | None

    @classmethod
    def of(cls, table: Prepared, model: GP, order: Order, seed: int, work: Work) -> Self:
        """After the fit to the whole table."""
        has_own_bar = model.hyper.samples
        with fit_bar(False if has_own_bar else work.progress):
            fitted = model.fit(table.X, table.y)
        return cls(table, model, fitted, order, seed, work, work.folder())

    @property
    def features(self) -> Features:
        """The user's columns; categories are coded by several."""
        return Features(self.table.groups, self.table.categories)

    @property
    def many_at_once(self) -> Finding | None:
        """That many columns were not switched on one by one, where they were not."""
        n_columns = len(self.table.columns)
        if n_columns <= MANY_COLUMNS or self.model.hyper.switches:
            return None
        return Finding(FindingKind.MANY_COLUMNS, {"n_columns": n_columns})

    @property
    def inference_is_sparse(self) -> Finding | None:
        """That it is, where it is, and what stands for the rows, as the fit has decided it."""
        if isinstance(self.fitted, DrawnGP) or self.fitted.inference != "sparse":
            return None
        report = self.fitted.report
        sizes = {"n_rows": len(self.table.y), "n_inducing": report.n_inducing, "n_blocks": report.n_blocks}
        return Finding(FindingKind.INFERENCE_SPARSE, sizes)

    @property
    def too_many_columns(self) -> Finding | None:
        """Why no submodels are searched, where they are not."""
        if self.many_at_once is None or type(self.order) is Ranked:
            return None
        return Finding(FindingKind.NOT_SEARCHED, {"n_columns": len(self.table.columns), "most": MANY_COLUMNS})

    def rankings(self, notes: list[Finding]) -> tuple[dict[str, Ranking], Ordered | None]:
        """The leading measure and the others beside it, as far as the model has them; the order, where it is known."""
        first = self.order.scoring or KL()
        beside: list[Measure] = [ARD()]
        if len(self.fitted.used) <= MOST_COLUMNS_OF_VAR:
            beside.insert(0, VAR())
        elif not isinstance(first, VAR):
            notes.append(Finding(FindingKind.VAR_LEFT_OUT, {"most": MOST_COLUMNS_OF_VAR}))
        units = self.features.units(self.fitted.inputs.names)
        others = [each for each in beside if type(each) is not type(first)]
        turns = counted([first, *others], 1 + len(others))
        with Notices() as caught:
            leading = unit_ranking(self.fitted, units, next(turns), seed=self.seed)
        for message in messages(caught):
            notice(message)
        found = {type(first).__name__: leading}
        for each in turns:
            with suppress(MissingCapability):
                found[type(each).__name__] = unit_ranking(self.fitted, units, each)
        if type(self.order) is not Ranked:
            return found, None
        return found, Ordered.by(leading, units, messages(caught))

    def path(
        self, selection: Selection, known: Ordered | None, notes: list[Finding]
    ) -> tuple[Path | None, Finding | None]:
        """Submodels of growing size, as far as that is feasible, or why there are none; where it ends is noted."""
        from gpsift.selection.search import planned, searched, told_units  # a ranking does without

        if self.too_many_columns:
            notes.append(self.too_many_columns)
            return None, self.too_many_columns
        n_columns, units = len(self.table.columns), self.features.units(self.fitted.inputs.names)
        largest = min(LARGEST_PATH, told_units(self.fitted, units))
        if largest < n_columns:
            notes.append(Finding(FindingKind.PATH_SHORTENED, {"largest": largest, "n_columns": n_columns}))
        data = Data.read(self.table.X, self.table.y, {})
        cv = Folds(selection.cv, seed=self.seed) if isinstance(selection.cv, Integral) else selection.cv
        plan = planned(
            data,
            self.order,
            sizes=largest,
            cv=cv,
            model=self.model,
            reference=self.fitted,
            units=units,
        )
        return searched(replace(plan, ordered=known), self._work("submodels"), selection.rule), None

    def stability(self, samples: int) -> Stability:
        """The order on random samples of the rows; a projection has no scores, so KL stands in for it."""
        from gpsift.selection.stability import stability  # a ranking does without

        return stability(
            self.table.X,
            self.table.y,
            self.order.scoring,
            n_splits=samples,
            model=self.model,
            features=self.features,
            seed=self.seed,
            work=self._work("samples"),
        )

    def _work(self, what: str) -> Work:
        return self.work if self.folder is None else replace(self.work, checkpoint=self.folder / f"{what}.sqlite")
