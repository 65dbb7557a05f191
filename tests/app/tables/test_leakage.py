"""Targets that are sums, differences, products and ratios of columns, up to rounding."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from gpsift.app.tables.clean import clean
from gpsift.app.tables.leakage import find_formulas, rounding_units
from gpsift.app.tables.steps import RawTable

N = 200


def table(n=N, p=5, seed=0):
    """Body measures, as rounded as people write them down."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, p)), columns=list("abcde")[:p])
    return frame.assign(weight=rng.normal(70, 10, n).round(1), height=rng.normal(1.7, 0.1, n).round(2))


def found(frame):
    return find_formulas(clean(RawTable(frame), "y").table)


def texts(frame):
    return [formula.text for formula in found(frame)]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda f: f["a"] + f["b"], ["a + b"]),
        (lambda f: f["a"] - f["b"], ["a - b"]),
        (lambda f: 2 * f["a"] - 0.5 * f["c"] + 7, ["2 × a - 0.5 × c + 7"]),
        (lambda f: 3 - f["a"], ["3 - a"]),
        (lambda f: 1.8 * f["weight"] + 32, ["1.8 × weight + 32"]),
        (lambda f: (1.8 * f["weight"] + 32).round(0), ["1.8 × weight + 32"]),
        (lambda f: (f["a"] + f["b"] + f["c"]).round(1), ["a + b + c"]),
        (lambda f: (f["weight"] / f["height"] ** 2).round(1), ["weight / height²"]),
        (lambda f: 100 * f["weight"] * f["height"], ["100 × weight × height"]),
        (lambda f: f["height"] ** 0.5 / f["weight"], ["height^0.5 / weight"]),
        (lambda f: f["a"] / f["b"], ["a / b"]),
    ],
)
def test_formulas_are_found_and_written_as_people_do(make, expected):
    frame = table()
    assert texts(frame.assign(y=make(frame))) == expected


@pytest.mark.parametrize(
    "make",
    [
        lambda f, e: e,
        lambda f, e: 2 * f["a"] + f["b"] + 1e-3 * e,
        lambda f, e: (2 * f["a"] + f["b"] + 0.01 * e).round(2),
        lambda f, e: (2 * f["a"] + f["b"] + 0.1 * e).round(0),  # too coarse to prove anything
        lambda f, e: np.sin(f["a"]) + f["b"] ** 2,
        lambda f, e: f["weight"] / f["height"] ** 2 * np.exp(0.02 * e),
        lambda f, e: f["a"] + f["b"] * (e > -1),  # holds in 84 % of the rows
    ],
)
def test_what_is_no_formula_is_none(make):
    frame, noise = table(), np.random.default_rng(1).normal(size=N)
    assert texts(frame.assign(y=make(frame, noise))) == []


def test_targets_without_relation_to_whole_numbers_have_no_formula():
    rng = np.random.default_rng(2)
    for seed in range(20):
        frame = pd.DataFrame(rng.integers(1, 6, size=(60, 8))).add_prefix("q")
        assert texts(frame.assign(y=np.random.default_rng(seed).integers(1, 6, 60))) == []


def test_a_sum_of_many_answers_is_found():
    frame = pd.DataFrame(np.random.default_rng(3).integers(1, 6, size=(150, 12))).add_prefix("q")
    (formula,) = found(frame.assign(y=frame.iloc[:, :10].sum(axis=1)))
    assert formula.columns == tuple(f"q{j}" for j in range(10))
    assert formula.text == " + ".join(formula.columns)


def test_errors_in_few_rows_do_not_hide_it():
    frame = table()
    y = frame["a"] + frame["b"]
    y.iloc[::40] += 5.0
    (formula,) = found(frame.assign(y=y))
    assert (formula.text, formula.share) == ("a + b", 0.975)


def test_a_copy_does_not_hide_a_sum():
    frame = table()
    y = frame["a"] + frame["b"]
    assert texts(frame.assign(y=y, copy=2 * y)) == ["0.5 × copy", "a + b"]


def test_a_small_difference_of_large_numbers_is_found():
    rng = np.random.default_rng(4)
    end = rng.uniform(1e6, 2e6, N).round()
    frame = table().assign(start=end - rng.normal(100, 30, N).round(), end=end)
    assert texts(frame.assign(y=frame["end"] - frame["start"])) == ["end - start"]


def test_more_columns_than_rows():
    frame = pd.DataFrame(np.random.default_rng(5).normal(size=(80, 400))).add_prefix("x")
    assert texts(frame.assign(y=frame["x3"] - frame["x7"] + frame["x9"])) == ["x3 + x9 - x7"]
    assert texts(frame.assign(y=np.random.default_rng(6).normal(size=80))) == []


def test_classes_and_few_rows_have_none():
    frame = table(19)
    assert texts(frame.assign(y=frame["a"] + frame["b"])) == []
    frame = table()
    assert texts(frame.assign(y=np.where(frame["a"] > 0, "yes", "no"))) == []


def test_a_category_is_no_part_of_a_sum():
    frame = table().assign(colour=np.random.default_rng(7).choice(["red", "blue"], N))
    assert texts(frame.assign(y=frame["a"] + 3 * (frame["colour"] == "red"))) == []


def test_it_is_pointed_out_and_nothing_is_left_out():
    frame = table().rename(columns={"b": "net price"})
    plan = clean(RawTable(frame.assign(y=frame["a"] + frame["net price"])), "y")
    (note,) = plan.table.notes
    assert (note.kind, note.data["columns"]) == ("made-of", ("a", "net price"))
    assert note.detail.startswith("y = a + 'net price' in every row, up to rounding. If they are part of the target")
    assert {"a", "net price"} <= set(plan.table.columns)
    assert plan.steps == ()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.25, 130.51, 12.0], [0.01, 0.01, 0.01]),
        ([0.00125, 1250.0], [1e-5, 10.0]),
        ([3.0, 0.0, -12.0], [1.0, 1.0, 1.0]),
        ([0.1 + 0.2], [0.1]),
    ],
)
def test_last_places_of_numbers(values, expected):
    assert_allclose(rounding_units(np.array(values)), expected)


def test_numbers_of_full_precision_have_no_coarse_last_place():
    values = np.random.default_rng(8).normal(size=50)
    assert rounding_units(values).max() < 1e-11
