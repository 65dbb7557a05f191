"""The command; `python -m benchmarks.battery --help` says what it takes."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.battery.methods import METHODS
from benchmarks.battery.page import add, keep
from benchmarks.battery.picture import draw
from benchmarks.battery.runner import planned, run
from benchmarks.battery.summary import print_tables, table_of
from benchmarks.battery.tasks import TASKS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.battery")
    verbs = parser.add_subparsers(dest="verb", required=True)
    runs = verbs.add_parser("run", help="run what is not stored yet")
    runs.add_argument("--n", type=int, nargs="+", default=[100, 200, 500], help="rows")
    runs.add_argument("--seeds", type=int, default=20, help="data sets of each task and size")
    runs.add_argument("--first-seed", type=int, default=0)
    runs.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    runs.add_argument("--without", nargs="+", choices=METHODS, default=[], help="methods that are left out")
    runs.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    runs.add_argument("--jobs", type=int, default=1, help="processes")
    runs.add_argument("--minutes", type=float, default=60.0 * 24, help="after which the run stops by itself")
    summary = verbs.add_parser("summary", help="print the tables as markdown")
    plot = verbs.add_parser("plot", help="draw the picture")
    plot.add_argument("--to", type=Path, default=Path("battery.png"), help="file of the picture")
    keeping = verbs.add_parser("keep", help="make the stored table, the page and its picture of a run")
    adding = verbs.add_parser("add", help="the same, together with what is stored of other methods or data sets")
    for verb in (runs, keeping, adding):
        verb.add_argument("--out", type=Path, required=True, help="folder of the run")
    for verb in (summary, plot):
        verb.add_argument("--out", type=Path, help="folder of the run; the stored table if it is not given")
    chosen = parser.parse_args()
    if chosen.verb == "run":
        start(chosen)
    elif chosen.verb == "summary":
        print_tables(chosen.out)
    elif chosen.verb == "plot":
        draw(table_of(chosen.out), chosen.to)
    elif chosen.verb == "add":
        add(chosen.out)
    else:
        keep(chosen.out)


def start(chosen: argparse.Namespace) -> None:
    wanted = [name for name in chosen.methods if name not in chosen.without]
    for name in wanted:
        if not METHODS[name].is_installed:
            print(f"{name} needs {METHODS[name].needs}, which is not installed, and is left out")
    methods = [name for name in wanted if METHODS[name].is_installed]
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    run(planned(chosen.n, seeds, methods, chosen.tasks), chosen.out, chosen.jobs, chosen.minutes)


if __name__ == "__main__":
    main()
