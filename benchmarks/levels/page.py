"""What of the simulations is kept: their tables, those of the page, and its picture.

A folder of runs has one for each kind: `default`, `in order`, `wrong model`, `wrong model in order`, `uniform`
(nothing matters, many data sets) and `own` (the package itself).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from benchmarks.levels.own import own_table
from benchmarks.levels.summary import histogram, read, table, wide
from benchmarks.marked_page import with_sections

RESULTS = Path(__file__).parent / "results"
PAGE, PICTURE = Path(__file__).with_name("RESULTS.md"), Path(__file__).with_name("levels.png")
RUNS = ("default", "in order", "wrong model", "wrong model in order")
# A share halfway between two numbers of a table is rounded alike, whatever the last digit of its sum is.
DIGITS = 6


def keep(folder: Path) -> None:
    """Store the tables, write them into the page, and draw its picture."""
    RESULTS.mkdir(exist_ok=True)
    runs = [table(read(folder / run)).assign(run=run) for run in RUNS]
    pd.concat(runs).round(DIGITS).to_csv(RESULTS / "levels.csv", index=False)
    own_table(folder / "own").round(DIGITS).reset_index().to_csv(RESULTS / "own.csv", index=False)
    pd.concat([histogram(one) for one in read(folder / "uniform")]).round(DIGITS).to_csv(
        RESULTS / "uniform.csv", index=False
    )
    PAGE.write_text(with_tables(PAGE.read_text()))
    draw(stored_table("uniform"), PICTURE)


def stored_table(name: str) -> pd.DataFrame:
    return pd.read_csv(RESULTS / f"{name}.csv", keep_default_na=False, na_values=[""])  # "null" is a design


def with_tables(page: str) -> str:
    """The page with the stored tables between its marks."""
    return with_sections(page, sections())


def sections() -> Iterator[str]:
    stored, own = stored_table("levels"), stored_table("own")
    runs = {run: stored[stored["run"] == run] for run in RUNS}
    yield "## False discoveries at a rate of 0.1"
    yield markdown(wide(runs["default"], "false at 0.1"), 3)
    yield "## False discoveries at a rate of 0.2"
    yield markdown(wide(runs["default"], "false at 0.2"), 3)
    yield "## Share of the relevant columns that is found, at a rate of 0.1"
    yield markdown(wide(runs["default"], "found at 0.1").dropna(how="all"), 2)
    yield "## Other observations, and a forest"
    yield markdown(own.set_index("kind").sort_values(["n", "p"], kind="stable"), 3)
    yield "## A model that is wrong on purpose"
    yield markdown(wide(runs["wrong model"], "false at 0.1"), 3)
    yield "The same, each fold by a model of the rows before it (`folds=InOrder()`):"
    yield markdown(wide(runs["wrong model in order"], "false at 0.1"), 3)
    yield "## What order costs"
    both = {
        f"{column}, {name}": wide(runs[run], column)["100 x 10"]
        for column in ("false at 0.1", "found at 0.1")
        for name, run in (("all others", "default"), ("those before", "in order"))
    }
    yield markdown(pd.DataFrame(both).loc[wide(runs["in order"], "sets").index], 3)


def markdown(frame: pd.DataFrame, digits: int) -> str:
    names = ["", *map(str, frame.columns)]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += [
        "| " + " | ".join([str(name), *(cell(value, digits) for value in row)]) + " |"
        for name, row in zip(frame.index, frame.itertuples(index=False), strict=True)
    ]
    return "\n".join(lines)


def cell(value: float, digits: int) -> str:
    if pd.isna(value):
        return ""
    return f"{value:.0f}" if value >= 2 else f"{value:.{digits}f}"


def draw(shares: pd.DataFrame, path: Path) -> None:
    """How p-values of columns that do not matter are spread: of one fold, and of all."""
    from matplotlib.figure import Figure  # only here: processes of a run need no pictures

    sizes = list(shares.groupby(["n", "p", "sets"]))
    figure = Figure(figsize=(4.2 * len(sizes), 3.2), layout="tight")
    for axis, ((n, p, sets), part) in zip(figure.subplots(1, len(sizes), squeeze=False)[0], sizes, strict=True):
        edges = [*(part["bin"] / len(part)), 1.0]
        axis.stairs(part["one fold"], edges, label="one fold", color="#b35900", linewidth=1.6)
        axis.stairs(part["all folds"], edges, label="all folds", color="#1f5fa8", linewidth=1.6)
        axis.axhline(1.0, color="#666666", linewidth=0.8, linestyle="--")
        axis.set(xlabel="p-value", ylabel="density", ylim=(0.0, None), xlim=(0.0, 1.0))
        axis.set_title(f"{n} rows, {p} columns, {sets} data sets", fontsize=10)
        axis.legend(frameon=False, loc="upper left")
    figure.savefig(path, dpi=110)
