"""Analyse a table: read and clean it, fit a model, rank, search submodels, rank samples of the rows.

`analyse` does all of this, `plan_analysis` only what comes before the first fit, and `discover_columns` tests every
column instead.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace
from inspect import signature
from numbers import Integral
from pathlib import Path as FilePath
from typing import Any

from gpsift._utils.parallel import Work
from gpsift._utils.progress import fit_progress, progress_bar, spinner, track
from gpsift._utils.warnings import collect_warnings, messages, warn
from gpsift.app.analysis.analysis import Analysis
from gpsift.app.analysis.cautions import find_cautions
from gpsift.app.analysis.costs import (
    LARGEST_PATH,
    MANY_COLUMNS,
    MOST_COLUMNS_OF_VAR,
    MOST_ROWS_OF_A_SEARCH,
    MOST_ROWS_OF_A_SPARSE_RANKING,
    MOST_ROWS_OF_AN_ITERATED_SEARCH,
)
from gpsift.app.analysis.options import Reading, Selection, reproduce_code
from gpsift.app.findings import Finding, FindingKind
from gpsift.app.tables.encode import ModelTable
from gpsift.gp import GP, DrawnGP, FittedGP
from gpsift.gp.choose_inference import LARGEST_QUICK
from gpsift.gp.hyperparameters import Hyper, Sift
from gpsift.gp.sparse import Sparse
from gpsift.reference.base import MissingCapability
from gpsift.relevance import ARD, KL, VAR, Measure
from gpsift.relevance.ranking import Ranking
from gpsift.selection.conditional_test.conditionals import quick_hyper
from gpsift.selection.conditional_test.discover import Discoveries, discover
from gpsift.selection.conditional_test.folds import InOrder
from gpsift.selection.cross_validation import Folds
from gpsift.selection.data import Data, Features
from gpsift.selection.orders import FeatureOrder, Order, Ranked, rank_units, read_order
from gpsift.selection.path import Path
from gpsift.selection.stability import Stability

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
    """Find which columns of a table matter for one of them, how many are enough, and how sure that is.

    Parameters
    ----------
    data : data frame, path or ModelTable
        The table, or a file of it in any usual format, or a table that is clean already. The table is cleaned as a
        careful analyst would do it, and the cautions list every step; ``Reading(strict=True)`` raises an error instead.
    target : str or int, optional
        The column to explain; a `ModelTable` has it.
    measure : Measure, Order or str, optional
        The measure or order that decides, as in `search`; `KL()` by default. VAR and ARD are shown beside it.
    select : bool or Selection
        Whether to search submodels of increasing size; a `Selection` says how they are judged.
    samples : int
        The number of random samples of the rows to rank, for the stability of the order.
    likelihood : str, optional
        The same as in `GP`; by default it depends on the task.
    hyper : Hyper, optional
        `Sift()` by default, which activates columns one by one while each raises the evidence by more than its
        penalty. With `MAP()` and `ML2()` all are used, with `NUTS()` scores have intervals.
    reading : Reading
        Options for reading the table: columns to leave out, categories, missing values, the number of rows.
    seed : int
        The random seed.
    work : Work
        Processes, checkpoint and progress. The checkpoint is a folder with the finished fits of search and samples.

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
    options = {
        "measure": measure,
        "select": select,
        "samples": samples,
        "likelihood": likelihood,
        "hyper": hyper,
        "reading": reading,
        "seed": seed,
    }
    defaults = signature(analyse).parameters
    changed = {name: given for name, given in options.items() if given != defaults[name].default}
    with spinner("reading", work.progress):
        table = reading.read(data, target)
    notes = list(table.notes)
    selection = (Selection() if select else None) if isinstance(select, bool) else select
    hyper = (hyper or Sift(seed=seed)).with_groups(table.groups)
    model = GP(likelihood=likelihood or default_likelihood(table), hyper=hyper)
    ranks_only = not (selection or samples)
    table, model = limit_cost(table, model, reading, seed=seed, ranks_only=ranks_only, notes=notes)
    work.folder()  # raises an error if the checkpoint is no folder
    has_own_bar = model.hyper.samples
    with fit_progress(False if has_own_bar else work.progress):
        fitted = model.fit(table.X, table.y)
    fits = _FittedTable(table, model, fitted, read_order(measure), seed, work)
    if isinstance(fitted, FittedGP) and fitted.inference == "sparse":
        sizes = {"n_inducing": fitted.report.n_inducing, "n_blocks": fitted.report.n_blocks}
        notes.append(Finding(FindingKind.INFERENCE_SPARSE, {"n_rows": len(table.y), **sizes}))
    if fits.has_many_at_once:
        notes.insert(0, Finding(FindingKind.MANY_COLUMNS, {"n_columns": len(table.columns)}))
    with progress_bar("ranking", work.progress):
        rankings, known = fits.rank(notes)
    path, unsearched = fits.search(selection, known, notes) if selection else (None, None)
    return Analysis(
        source=source_name(data),
        target=table.target,
        task=table.task,
        rows=table.rows,
        X=table.X,
        y=table.y,
        classes=table.classes,
        groups=table.groups,
        dates=table.dates,
        recipe=table.recipe,
        model=fitted,
        rankings=rankings,
        path=path,
        unsearched=unsearched,
        stability=fits.rank_samples(samples) if samples else None,
        cautions=find_cautions(fitted, table, notes),
        command=reproduce_code(data, target, changed),
        seed=seed,
        seconds=time.perf_counter() - began,
    )


