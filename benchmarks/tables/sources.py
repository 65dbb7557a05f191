"""The files, where they lie in their packages, and the column of each that is explained."""

from __future__ import annotations

import tarfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

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
