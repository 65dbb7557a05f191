"""The whole way from a table to an answer: prepare, fit, rank, search, sample."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any, Literal

import numpy as np
import pandas as pd

from gpsift.analysis.cautions import cautions_of
from gpsift.analysis.record import Analysis
from gpsift.gp import GP, MAP
from gpsift.gp.hyper import Hyper
from gpsift.reference import MissingCapability
from gpsift.relevance import ARD, VAR, Measure, rank
from gpsift.results import Ranking
from gpsift.selection.orders import read_measure
from gpsift.selection.search import search
from gpsift.selection.sizes import Rule, suggest_size
from gpsift.selection.stability import stability
from gpsift.tabular import Prepared, prepare, read_file
from gpsift.tabular.prepare import Missing, Task

# Exact inference takes a third power of the rows, and a search as many fits as sizes.
MOST_ROWS_OF_A_RANKING = 2000
MOST_ROWS_OF_A_SEARCH = 1000
LARGEST_PATH = 30
MOST_COLUMNS_OF_A_SEARCH = 300
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
        A larger table is cut to so many rows, drawn with `seed`: by default 2000, or 1000 if submodels are searched.
    seed, jobs, progress
        As in `search`.
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
    source = str(data) if isinstance(data, str | FilePath) else "a data frame"
    if isinstance(data, Prepared):
        table = data
    elif target is None:
        raise TypeError("`target` is missing: which column is to be explained?")
    else:
        frame = read_file(data) if isinstance(data, str | FilePath) else pd.DataFrame(data)
        table = prepare(frame, target, drop=drop, categorical=categorical, task=task, missing=missing)
    notes = list(table.notes)
    limit = most_rows or (MOST_ROWS_OF_A_SEARCH if select or samples else MOST_ROWS_OF_A_RANKING)
    if len(table.y) > limit:
        notes.append(
            f"{limit} of {len(table.y)} rows were used, drawn with seed {seed}; --rows takes more, and longer."
        )
        table = table.take(np.sort(np.random.default_rng(seed).choice(len(table.y), limit, replace=False)))
    model = GP(likelihood=likelihood or _likelihood(table), hyper=hyper or replace(MAP(), seed=seed))
    fitted = model.fit(table.X, table.y)
    chosen = read_measure(measure)
    categories = list(table.groups)
    path = None
    if select and len(table.groups) + table.X.shape[1] > MOST_COLUMNS_OF_A_SEARCH:
        notes.append(f"No submodels were searched: there are more than {MOST_COLUMNS_OF_A_SEARCH} columns.")
    elif select:
        n_columns = len(table.columns)
        largest = min(LARGEST_PATH, n_columns)
        if largest < n_columns:
            notes.append(f"Submodels were searched up to size {largest} of {n_columns}.")
        path = search(
            table.X,
            table.y,
            chosen,
            sizes=largest,
            cv=cv,
            model=model,
            groups=table.groups,
            categorical=categories,
            seed=seed,
            jobs=jobs,
            progress=progress,
        )
        path = replace(path, suggestion=suggest_size(path, rule))
    steady = None
    if samples:
        steady = stability(
            table.X,
            table.y,
            chosen if isinstance(chosen, Measure) else None,
            n_splits=samples,
            model=model,
            groups=table.groups,
            categorical=categories,
            seed=seed,
            jobs=jobs,
            progress=progress,
        )
    return Analysis(
        source=source,
        target=table.target,
        task=table.task,
        rows=table.rows,
        X=table.X,
        y=table.y,
        classes=table.classes,
        groups=table.groups,
        model=fitted,
        rankings=_rankings(fitted, chosen if isinstance(chosen, Measure) else None, table),
        path=path,
        stability=steady,
        cautions=cautions_of(fitted, table, notes),
        command=command,
        seed=seed,
        seconds=time.perf_counter() - began,
    )


def _likelihood(table: Prepared) -> str:
    if table.task == "classification":
        return "bernoulli" if len(table.classes) == 2 else "softmax"
    return LIKELIHOOD_OF_TASK[table.task]


def _rankings(fitted: Any, measure: Measure | None, table: Prepared) -> dict[str, Ranking]:
    """The leading measure, and the others beside it, as far as the model has them."""
    first = read_measure(measure)
    assert isinstance(first, Measure)
    measures = {type(first).__name__: first}
    measures |= {name: other for name, other in (("VAR", VAR()), ("ARD", ARD())) if name not in measures}
    found = {}
    for name, each in measures.items():
        try:
            found[name] = rank(fitted, measure=each, groups=table.groups, categorical=_scored(each, table.groups))
        except MissingCapability:
            if each is first:
                raise
            if isinstance(each, ARD):
                found[name] = _best_column(rank(fitted, measure=each), fitted.feature_names, table)
    return found


def _scored(measure: Measure, groups: Iterable[str]) -> list[str]:
    return [] if isinstance(measure, ARD) else list(groups)


def _best_column(ranking: Ranking, features: Sequence[str], table: Prepared) -> Ranking:
    """A measure without groups gives a category the score of its best indicator."""
    owner, units = table.owner, table.columns
    scores = np.array(
        [max(s for s, name in zip(ranking.scores, features, strict=True) if owner[name] == u) for u in units]
    )
    return replace(ranking, names=tuple(units), scores=scores, points=ranking.points[:, : len(units)])