def source_name(data: Any) -> str:
    """Return the source of a table in words."""
    if not isinstance(data, str | FilePath):
        return "a data frame"
    return "standard input" if str(data) == "-" else str(data)


def default_likelihood(table: ModelTable) -> str:
    """Return the likelihood for the task of a table."""
    if table.task == "classification":
        return "bernoulli" if len(table.classes) == 2 else "softmax"
    return LIKELIHOOD_OF_TASK[table.task]


def limit_cost(
    table: ModelTable, model: GP, reading: Reading, *, seed: int, ranks_only: bool, notes: list[Finding]
) -> tuple[ModelTable, GP]:
    """Draw rows if there are many, with a note, and choose sparse inference, so that the work takes minutes at most."""
    is_gaussian = model.likelihood == "gaussian"
    may_be_sparse = ranks_only and is_gaussian and not model.hyper.samples
    if not ranks_only:
        limit = MOST_ROWS_OF_A_SEARCH if is_gaussian else MOST_ROWS_OF_AN_ITERATED_SEARCH
    else:
        limit = MOST_ROWS_OF_A_SPARSE_RANKING if may_be_sparse else LARGEST_QUICK
    table = reading.limit_rows(table, limit, seed, notes)
    if may_be_sparse and len(table.y) > LARGEST_QUICK:
        model = replace(model, inference=Sparse())
    return table, model


@dataclass(frozen=True, eq=False)
class _FittedTable:
    """A model fitted to a table, which is ranked, searched for submodels, and fitted to samples of the rows."""

    table: ModelTable
    model: GP
    fitted: FittedGP | DrawnGP
    order: Order
    seed: int
    work: Work

    @property
    def features(self) -> Features:
        """The user's columns as units of features: a category has several."""
        return Features(self.table.groups, self.table.categories)

    @property
    def has_many_at_once(self) -> bool:
        """True if many columns were fitted at once instead of stepwise."""
        return len(self.table.columns) > MANY_COLUMNS and not self.model.hyper.switches

    def rank(self, notes: list[Finding]) -> tuple[dict[str, Ranking], FeatureOrder | None]:
        """Rank by the leading measure, and by the others as far as the model has them.

        Also return the order of the search, if it is that of the leading ranking; otherwise None.
        """
        first = self.order.scoring or KL()
        others: list[Measure] = [ARD()]
        if len(self.fitted.used) <= MOST_COLUMNS_OF_VAR:
            others.insert(0, VAR())
        elif not isinstance(first, VAR):
            notes.append(Finding(FindingKind.VAR_LEFT_OUT, {"most": MOST_COLUMNS_OF_VAR}))
        units = self.features.units(self.fitted.inputs.names)
        others = [each for each in others if type(each) is not type(first)]
        measures = track([first, *others], 1 + len(others))
        with collect_warnings() as caught:
            leading = rank_units(self.fitted, units, next(measures), seed=self.seed)
        for message in messages(caught):
            warn(message)
        found = {type(first).__name__: leading}
        for each in measures:
            with suppress(MissingCapability):
                found[type(each).__name__] = rank_units(self.fitted, units, each)
        if type(self.order) is not Ranked:
            return found, None
        return found, FeatureOrder.by(leading, units, messages(caught))

    def search(
        self, selection: Selection, known: FeatureOrder | None, notes: list[Finding]
    ) -> tuple[Path | None, Finding | None]:
        """Search submodels of increasing size, with a note if not all sizes; or return the reason why not."""
        from gpsift.selection.search import make_plan, n_candidate_units, run_plan  # not needed for a ranking

        n_columns, units = len(self.table.columns), self.features.units(self.fitted.inputs.names)
        if self.has_many_at_once and type(self.order) is not Ranked:  # this order tries every column
            notes.append(Finding(FindingKind.NOT_SEARCHED, {"n_columns": n_columns, "most": MANY_COLUMNS}))
            return None, notes[-1]
        largest = min(LARGEST_PATH, n_candidate_units(self.fitted, units))
        if largest < n_columns:
            notes.append(Finding(FindingKind.PATH_SHORTENED, {"largest": largest, "n_columns": n_columns}))
        data = Data.read(self.table.X, self.table.y, {})
        cv = Folds(selection.cv, seed=self.seed) if isinstance(selection.cv, Integral) else selection.cv
        plan = make_plan(data, self.order, sizes=largest, cv=cv, model=self.model, reference=self.fitted, units=units)
        work = set_checkpoint(self.work, "submodels.sqlite")
        return run_plan(replace(plan, known_order=known), work, selection.rule), None

    def rank_samples(self, samples: int) -> Stability:
        """Rank random samples of the rows; by KL if the order is that of a projection, which has no scores."""
        from gpsift.selection.stability import stability  # not needed for a ranking

        return stability(
            self.table.X,
            self.table.y,
            self.order.scoring,
            n_splits=samples,
            model=self.model,
            features=self.features,
            seed=self.seed,
            work=set_checkpoint(self.work, "samples.sqlite"),
        )


