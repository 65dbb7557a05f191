"""Automobile (imports of 1985): what a car is like and what it costs.

The paper has 193 rows and 38 inputs. The rows follow from dropping ``normalized-losses`` and then every incomplete row.
How the categories became numbers is not said, and several ways give 38 inputs; they are the codings here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpsift.paper.datasets.formats import comma_cells
from gpsift.paper.datasets.recipe import DEFAULT, Recipe, Table
from gpsift.paper.datasets.sources import UCI, RawFile, Source

_RAW_COLUMNS = """
symboling normalized_losses make fuel_type aspiration num_of_doors body_style drive_wheels engine_location
wheel_base length width height curb_weight engine_type num_of_cylinders engine_size fuel_system bore stroke
compression_ratio horsepower peak_rpm city_mpg highway_mpg price
"""
RAW_COLUMNS = _RAW_COLUMNS.split()
TWO_LEVELS = ["fuel_type", "aspiration", "num_of_doors", "engine_location"]
MORE_LEVELS = ["body_style", "drive_wheels", "engine_type", "num_of_cylinders", "fuel_system"]
NOT_NUMERIC = {"normalized_losses", "make", "price", *TWO_LEVELS, *MORE_LEVELS}
NUMERIC = [name for name in RAW_COLUMNS if name not in NOT_NUMERIC]
NUMBER_WORDS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "eight": 8, "twelve": 12}
MISSING = "?"


@dataclass(frozen=True)
class Coding:
    """How categories become numbers.

    With `one_hot` categories of more than two levels get a column for every level. Otherwise, and always with two
    levels, they get one for every level but the alphabetically first.
    """

    as_numbers: tuple[str, ...] = ()  # categories that are number words
    one_hot: bool = False
    all_rows: bool = False  # levels are those of all 205 rows, not of the complete ones; some columns are then constant
    without: tuple[str, ...] = ()  # columns left out in the end


CODINGS = {
    # fuel_system_idi is 1 - fuel_type_gas in every row; without it the columns are linearly independent.
    DEFAULT: Coding(without=("fuel_system_idi",)),
    "A": Coding(as_numbers=("num_of_doors", "num_of_cylinders"), all_rows=True),
    "B": Coding(without=("symboling",)),
    "C": Coding(as_numbers=("num_of_cylinders",), one_hot=True, without=("symboling",)),
}


def price_table(cells: np.ndarray, coding: str) -> Table:
    """The complete rows: numeric columns, coded categories, price. Make is left out."""
    if cells.shape[1] != len(RAW_COLUMNS):
        raise ValueError(f"{cells.shape[1]} columns, not {len(RAW_COLUMNS)}")
    every_row = dict(zip(RAW_COLUMNS, cells.T, strict=True))
    complete = np.all([every_row[name] != MISSING for name in RAW_COLUMNS if name != "normalized_losses"], axis=0)
    raw = {name: column[complete] for name, column in every_row.items()}
    choice = CODINGS[coding]
    columns = {name: raw[name].astype(float) for name in NUMERIC}
    columns |= {name: _numbers(raw[name]) for name in choice.as_numbers}
    for name in TWO_LEVELS + MORE_LEVELS:
        if name not in choice.as_numbers:
            levels = np.unique(every_row[name] if choice.all_rows else raw[name])
            levels = levels[levels != MISSING]
            coded = levels if choice.one_hot and name in MORE_LEVELS else levels[1:]
            columns |= {f"{name}_{level}": (raw[name] == level).astype(float) for level in coded}
    columns = {name: column for name, column in columns.items() if name not in choice.without}
    columns["price"] = raw["price"].astype(float)
    return Table(tuple(columns), np.column_stack(list(columns.values())))


def _numbers(words: np.ndarray) -> np.ndarray:
    unknown = sorted(set(words.tolist()) - NUMBER_WORDS.keys())
    if unknown:
        raise ValueError(f"not number words: {', '.join(unknown)}")
    return np.array([NUMBER_WORDS[word] for word in words.tolist()], dtype=float)


IMPORTS = RawFile("imports-85.data", comma_cells, "125db8bd36a84801f7223faf54071d15f85f26c13a9a7aee63375ac46098fb7f")

RECIPE = Recipe(
    name="automobile",
    title="Automobile",
    prepared="automobile.csv",
    files=(IMPORTS,),
    sources=(
        Source(UCI, "static/public/10/automobile.zip", IMPORTS),
        Source(UCI, "ml/machine-learning-databases/autos/imports-85.data", IMPORTS),
    ),
    table=price_table,
    digests={
        DEFAULT: "69e9b9eeff1fdb52a1b5bdda30fc3f25cf4b154a46410bb8687101d44a493438",
        "A": "34f15184e70d01c9df921bfc0f5891acda9d8bfd00ee72484beb08a96eabef8c",
        "B": "58e08eb81198ee7a7cb08dfa9a1a6161b5b202c31403f7a439cd9b4b43b8352c",
        "C": "622e80463c12eec3e1c56e690876058f342bd3840d1dd6ba9e89ad2fd8f34816",
    },
    n_train=150,
    citation="Schlimmer, J. (1987). Automobile. UCI Machine Learning Repository, doi 10.24432/C5B01C.",
    caveat=(
        "The paper does not say how categories were coded, nor whether price was logged. Four 0/1 columns are 1 in a "
        "single row and are constant in many training splits."
    ),
)
