"""The whole way from a table to an answer: prepare, fit, rank, search, sample."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any, Literal

import numpy as np
import pandas as pd

from gpsift.analysis.cautions import cautions_of
from gpsift.analysis.record import Analysis
from gpsift.counted import counted
from gpsift.gp import GP, MAP, NUTS, DrawnGP, FittedGP
from gpsift.gp.hyper import Hyper
from gpsift.inference import Sparse
from gpsift.reference import MissingCapability
from gpsift.relevance import ARD, KL, VAR, Measure
from gpsift.results import Path, Ranking, Stability
from gpsift.selection.orders import read_order, unit_ranking
from gpsift.selection.search import search
from gpsift.selection.sizes import Rule, suggest_size
from gpsift.selection.stability import stability
from gpsift.selection.units import Units
from gpsift.tabular import Prepared, prepare, read_file
from gpsift.tabular.prepare import Missing, Task
from gpsift.work import FitBar, ShareBar, WaitingBar

# Exact inference takes a third power of the rows, and a search as many fits as sizes.
MOST_ROWS_OF_A_RANKING = 2000
MOST_ROWS_OF_A_SEARCH = 1000
# Sparse inference takes about a minute on so many.
MOST_ROWS_OF_A_SPARSE_RANKING = 20_000
LARGEST_PATH = 30
MOST_COLUMNS_OF_A_SEARCH = 300
# VAR conditions every column on all others: a third power of the columns, half a minute at 5000.
MOST_COLUMNS_OF_VAR = 2000
LIKELIHOOD_OF_TASK = {"regression": "gaussian", "counts": "poisson"}


def analyse(
    data: Any,
    target: str | int | None = None,
    *,
    measure: Measure | str | None = None,
    select: bool = True,
    samples: int = 0,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    task: Literal["auto"] | Task = "auto",
    missing: Missing = "refuse",
    likelihood: str | None = None,
    hyper: Hyper | None = None,
    cv: int | None = None,
    rule: Rule = "one-se",
    most_rows: int | None = None,
    seed: int = 0,
    jobs: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    command: str | None = None,
) -> Analysis:
    """Which columns of a table matter for one of them, how many are enough, and how sure that is.

    Parameters
    ----------
    data : data frame, path or Prepared
        The table, or a file of it (CSV, Parquet, Excel), or what `prepare` made of one.
    target : str or int, optional
        The column to explain; a `Prepared` table has it.
    measure : Measure or str, optional
        What decides the order; `KL()` by default. VAR and ARD are shown beside it.
    select : bool
        Search submodels of growing size, too.
    samples : int
        On how many random samples of the rows to rank again, for the stability of the order.
    drop, categorical, task, missing
        As in `gpsift.tabular.prepare`.
    likelihood : str, optional
        As in `GP`; by default what goes with the task.
    hyper : Hyper, optional
        `MAP()` by default: with many columns for few rows, maximum likelihood overfits.
    cv : int, optional
        Folds that judge submodels; leave-one-out by default.
    rule : str
        Of `suggest_size`.
    most_rows : int, optional
        A larger table is cut to so many rows, drawn with `seed`. By default these are 1000 if submodels are searched or
        samples ranked. For a ranking alone they are 20,000 with Gaussian noise, where inference is sparse beyond 2000,
        and 2000 otherwise.
    seed, jobs, progress
        As in `search`.
    checkpoint : path, optional
        A folder that keeps the finished fits of search and samples. The same call after an interruption goes on from
        there.
    command : str, optional
        How the user asked for this, for the record.

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
    with WaitingBar("reading", progress):
        table = _read_table(data, target, drop=drop, categorical=categorical, task=task, missing=missing)
    notes = list(table.notes)
    chosen = read_order(measure)
    model = GP(likelihood=likelihood or _likelihood(table), hyper=hyper or replace(MAP(), seed=seed))
    ranks_only = not (select or samples)
    table, model = _within_reach(table, model, most_rows, seed=seed, ranks_only=ranks_only, notes=notes)
    has_own_bar = isinstance(model.hyper, NUTS)
    with FitBar(False if has_own_bar else progress):
        fitted = model.fit(table.X, table.y)
    work = _Work(table, model, chosen, seed=seed, jobs=jobs, progress=progress, folder=_folder(checkpoint))
    unsearched = work.too_many_columns if select else None
    notes += [unsearched] if unsearched else []
    path = work.path(fitted, cv=cv, rule=rule, notes=notes) if select and not unsearched else None
    steady = work.stability(samples) if samples else None
    with ShareBar("ranking", progress):
        rankings = _rankings(fitted, chosen, table, notes)
    return Analysis(
        source=_source(data),
        target=table.target,
        task=table.task,
        rows=table.rows,
        X=table.X,
        y=table.y,
        classes=table.classes,
        groups=table.groups,
        model=fitted,
        rankings=rankings,
        path=path,
        unsearched=unsearched,
        stability=steady,
        cautions=cautions_of(fitted, table, notes),
        command=command,
        seed=seed,
        seconds=time.perf_counter() - began,
    )


