"""Speed and quality of gpsift against its peers, measured in turn in one run.

    python benchmarks/peers.py [evaluation|fit|uniform|measures|classify|path|import|all]
                               [--repeats 7] [--seeds N] [--first-seed K]

Prints one table of ratios, each with the mark that it has to reach. `README.md` beside this file says how to read it.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import platform

import classify
import evaluation
import fits
import imports
import measures
import paths
from models import GPy, Library, ScikitLearn
from table import Row, print_table
from timing import one_thread

SECTIONS = ("evaluation", "fit", "uniform", "measures", "classify", "path", "import")
MIN_REPEATS = 7


def main() -> None:
    args = parse_args()
    chosen = SECTIONS if args.section == "all" else (args.section,)
    print_versions()
    rows: list[Row] = []
    for section in chosen:
        print(f"\n{section} ...", flush=True)
        rows += section_rows(section, args)
    print()
    print_table(rows)
    marked = [row for row in rows if row.mark is not None]
    held = sum(row.mark.holds(row.value) for row in marked)
    print(f"\n{held} of {len(marked)} marks hold")


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("section", nargs="?", choices=(*SECTIONS, "all"), default="all")
    parser.add_argument("--repeats", type=int, default=MIN_REPEATS, help="rounds of each timing; at least %(default)s")
    parser.add_argument("--seeds", type=int, help="data sets: 10 for `fit` and 20 for `uniform` by default")
    parser.add_argument("--first-seed", type=int, default=0, help="the first data set; later ones are new to everybody")
    args = parser.parse_args()
    if args.repeats < MIN_REPEATS:
        parser.error(f"a median of fewer than {MIN_REPEATS} repeats says little; got {args.repeats}")
    return args


def section_rows(section: str, args: argparse.Namespace) -> list[Row]:
    """Run one section."""

    def seeds(default: int) -> range:
        return range(args.first_seed, args.first_seed + (default if args.seeds is None else args.seeds))

    if section == "import":
        return imports.import_rows(args.repeats)
    candidates = {"evaluation": evaluation.PEERS, "measures": (GPy,), "classify": (GPy,), "path": (ScikitLearn,)}.get(
        section, fits.PEERS
    )
    peers = installed(candidates)
    with one_thread():
        if section == "evaluation":
            return evaluation.evaluation_rows(peers, args.repeats)
        if section == "measures":
            return measures.measure_rows(bool(peers), args.repeats)
        if section == "classify":
            return classify.classify_rows(args.repeats) if peers else []
        if section == "path":
            return paths.path_rows(args.repeats, with_peer=bool(peers))
        if section == "fit":
            return fits.fit_rows(peers, seeds(10))
        return fits.uniform_rows(peers, seeds(20))


def installed(candidates: tuple[type[Library], ...]) -> list[type[Library]]:
    """Those that can be imported, imported: threads can only be limited in libraries that are loaded."""
    found = []
    for library in candidates:
        if library.is_installed():
            importlib.import_module(library.module)
            found.append(library)
        else:
            print(f"{library.name} is not installed and left out")
    return found


def print_versions() -> None:
    names = ("gpsift", "numpy", "scipy", "scikit-learn", "torch", "gpytorch", "botorch", "GPy")
    found = [f"Python {platform.python_version()}"]
    for name in names:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"no {name}")
    print(", ".join(found))


if __name__ == "__main__":
    main()
