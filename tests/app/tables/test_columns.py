"""Cells that are written one way and meant another: numbers as texts, dates."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gpsift.app.tables.clean import clean
from gpsift.app.tables.columns import date_features, parse_date_texts, parse_number_texts
from gpsift.app.tables.steps import RawTable


def numbers(*texts):
    column = pd.Series(texts, dtype=object)
    reading = parse_number_texts(column)
    return None if reading is None else [reading.values.get(text, np.nan) for text in texts]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("1", "2.5", "-3e2"), [1, 2.5, -300]),
        (("12 kg", "3.5 kg", "4kg"), [12, 3.5, 4]),
        (("1 year", "2 years"), [1, 2]),
        (("$1,234.50", "$12", "-$3"), [1234.5, 12, -3]),
        (("1.234,5 €", "12 €"), [1234.5, 12]),
        (("12 %", "3%"), [12, 3]),
        (("1,234", "5,678,901"), [1234, 5678901]),
        (("1'234.5", "2 000"), [1234.5, 2000]),
        (("1,5", "2,25", "3"), [1.5, 2.25, 3]),
        (("(1,200)", "300"), [-1200, 300]),
        (("−5", "+4"), [-5, 4]),
        (("<0.05", "0.3", "0.7"), [0.025, 0.3, 0.7]),
        (("n.d.", "<0.5", "<0.2", "1", "2", "3"), [0.1, 0.25, 0.1, 1, 2, 3]),
        (("ND", "0.5", "4"), [0.25, 0.5, 4]),
        ((">100", "50", "20"), [100, 50, 20]),
        (("1", "2", "3", "4", "oops"), [1, 2, 3, 4, np.nan]),
        (("3504.", "12."), [3504, 12]),
    ],
)
def test_numbers_in_texts(texts, expected):
    assert_allclose(numbers(*texts), expected)


@pytest.mark.parametrize(
    "texts",
    [
        ("5 mg", "2 g", "1 kg", "7 mg"),
        ("1. White", "2. Black", "3. Asian"),
        ("10-20", "20-30", "30-40"),
        ("<18", ">65", "<18"),
        ("P1", "P2"),
        ("2 of 3", "1 of 3"),
        ("12:30", "13:45"),
        ("2024-01-31", "2024-02-01"),
        ("31.1.2024", "1.2.2024"),
        ("1", "2", "a", "b"),
        ("2. Middle", "2. Middle"),
        ("yes", "no"),
    ],
)
def test_other_texts_are_no_numbers(texts):
    assert numbers(*texts) is None


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("2024-01-31", "2024-02-01"), ("2024-01-31", "2024-02-01")),
        (("31.1.2024", "1.2.2024"), ("2024-01-31", "2024-02-01")),
        (("1/31/2024", "2/1/2024"), ("2024-01-31", "2024-02-01")),
        (("31/1/2024", "1/2/2024"), ("2024-01-31", "2024-02-01")),
        (("31 Jan 2024", "1 Feb 2024"), ("2024-01-31", "2024-02-01")),
        (("Jan 31, 2024", "February 1, 2024"), ("2024-01-31", "2024-02-01")),
        (("2024Q1", "2024-Q3"), ("2024-01-01", "2024-07-01")),
        (("2024-01", "2024-02"), ("2024-01-01", "2024-02-01")),
        (("2024-01-31T12:30:00Z", "2024-02-01 00:00"), ("2024-01-31 12:30", "2024-02-01")),
    ],
)
def test_dates_in_texts(texts, expected):
    assert_array_equal(
        parse_date_texts(pd.Series(texts, dtype=object)).to_numpy(), pd.to_datetime(list(expected), format="mixed")
    )


@pytest.mark.parametrize("texts", [("red", "blue"), ("12", "13"), ("2024-13-45", "2024-99-99"), ("May", "June")])
def test_other_texts_are_no_dates(texts):
    assert parse_date_texts(pd.Series(texts, dtype=object)) is None


def test_parts_of_a_date_are_those_that_vary():
    days = pd.Series(pd.date_range("2023-01-01", periods=500), name="day")
    parts = date_features(days)
    assert list(parts) == ["day: days", "day: month", "day: weekday"]
    assert_array_equal(parts["day: days"], np.arange(500.0))
    assert [parts["day: month"][k] for k in (0, 31, 364, 365)] == [1, 2, 12, 1]
    assert [parts["day: weekday"][k] for k in (0, 1, 7)] == [6, 0, 6]  # a Sunday first


def test_short_and_regular_dates_have_fewer_parts():
    assert list(date_features(pd.Series(pd.date_range("2024-01-01", periods=48, freq="h"), name="t"))) == [
        "t: hours",
        "t: weekday",
        "t: hour",
    ]
    assert list(date_features(pd.Series(pd.date_range("2024-01-01", periods=90), name="t"))) == [
        "t: days",
        "t: weekday",
    ]
    years = pd.to_datetime([f"{year}-01-01" for year in range(1970, 1983)])
    assert list(date_features(pd.Series(years, name="t"))) == ["t: days"]


def test_numbers_of_eight_digits_are_dates_where_the_name_says_so():
    frame = pd.DataFrame(
        {"date": [20240131, 20240201, 20250202], "code": [20240131, 20240201, 20250202], "y": [1.0, 2, 4]}
    )
    prepared = clean(RawTable(frame), "y").table
    assert prepared.dates == ("date",)
    assert_array_equal(prepared.X["date: days"], [0, 1, 368])
    assert_array_equal(prepared.X["code"], frame["code"])
    assert prepared.rows["date"].tolist() == ["2024-01-31", "2024-02-01", "2025-02-02"]
