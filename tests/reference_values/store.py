"""Compute all cases, and store their numbers or compare them with stored ones.

    python tests/reference_values/store.py                      # write the files beside this script
    python tests/reference_values/store.py --to all.npz         # everything, all rows of every array, in one file
    python tests/reference_values/store.py --compare            # with the files beside this script
    python tests/reference_values/store.py --compare all.npz --tolerance 1e-12 --only poisson

The files beside this script hold some rows of every array and the mean of all. A comparison prints the worst difference
of each case, |a - b| / (|b| + the largest |b| of the array), and ends with 1 if one exceeds the tolerance.
"""

import argparse
import importlib.util
import sys
import time
from pathlib import Path

from threadpoolctl import threadpool_limits

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import reference_file  # noqa: E402
from reference_all import CASES, computed  # noqa: E402

import gpsift  # noqa: E402

# Passes over partitions add in the order of the partitions, which a change of the code may change.
DISTRIBUTED_TOLERANCE = 1e-10


def main():
    arguments = read_arguments()
    print(f"gpsift from {Path(gpsift.__file__).parent}")
    here = [name for name in CASES if arguments.only in name]
    absent = {name: missing(CASES[name].needs) for name in here}
    for library in sorted(set().union(*absent.values())):
        print(f"left out for want of {library}: {sum(library in names for names in absent.values())} case(s)")
    names = [name for name in here if not absent[name]]
    with threadpool_limits(1, user_api="blas"):
        if arguments.compare is not None:
            sys.exit(compare(names, arguments.compare, arguments.tolerance))
        write(names, arguments.to)


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, help="one file for everything, instead of the files beside this script")
    parser.add_argument(
        "--compare", type=Path, nargs="?", const=HERE, metavar="FILE", help="compare instead of storing"
    )
    parser.add_argument("--tolerance", type=float, default=1e-12, help="largest relative difference (1e-12)")
    parser.add_argument("--only", default="", metavar="WORDS", help="only cases with these words in their name")
    return parser.parse_args()


def missing(libraries):
    return {library for library in libraries if importlib.util.find_spec(library.split(".")[0]) is None}


def write(names, to):
    found = {}
    for name in names:
        before = time.perf_counter()
        try:
            found[name] = computed(name)
        except Exception as error:
            print(f"FAILED {name}: {type(error).__name__}: {error}", flush=True)
            continue
        size = sum(values.size for values in found[name].values())
        print(f"{time.perf_counter() - before:7.2f} s {size:7d} numbers  {name}", flush=True)
    if to is not None:
        reference_file.write(to, found, whole=True)
        return
    for section in {CASES[name].section for name in names}:
        of_section = [name for name in CASES if CASES[name].section == section]
        if all(name in found for name in of_section):
            reference_file.write(HERE / f"{section}.npz", {name: found[name] for name in of_section}, whole=False)
        else:
            print(f"{section} is not complete and was not written")


def compare(names, source, tolerance):
    files = sorted(source.glob("*.npz")) if source.is_dir() else [source]
    exceeded, compared = [], set()
    for file in files:
        stored = reference_file.read(file)
        print(f"{file.name}: {stored.about}")
        for name in stored.cases:
            if name not in names:
                continue
            compared.add(name)
            allowed = max(tolerance, DISTRIBUTED_TOLERANCE if CASES[name].section == "distributed" else 0.0)
            difference, where = stored.worst(name, computed(name))
            verdict = "" if difference <= allowed else "  EXCEEDED"
            print(f"{difference:9.1e}  {name}{f' ({where})' if difference else ''}{verdict}", flush=True)
            exceeded += [name] if verdict else []
    for name in sorted(set(names) - compared):
        print(f"not stored: {name}")
    print(f"{len(compared)} cases compared, {len(exceeded)} beyond the tolerance")
    return 1 if exceeded else 0


if __name__ == "__main__":
    main()
