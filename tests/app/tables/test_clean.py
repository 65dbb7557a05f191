"""The plan of a table: which steps it needs, and the table with them done."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import gpsift as gs
from gpsift.app.tables.clean import clean, prepare
from gpsift.app.tables.steps import RawTable, TableError

N = 100


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "size": rng.normal(size=N),
            "weight": rng.normal(size=N),
            "colour": rng.choice(["red", "green", "blue"], N),
            "y": rng.normal(size=N),
        }
    )


def plan_of(frame, target="y", **options):
    return clean(RawTable(frame), target, **options)


def kinds(plan):
    return [step.kind for step in plan.steps]


def test_a_clean_table_needs_nothing(frame):
    plan = plan_of(frame)
    assert plan.steps == plan.table.notes == ()
    as_it_is = prepare(frame, "y")
    pd.testing.assert_frame_equal(plan.table.X, as_it_is.X)
    assert_array_equal(plan.table.y, as_it_is.y)
    assert plan.table.groups == as_it_is.groups


def test_the_steps_lead_from_the_table_to_what_is_fitted(frame):
    frame["size"] = frame["size"].map("{:.3f} m".format)
    frame.loc[:20, "weight"] = np.nan
    frame.loc[50, "y"] = np.nan
    frame["id"] = np.arange(N)
    frame["day"] = pd.date_range("2020-01-01", periods=N, freq="9D").strftime("%d.%m.%Y")
    plan = plan_of(frame)
    done = frame
    for step in plan.steps:
        done = step.change(done)
    assert list(done.drop(columns="y")) == plan.table.columns
    assert_array_equal(done["weight"], plan.table.X["weight"])
    assert_array_equal(done["size"], plan.table.X["size"])
    assert [step.finding for step in plan.steps] == list(plan.table.notes)


def test_rows_without_a_target_are_left_out(frame):
    frame.loc[[3, 4], "y"] = np.nan
    plan = plan_of(frame)
    assert kinds(plan) == ["rows-without-target"]
    assert plan.steps[0].count == 2
    assert_array_equal(plan.table.y, frame["y"].dropna())


def test_few_rows_with_holes_are_left_out(frame):
    frame.loc[[1, 2], "size"] = np.nan
    frame.loc[[2, 3], "colour"] = None
    plan = plan_of(frame)
    assert [(step.kind, step.count) for step in plan.steps] == [("rows-left-out", 3)]
    assert len(plan.table.y) == N - 3


def test_many_holes_are_filled_with_the_median_and_marked(frame):
    frame.loc[:29, ["size", "weight"]] = np.nan
    frame.loc[40:59, "colour"] = None
    plan = plan_of(frame)
    assert kinds(plan) == ["filled-with-median", "missing-marked", "filled-with-level"]
    X = plan.table.X
    assert_allclose(X["size"][:30], frame["size"].median())
    assert_array_equal(X["size missing"], np.arange(N) < 30)
    assert "weight missing" not in X  # the same rows
    assert_array_equal(X["colour=(missing)"], (np.arange(N) >= 40) & (np.arange(N) < 60))
    assert len(plan.table.y) == N


def test_holes_in_many_rows_but_few_of_each_column_are_filled_without_a_mark(frame):
    frame.loc[:3, "size"] = np.nan
    frame.loc[10:13, "weight"] = np.nan
    plan = plan_of(frame)
    assert kinds(plan) == ["filled-with-median"]
    assert plan.steps[0].columns == ("size", "weight")


@pytest.mark.parametrize(("missing", "rows"), [("drop", 70), ("mean", 100)])
def test_the_user_may_say_what_to_do_with_holes(frame, missing, rows):
    frame.loc[:29, "size"] = np.nan
    prepared = plan_of(frame, missing=missing).table
    assert len(prepared.y) == rows
    if missing == "mean":
        assert_allclose(prepared.X["size"][:30], frame["size"].mean())
    with pytest.raises(TableError, match="30 of 100 rows have missing values, in size"):
        plan_of(frame, missing="refuse")


def test_infinite_numbers_are_missing(frame):
    frame.loc[0, "size"] = np.inf
    frame.loc[1, "weight"] = -np.inf
    plan = plan_of(frame)
    assert [(step.kind, step.count) for step in plan.steps] == [("infinite-emptied", 2), ("rows-left-out", 2)]


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (np.full(N, np.nan), "column-empty"),
        (np.where(np.arange(N) < 95, np.nan, 1.0), "column-nearly-empty"),
        (np.full(N, 3.0), "column-constant"),
        ([f"P{i}" for i in range(N)], "column-names-rows"),
        ([f"P{i % 80}" for i in range(N)], "column-names-rows"),
        ([f"what {i} people write here" for i in range(N)], "column-free-text"),
        ([f"level {i % 45}" for i in range(N)], "column-many-levels"),
    ],
)
def test_columns_that_say_nothing_are_left_out(frame, column, kind):
    plan = plan_of(frame.assign(extra=column))
    assert [(step.kind, step.columns) for step in plan.steps] == [(kind, ("extra",))]
    assert "extra" not in plan.table.columns


@pytest.mark.parametrize("name", ["id", "Patient ID", "customer_id", "CustomerID", "rownames", "Unnamed: 0", "obs"])
def test_numbers_of_rows_are_left_out(frame, name):
    shuffled = np.random.default_rng(1).permutation(N) + 1000
    assert name not in plan_of(frame.assign(**{name: shuffled})).table.columns


@pytest.mark.parametrize("name", ["dose", "paid", "casino", "idle"])
def test_other_whole_numbers_stay(frame, name):
    assert name in plan_of(frame.assign(**{name: np.random.default_rng(1).permutation(N)})).table.columns


def test_columns_that_repeat_others_are_left_out(frame):
    letters = frame["colour"].map({"red": "r", "green": "g", "blue": "b"})
    plan = plan_of(frame.assign(again=frame["size"], letter=letters))
    assert [(step.kind, step.columns) for step in plan.steps] == [("column-repeated", ("again", "letter"))]
    assert plan.steps[0].detail["same"] == {"again": "size", "letter": "colour"}


def test_rare_levels_are_joined(frame):
    town = ["A"] * 40 + ["B"] * 28 + [f"village {i}" for i in range(32)]
    plan = plan_of(frame.assign(town=town))
    assert kinds(plan) == ["levels-joined"]
    assert plan.table.groups["town"] == ["town=(other)", "town=A", "town=B"]
    assert_array_equal(plan.table.X["town=(other)"], np.arange(N) >= 68)
    assert "32 of 'town'" in plan.steps[0].finding.detail


def test_columns_that_give_the_target_away_are_pointed_out_and_stay(frame):
    frame["y in inches"] = frame["y"] / 2.54 + 1e-4 * np.random.default_rng(6).normal(size=N)
    frame["log of y"] = np.exp(3 * frame["y"])
    plan = plan_of(frame)
    assert plan.steps == ()
    (note,) = plan.table.notes
    assert (note.kind, note.data["columns"]) == ("may-leak", ("y in inches", "log of y"))
    assert {"y in inches", "log of y"} <= set(plan.table.columns)


def test_classes_may_be_given_away_too(frame):
    frame["passed"] = np.where(frame["y"] > 0, "yes", "no")
    frame["grade"] = np.where(frame["y"] > 0, np.where(frame["size"] > 0, "A", "B"), "F")
    frame["stage"] = np.where(frame["y"] > 0, 1, 2) + 2 * (frame["size"] > 0)  # odd or even
    (note,) = plan_of(frame, "passed").table.notes
    assert note.data["columns"] == ("y", "stage", "grade")


def test_a_strong_column_is_no_leak(frame):
    frame["y"] = frame["size"] + 0.1 * np.random.default_rng(5).normal(size=N)
    assert plan_of(frame).table.notes == ()


def test_codes_stay_a_category(frame):
    frame["code"] = [str(i % 4) for i in range(N)]
    assert "code" not in plan_of(frame).table.groups
    plan = plan_of(frame, categorical=["code"])
    assert plan.table.groups["code"] == [f"code={i}" for i in range(4)]
    assert plan.steps == ()


def test_types_of_pandas_are_understood(frame):
    frame = frame.assign(
        whole=pd.array([None, *range(N - 1)], dtype="Int64"),
        flag=frame["size"] > 0,
        level=pd.Categorical(frame["colour"]),
        span=pd.to_timedelta(np.arange(N) % 7, unit="h"),
        day=pd.date_range("2024-01-01", periods=N, tz="Europe/Berlin"),
        month=pd.period_range("2020-01", periods=N, freq="M"),
    ).drop(columns="colour")
    prepared = plan_of(frame).table
    assert set(prepared.categories) == {"flag", "level"}
    assert prepared.dates == ("day", "month")
    assert len(prepared.y) == N - 1
    assert_allclose(prepared.X["span"], (np.arange(1, N) % 7) / 24)


def test_repeated_names_of_rows_and_columns_do_no_harm(frame):
    frame.index = [0] * N
    frame.loc[:, "size"] = frame["size"].where(np.arange(N) > 1)
    frame.columns = ["size", "size", "colour", "y"]
    plan = plan_of(frame)
    assert kinds(plan) == ["names-told-apart", "rows-left-out"]
    assert plan.table.columns == ["size", "size (2)", "colour"]
    assert len(plan.table.y) == N - 2


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"y": 1.0}, {}, "is 1 in every row"),
        ({"y": np.nan}, {}, "target 'y' holds nothing"),
        ({"y": ["oops", *["1"] * (N - 1)]}, {}, "is 1 in every row"),
        ({"size": 1.0, "weight": 2.0, "colour": "red"}, {}, "No column is left to explain 'y' by. 3 columns"),
        ({}, {"target": "z"}, "There is no column 'z'"),
        ({}, {"task": "guess"}, "`task` must be"),
        ({}, {"missing": "guess"}, "`missing` must be auto"),
        ({}, {"drop": ["y"]}, "is among the columns to drop"),
    ],
)
def test_what_nobody_can_use_is_refused(frame, change, options, message):
    with pytest.raises(ValueError, match=message):
        plan_of(frame.assign(**change), **{"target": "y", **options})


def test_strict_refuses_whatever_would_be_done(frame):
    strict = gs.Reading(strict=True)
    assert strict.read(frame, "y").notes == ()
    frame["same"] = 1.0
    with pytest.raises(TableError, match="`strict` refuses that: The column 'same' was left out"):
        strict.read(frame, "y")
    frame.loc[3, "size"] = np.nan
    with pytest.raises(TableError, match=r"1 of 100 rows have missing values, in size \(1\)"):
        strict.read(frame, "y")