def set_checkpoint(work: Work, name: str) -> Work:
    """Return the work with a checkpoint file of this name, in the folder that the user chose for checkpoints."""
    folder = work.folder()
    return work if folder is None else replace(work, checkpoint=folder / name)


@dataclass(frozen=True, eq=False)
class AnalysisPlan:
    """The plan of an analysis: the rows and columns that it would use, and the steps of cleaning the table."""

    source: str
    target: str
    task: str
    n_rows: int
    kinds: dict[str, str]  # the type of each column in words
    cautions: tuple[Finding, ...]
    seed: int

    @property
    def n_columns(self) -> int:
        return len(self.kinds)


def plan_analysis(
    data: Any, target: str | int | None, reading: Reading, *, likelihood: str | None, seed: int, ranks_only: bool
) -> AnalysisPlan:
    """Do what `analyse` does before the first fit."""
    table = reading.read(data, target)
    notes = list(table.notes)
    model = GP(likelihood=likelihood or default_likelihood(table))
    table, model = limit_cost(table, model, reading, seed=seed, ranks_only=ranks_only, notes=notes)
    if isinstance(model.inference, Sparse):  # the fit decides on the approximation
        notes.append(Finding(FindingKind.INFERENCE_SPARSE, {"n_rows": len(table.y)}))
    kinds = {name: "a date" if name in table.dates else "a category" for name in table.groups}
    kinds = {name: kinds.get(name, "a number") for name in table.columns}
    return AnalysisPlan(source_name(data), table.target, table.task, len(table.y), kinds, tuple(notes), seed)


@dataclass(frozen=True, eq=False)
class ColumnTest:
    """The test of every column of a table, with cautions for the reader."""

    source: str
    target: str
    task: str
    n_rows: int
    found: Discoveries
    cautions: tuple[Finding, ...]
    seed: int
    command: str | None = None
    seconds: float = 0.0

    @property
    def n_columns(self) -> int:
        return self.found.n_features

    def _repr_html_(self) -> str:
        return self.found._repr_html_()


def discover_columns(
    data: Any,
    target: str | int | None = None,
    *,
    rate: float = 0.1,
    folds: int | InOrder = 5,
    repeats: int = 1,
    likelihood: str | None = None,
    reading: Reading = Reading(),
    seed: int = 0,
    work: Work = Work(),
) -> ColumnTest:
    """Test by `discover` which columns of a table matter. The other parameters are those of `analyse`."""
    began = time.perf_counter()
    with spinner("reading", work.progress):
        table = reading.read(data, target)
    notes = list(table.notes)
    table = reading.limit_rows(table, MOST_ROWS_OF_A_SEARCH, seed, notes)
    model = GP(likelihood=likelihood or default_likelihood(table), hyper=quick_hyper(*table.X.shape))
    found = discover(
        table.X,
        table.y,
        model,
        rate=rate,
        folds=folds,
        repeats=repeats,
        features=Features(table.groups, table.categories),
        seed=seed,
        work=set_checkpoint(work, "discoveries.sqlite"),
    )
    return ColumnTest(
        source=source_name(data),
        target=table.target,
        task=table.task,
        n_rows=len(table.y),
        found=found,
        cautions=tuple(notes),
        seed=seed,
        seconds=time.perf_counter() - began,
    )