def _source(data: Any) -> str:
    if not isinstance(data, str | FilePath):
        return "a data frame"
    return "standard input" if str(data) == "-" else str(data)


def _read_table(data: Any, target: str | int | None, **options: Any) -> Prepared:
    if isinstance(data, Prepared):
        return data
    if target is None:
        raise TypeError("`target` is missing: which column is to be explained?")
    frame = read_file(data) if isinstance(data, str | FilePath) else pd.DataFrame(data)
    return prepare(frame, target, **options)


def _likelihood(table: Prepared) -> str:
    if table.task == "classification":
        return "bernoulli" if len(table.classes) == 2 else "softmax"
    return LIKELIHOOD_OF_TASK[table.task]


def _within_reach(
    table: Prepared, model: GP, most_rows: int | None, *, seed: int, ranks_only: bool, notes: list[str]
) -> tuple[Prepared, GP]:
    """So many rows, and an inference, that the work ends while one waits; what was done about it is noted."""
    n = len(table.y)
    may_be_sparse = ranks_only and model.likelihood == "gaussian" and not isinstance(model.hyper, NUTS)
    if not ranks_only:
        limit = most_rows or MOST_ROWS_OF_A_SEARCH
    else:
        limit = most_rows or (MOST_ROWS_OF_A_SPARSE_RANKING if may_be_sparse else MOST_ROWS_OF_A_RANKING)
    if n > limit:
        notes.append(f"{limit} of {n} rows were used, drawn with seed {seed}; --rows takes more, and longer.")
        table = table.take(np.sort(np.random.default_rng(seed).choice(n, limit, replace=False)))
    used = len(table.y)
    if may_be_sparse and used > MOST_ROWS_OF_A_RANKING:
        model = replace(model, inference=Sparse())
        notes.append(
            f"Inference is sparse, because there are {used} rows: {Sparse().m} inducing points stand for them. --rows "
            f"{MOST_ROWS_OF_A_RANKING} takes a sample of the rows, and exact inference."
        )
    return table, model


def _folder(checkpoint: str | os.PathLike[str] | None) -> FilePath | None:
    if checkpoint is None:
        return None
    folder = FilePath(checkpoint)
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"The checkpoint {folder} must be a folder, and is a file.")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@dataclass(frozen=True, eq=False)
class _Work:
    """The long part: many fits of one model to one table."""

    table: Prepared
    model: GP
    measure: Measure | str
    seed: int
    jobs: int | None
    progress: bool | None
    folder: FilePath | None

    @property
    def too_many_columns(self) -> str | None:
        """Why no submodels are searched, where they are not."""
        n_columns = len(self.table.columns)
        if n_columns <= MOST_COLUMNS_OF_A_SEARCH:
            return None
        return f"No submodels were searched: there are {n_columns} columns, more than {MOST_COLUMNS_OF_A_SEARCH}."

    def path(self, fitted: FittedGP | DrawnGP, *, cv: int | None, rule: Rule, notes: list[str]) -> Path:
        """Submodels of growing size, as far as that is feasible; where it ends is noted."""
        n_columns = len(self.table.columns)
        largest = min(LARGEST_PATH, n_columns)
        if largest < n_columns:
            notes.append(f"Submodels were searched up to size {largest} of {n_columns}.")
        found = search(
            self.table.X, self.table.y, self.measure, sizes=largest, cv=cv, fitted=fitted, **self._options("submodels")
        )
        return replace(found, suggestion=suggest_size(found, rule))

    def stability(self, samples: int) -> Stability:
        """The order on random samples of the rows; a projection has no scores, so KL stands in for it."""
        measure = self.measure if isinstance(self.measure, Measure) else None
        return stability(self.table.X, self.table.y, measure, n_splits=samples, **self._options("samples"))

    def _options(self, what: str) -> dict[str, Any]:
        return {
            "model": self.model,
            "groups": self.table.groups,
            "categorical": list(self.table.groups),
            "seed": self.seed,
            "jobs": self.jobs,
            "progress": self.progress,
            "checkpoint": None if self.folder is None else self.folder / f"{what}.sqlite",
        }


def _rankings(
    fitted: FittedGP | DrawnGP, measure: Measure | str, table: Prepared, notes: list[str]
) -> dict[str, Ranking]:
    """The leading measure, and the others beside it, as far as the model has them."""
    first = measure if isinstance(measure, Measure) else KL()
    beside: list[Measure] = [ARD()]
    if table.X.shape[1] <= MOST_COLUMNS_OF_VAR:
        beside.insert(0, VAR())
    elif not isinstance(first, VAR):
        notes.append(f"VAR was left out: there are more than {MOST_COLUMNS_OF_VAR} columns.")
    units = Units.read(fitted.feature_names, table.groups, (), list(table.groups))
    measures = [first, *(each for each in beside if type(each) is not type(first))]
    found = {}
    for each in counted(measures, len(measures)):
        with nullcontext() if each is first else suppress(MissingCapability):
            found[type(each).__name__] = unit_ranking(fitted, units, each)
    return found
