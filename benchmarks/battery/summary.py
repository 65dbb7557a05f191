"""Tables of a run: means over data sets of every task, size and method, and over the tasks of a family."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.battery.methods import METHODS
from benchmarks.battery.runner import read
from benchmarks.battery.tasks import TASKS

STORED = Path(__file__).parent / "results" / "battery.csv"

KEYS = ["task", "n", "method", "ranking"]
OF_RANKING, OF_METHOD = ("auc", "top", "order"), ("found", "false", "size", "selected_density", "density", "seconds")
# Numbers that need true inputs.
OF_TRUTH = (*OF_RANKING, "found")
TABLES = (
    ("Ranking: true inputs before inert ones (AUC)", "auc", 3, "largest"),
    ("Ranking: share of the k true inputs among the first k", "top", 3, "largest"),
    ("Ranking: order of the true inputs (Spearman, against total Sobol indices)", "order", 2, "largest"),
    ("Selection: share of the true inputs that are selected", "found", 2, "largest"),
    ("Selection: share of the selected inputs that are inert", "false", 2, "smallest"),
    ("Mean log density of test rows, by a model of the selected inputs", "selected_density", 3, "largest"),
    ("Mean log density of test rows, by the fit itself", "density", 3, "largest"),
    ("Seconds of processor time", "seconds", 2, "smallest"),
)
# The ranking of methods that only select, and of numbers that are those of a method.
NO_RANKING = "-"
# A mean halfway between two numbers of a table is rounded alike, whatever the last digit of its sum is.
MORE_DIGITS = 6


def flat(records: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """A row for every ranking of every record, and for every record without one."""
    rows = []
    for record in records:
        shared = {key: record.get(key, np.nan) for key in ("task", "n", "seed", "method", *OF_METHOD)}
        shared["failed"] = float("error" in record)
        for ranking, scores in (record.get("rankings") or {NO_RANKING: {}}).items():
            rows.append(shared | {"ranking": ranking} | {key: scores.get(key, np.nan) for key in OF_RANKING})
    return pd.DataFrame(rows)


def condensed(rows: pd.DataFrame) -> pd.DataFrame:
    """Means over data sets without an error, how many there were, how many failed, and the error of the mean AUC."""
    failed = rows.groupby(KEYS[:3], sort=False)["failed"].sum().astype(int)
    groups = rows[rows["failed"] == 0].groupby(KEYS, sort=False)
    means = groups[[*OF_RANKING, *OF_METHOD]].mean()
    error = (groups["auc"].std() / np.sqrt(groups["auc"].count())).rename("auc_se")
    counts = groups["seed"].nunique().rename("data_sets")
    table = pd.concat([counts, means, error], axis=1).reset_index()
    table = table.merge(failed.reset_index(), on=KEYS[:3], how="outer")
    return table.fillna({"ranking": NO_RANKING, "data_sets": 0}).astype({"data_sets": int})


def pooled(one: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """The condensed table of two runs that have no data set in common for the same method."""
    both = pd.concat([one, other], ignore_index=True)
    rows = []
    for _, parts in both.groupby(KEYS, sort=False):
        if len(parts) == 1:
            rows.append(parts.iloc[0])
            continue
        sizes, row = parts["data_sets"].to_numpy(float), parts.iloc[0].copy()
        row["data_sets"], row["failed"] = int(sizes.sum()), int(parts["failed"].sum())
        for column in (*OF_RANKING, *OF_METHOD):
            row[column] = np.sum(sizes * parts[column].to_numpy()) / sizes.sum()
        squares = np.sum((sizes - 1.0) * sizes * parts["auc_se"].fillna(0.0).to_numpy() ** 2)
        squares += np.sum(sizes * (parts["auc"].to_numpy() - row["auc"]) ** 2)
        row["auc_se"] = np.sqrt(squares / (sizes.sum() - 1.0) / sizes.sum())
        rows.append(row)
    return pd.DataFrame(rows).astype({"data_sets": int, "failed": int, "n": int}).reset_index(drop=True)


def table_of(folder: Path | None) -> pd.DataFrame:
    """The condensed table of a run, or the stored one."""
    return pd.read_csv(STORED) if folder is None else condensed(flat(read(folder))).round(4)


def by_family(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Means over the tasks of each family, and over families, for every ranking; empty where a task is missing."""
    wanted = {name: task.family for name, task in TASKS.items() if column not in OF_TRUTH or task.family != "nothing"}
    wide = table.pivot_table(index=["method", "ranking"], columns="task", values=column, sort=False)
    wide = wide.reindex(columns=list(wanted))
    if column == "order":  # there is no order where inputs are correlated
        wide = wide.dropna(axis=1, how="all")
    families = wide.T.groupby(lambda task: wanted[task], sort=False).mean().T
    families = families.where(wide.notna().T.groupby(lambda task: wanted[task], sort=False).all().T)
    families["mean"] = families.mean(axis=1, skipna=False)
    return in_order(families)


