"""From a table to inputs and target."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from gpsift.app.tables.clean import prepare


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "size": rng.normal(size=30),
            "colour": rng.choice(["red", "green", "blue"], 30),
            "sex": rng.choice(["f", "m"], 30),
            "code": rng.integers(4, size=30),
            "y": rng.normal(size=30),
        }
    )


def test_text_becomes_indicators_and_two_levels_one_column(frame):
    table = prepare(frame, "y")
    assert list(table.X) == ["size", "colour=blue", "colour=green", "colour=red", "sex=m", "code"]
    assert table.groups == {"colour": ["colour=blue", "colour=green", "colour=red"], "sex": ["sex=m"]}
    assert_array_equal(table.X["colour=red"], frame["colour"] == "red")
    assert_array_equal(table.X["sex=m"], frame["sex"] == "m")
    assert_array_equal(table.y, frame["y"])
    assert (table.target, table.task, table.classes, table.notes) == ("y", "regression", (), ())


def test_codes_are_categories_when_said(frame):
    table = prepare(frame, "y", categorical=["code"])
    assert table.groups["code"] == ["code=0", "code=1", "code=2", "code=3"]
    frame["flag"] = frame["size"] > 0
    assert prepare(frame, "y").groups["flag"] == ["flag=True"]


def test_names_of_indicators_do_not_collide(frame):
    frame["colour=red"] = 1.0 * np.arange(30) ** 2
    table = prepare(frame, "y")
    assert table.X.columns.is_unique
    assert "colour=red'" in table.groups["colour"]


@pytest.mark.parametrize("target", ["y", 4, "4", -1])
def test_the_target_by_name_or_position(frame, target):
    assert prepare(frame, target).target == "y"


def test_a_column_called_like_a_number_is_that_column(frame):
    assert prepare(frame.rename(columns={"size": "4"}), "4").target == "4"


def test_what_says_nothing_is_left_out_with_a_note(frame):
    frame["id"] = np.arange(1, 31)
    frame["name"] = [f"P{i}" for i in range(30)]
    frame["empty"] = np.nan
    table = prepare(frame, "y")
    assert not {"id", "name", "empty"} & set(table.X)
    assert [note.data["columns"][0] for note in table.notes] == ["id", "name", "empty"]


def test_ordinary_numbers_are_no_row_numbers(frame):
    frame["id"] = np.arange(30) ** 2
    frame["dose"] = np.arange(30)
    assert {"id", "dose"} <= set(prepare(frame, "y").X)


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%Y-%m-%d %H:%M", None])
def test_dates_are_refused_with_advice(frame, form):
    dates = pd.date_range("2020-01-01", periods=30)
    frame["when"] = dates if form is None else dates.strftime(form)
    with pytest.raises(ValueError, match="'when' holds dates. Turn it into numbers .* drop=\\['when'\\]"):
        prepare(frame, "y")
    assert "when" not in prepare(frame, "y", drop=["when"]).X


def test_missing_values_are_listed_and_refused(frame):
    frame.loc[[2, 5], "size"] = np.nan
    frame.loc[5, "colour"] = None
    with pytest.raises(ValueError, match=r"2 of 30 rows have missing values, in size \(2\), colour \(1\)"):
        prepare(frame, "y")
    table = prepare(frame, "y", missing="drop")
    assert len(table.y) == 28
    assert 5 not in table.rows.index
    assert "2 of 30 rows" in table.notes[0].detail


def test_missing_values_are_filled_in_when_asked(frame):
    frame.loc[2, "size"] = np.nan
    frame.loc[5, "colour"] = None
    frame.loc[7, "y"] = np.nan
    table = prepare(frame, "y", missing="mean")
    assert len(table.y) == 29
    assert table.X.loc[2, "size"] == pytest.approx(frame["size"].drop(7).mean())
    assert table.X.loc[5, "colour=(missing)"] == 1.0
    assert len(table.notes) == 3


@pytest.mark.parametrize(
    ("target", "task", "expected", "classes"),
    [
        ("sex", "auto", "classification", ("f", "m")),
        ("colour", "auto", "classification", ("blue", "green", "red")),
        ("code", "auto", "regression", ()),
        ("code", "classification", "classification", ("0", "1", "2", "3")),
        ("code", "counts", "counts", ()),
        ("y", "regression", "regression", ()),
    ],
)
def test_the_task(frame, target, task, expected, classes):
    table = prepare(frame, target, task=task)
    assert (table.task, table.classes) == (expected, classes)
    if classes:
        assert_array_equal(np.array(classes)[table.y.astype(int)], frame[target].astype(str))


def test_two_numbers_are_classes(frame):
    frame["y"] = np.where(frame["y"] > 0, 7.0, 3.5)
    table = prepare(frame, "y")
    assert (table.task, table.classes) == ("classification", ("3.5", "7"))


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"target": "z"}, "There is no column 'z'; there are size, colour"),
        ({}, {"target": 5}, "There is no column 5"),
        ({}, {"drop": ["z"]}, "`drop` names the column 'z'"),
        ({}, {"categorical": ["z"]}, "`categorical` names the column 'z'"),
        ({}, {"drop": ["y"]}, "target 'y' is among the columns to drop"),
        ({}, {"drop": ["size", "colour", "sex", "code"]}, "No column is left"),
        ({}, {"task": "ranking"}, "`task` must be"),
        ({}, {"missing": "guess"}, "`missing` must be"),
        ({}, {"target": "colour", "task": "regression"}, "holds text such as .* regression needs numbers"),
        ({}, {"task": "counts"}, "values that are no counts"),
        ({}, {"task": "classification"}, "30 different values, more than 20 classes. Is it a number"),
        ({"y": 1.0}, {}, "is 1 in every row"),
        ({"y": np.nan}, {}, "missing values|holds nothing"),
    ],
)
def test_what_cannot_be_used_is_refused(frame, change, options, message):
    frame = frame.assign(**change)
    call = {"target": "y", **options}
    with pytest.raises(ValueError, match=message):
        prepare(frame, **call)


def test_too_many_levels_are_refused():
    frame = pd.DataFrame({"city": [f"c{i % 40}" for i in range(100)], "y": np.arange(100.0) % 7})
    with pytest.raises(ValueError, match="'city' has 40 levels, more than 30. Join rare ones"):
        prepare(frame, "y")


def test_rows_can_be_taken(frame):
    table = prepare(frame, "y").take(np.array([3, 1]))
    assert list(table.rows.index) == list(table.X.index) == [3, 1]
    assert_array_equal(table.y, frame["y"][[3, 1]])
