"""Run the simulations, compare some with the package itself, and print the tables."""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from multiprocessing import get_context
from pathlib import Path

from benchmarks.levels.designs import DESIGNS
from benchmarks.levels.runner import run_one
from benchmarks.levels.statistic import Test

SIZES = tuple(product((100, 200, 400), (10, 30, 100)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.levels", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="test simulated data sets; what is in the folder already is left")
    run.add_argument("--device", default="cpu")
    run.add_argument("--sets", type=int, default=200, help="of each design and size")
    run.add_argument("--first", type=int, default=0, help="number of the first data set")
    run.add_argument("--designs", nargs="*", default=list(DESIGNS), choices=list(DESIGNS))
    run.add_argument("--sizes", nargs="*", default=[f"{n}x{p}" for n, p in SIZES], help="rows x columns")
    run.add_argument("--wrong-model", action="store_true", help="hyperparameters that are not searched for")
    run.add_argument("--in-order", action="store_true", help="each fold by the models of the rows before it")
    run.add_argument("--jobs", type=int, default=1)
    own = commands.add_parser("own", help="the package itself: other likelihoods, a forest")
    own.add_argument("--sets", type=int, default=100)
    own.add_argument("--sizes", nargs="*", default=["100x10"], help="rows x columns")
    own.add_argument("--null", action="store_true", help="observations that no column has to do with")
    own.add_argument("--jobs", type=int, default=1)
    check = commands.add_parser("check", help="the package's own answer beside that of the batch")
    check.add_argument("--sets", type=int, default=2)
    check.add_argument("--sizes", nargs="*", default=["100x10", "100x30"])
    cost = commands.add_parser("cost", help="processor time of the test beside that of a fit")
    cost.add_argument("--sets", type=int, default=8)
    cost.add_argument("--designs", nargs="*", default=list(DESIGNS), choices=list(DESIGNS))
    show = commands.add_parser("summary", help="tables of what is in the folder")
    kept = commands.add_parser("keep", help="store the tables, and write them into RESULTS.md")
    for command in (run, own, show, kept):
        command.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    if chosen.command == "run":
        run_all(chosen)
    elif chosen.command == "own":
        from benchmarks.levels.own import run_own

        run_own([size_of(size) for size in chosen.sizes], chosen.sets, chosen.jobs, chosen.out, chosen.null)
    elif chosen.command == "check":
        from benchmarks.levels.check import print_differences

        print_differences([size_of(size) for size in chosen.sizes], chosen.sets)
    elif chosen.command == "cost":
        from benchmarks.levels.cost import print_costs

        print_costs(chosen.designs, chosen.sets)
    elif chosen.command == "summary":
        from benchmarks.levels.own import own_table
        from benchmarks.levels.summary import read, shown, table

        print(shown(table(read(chosen.out))))
        print(own_table(chosen.out).to_string(float_format=lambda value: f"{value:.3f}"))
    else:
        from benchmarks.levels.page import keep

        keep(chosen.out)


def size_of(text: str) -> tuple[int, int]:
    n, _, p = text.partition("x")
    return int(n), int(p)


def run_all(chosen: argparse.Namespace) -> None:
    chosen.out.mkdir(parents=True, exist_ok=True)
    jobs = [(name, *size_of(size)) for size, name in product(chosen.sizes, chosen.designs)]
    files = [chosen.out / f"{name.replace('/', '')}, {n}, {p}, {chosen.first}.npz" for name, n, p in jobs]
    left = [(job, file) for job, file in zip(jobs, files, strict=True) if not file.exists()]
    test = Test(chosen.wrong_model, chosen.in_order)
    with ProcessPoolExecutor(chosen.jobs, mp_context=get_context("spawn")) as pool:
        running = {
            pool.submit(run_one, *job, chosen.first, chosen.sets, chosen.device, test, file): job for job, file in left
        }
        for done in as_completed(running):
            print(*running[done], f"{done.result():.0f} s", flush=True)


if __name__ == "__main__":
    main()