def by_task(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """One line for every task, one column for every ranking."""
    wide = table.pivot_table(index=["method", "ranking"], columns="task", values=column, sort=False)
    return in_order(wide.reindex(columns=[name for name in TASKS if name in wide.columns])).T


def in_order(wide: pd.DataFrame) -> pd.DataFrame:
    """Methods in the order of their list, and one name for a method and its ranking."""
    order = list(METHODS)
    wide = wide.loc[sorted(wide.index, key=lambda key: order.index(key[0]))]
    several = wide.index.get_level_values("method").value_counts()
    of_gp = [several[method] > 1 for method, _ in wide.index]
    return wide.set_axis(
        [f"{method}, {ranking}" if many else method for (method, ranking), many in zip(wide.index, of_gp, strict=True)]
    )


def markdown(wide: pd.DataFrame, digits: int, best: str | None = None) -> str:
    """A table whose best numbers of each column, the largest or the smallest, are bold."""
    wide = wide.round(digits + MORE_DIGITS)
    shown = wide.map(lambda value: "" if pd.isna(value) else f"{value:.{digits}f}")
    if best is not None:
        rounded = wide.round(digits)
        bold = rounded == (rounded.max() if best == "largest" else rounded.min())
        shown = shown.where(~bold, "**" + shown + "**")
    lines = ["| | " + " | ".join(map(str, wide.columns)) + " |", "|" + "---|" * (wide.shape[1] + 1)]
    lines += [f"| {name} | " + " | ".join(row) + " |" for name, row in zip(wide.index, shown.to_numpy(), strict=True)]
    return "\n".join(lines)


def sections(table: pd.DataFrame) -> Iterator[str]:
    """All tables of all sizes."""
    for n in sorted(table["n"].unique()):
        yield from sections_of(int(n), table[table["n"] == n])


def sections_of(n: int, table: pd.DataFrame) -> Iterator[str]:
    """The tables of one size that have any number in them."""
    rankings = table[table["ranking"] != NO_RANKING]
    one_each = table.drop_duplicates(["task", "method"]).assign(ranking=NO_RANKING)
    yield f"## {n} rows"
    yield who_ran(table)
    for title, column, digits, best in TABLES:
        values = by_family(rankings if column in OF_RANKING else one_each, column).dropna(how="all")
        if len(values):
            yield f"### {title}"
            yield markdown(values, digits, best)
    yield "### AUC by task"
    yield markdown(by_task(rankings, "auc"), 2)


def who_ran(table: pd.DataFrame) -> str:
    """How many data sets are behind the figures, and what went wrong."""
    runs = table.drop_duplicates(["task", "method"])
    ran = {name: part["data_sets"] for name, part in runs.groupby("method", sort=False)}
    said = {}
    for name in METHODS:
        if name in ran:
            low, high = int(ran[name].min()), int(ran[name].max())
            said.setdefault(str(low) if low == high else f"{low} to {high}", []).append(name)
    text = "Data sets of each task: " + "; ".join(f"{number} for {', '.join(names)}" for number, names in said.items())
    failed = runs[runs["failed"] > 0]
    if len(failed):
        each = (f"{row.method} on {row.failed} of {row.task}" for row in failed.itertuples())
        text += ". Ended with an error, and left out: " + ", ".join(each)
    return text + "."


def print_tables(folder: Path | None) -> None:
    print("\n\n".join(sections(table_of(folder))))
