"""The recipes on made-up raw files, against pandas; and on the real ones, where GPSIFT_DATA names their folder."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from loopback import raw_files, real_folder

from gpsift.paper.datasets import paper_sets
from gpsift.paper.datasets.load import RECIPES
from gpsift.paper.datasets.sources import DataMismatch

# Table 1 of the paper: p, n in total, n to train on.
TABLE_1 = {
    "concrete": (7, 103, 80),
    "housing": (13, 506, 300),
    "automobile": (38, 193, 150),
    "crime": (102, 1992, 400),
    "pima": (8, 392, 300),
}
# How many columns of each coding of Automobile are linearly independent; all have 38.
RANKS = {"default": 38, "A": 34, "B": 37, "C": 33}


@pytest.fixture
def real():
    return real_folder()


def table_of(name, content, coding="default", file=None):
    recipe = RECIPES[name]
    return recipe.read(file or recipe.files[0].name, content, coding, check=False)


def exact_frame(file, **choices):
    """A file read by pandas, with decimals left to Python, which rounds them correctly."""
    return pd.read_csv(file, dtype=str, **choices)


def frame_of(table):
    return pd.DataFrame(table.values, columns=list(table.names))


# Made-up files


def test_concrete_takes_the_ingredients_and_the_strength():
    content = raw_files("concrete")["slump_test.data"]
    table = table_of("concrete", content)
    raw = exact_frame(io.BytesIO(content)).astype(float)
    np.testing.assert_array_equal(table.values[:, :-1], raw.iloc[:, 1:8])
    np.testing.assert_array_equal(table.values[:, -1], raw["Compressive Strength (28-day)(Mpa)"])
    assert table.names[-3:] == ("coarse_aggregate", "fine_aggregate", "compressive_strength_28d")


def test_every_form_of_housing_gives_the_same_table():
    files = raw_files("housing")
    tables = [table_of("housing", content, file=name) for name, content in files.items()]
    raw = exact_frame(io.BytesIO(files["housing.data"]), sep=r"\s+", header=None).astype(float)
    assert len(tables) == 3
    for table in tables:
        assert " ".join(table.names) == "CRIM ZN INDUS CHAS NOX RM AGE DIS RAD TAX PTRATIO B LSTAT MEDV"
        np.testing.assert_array_equal(table.values, raw)


def test_every_form_of_pima_gives_the_rows_without_impossible_zeros():
    files = raw_files("pima")
    raw = exact_frame(io.BytesIO(files["pima-indians-diabetes.data"]), header=None).astype(float)
    expected = raw[(raw[[1, 2, 3, 4, 5]] != 0).all(axis=1)]
    assert (expected[0] == 0).any()  # no pregnancy is possible
    for name, content in files.items():
        np.testing.assert_array_equal(table_of("pima", content, file=name).values, expected)


def test_crime_takes_complete_rows_with_a_positive_rate():
    content = raw_files("crime")["CommViolPredUnnormalizedData.txt"]
    table = table_of("crime", content)
    raw = exact_frame(io.BytesIO(content), header=None, na_values="?")
    raw = raw.set_axis(
        [*"abcde", *paper_sets.CRIME_CANDIDATES, *range(16), "ViolentCrimesPerPop", "nonViolPerPop"], axis=1
    )
    expected = raw[list(table.names)].dropna().astype(float)
    expected = expected[expected["ViolentCrimesPerPop"] > 0]
    assert len(raw) - len(expected) == 3
    assert len(table.names) == 103
    assert not set(table.names) & paper_sets.POLICE_SURVEY
    np.testing.assert_array_equal(table.values, expected)


def test_police_survey_is_part_of_the_candidates():
    assert len(paper_sets.CRIME_CANDIDATES) == len(set(paper_sets.CRIME_CANDIDATES)) == 124
    assert len(paper_sets.POLICE_SURVEY) == 22
    assert set(paper_sets.CRIME_CANDIDATES) >= paper_sets.POLICE_SURVEY
    assert "LemasPctOfficDrugUn" not in paper_sets.POLICE_SURVEY  # known for every place, in spite of its name


@pytest.mark.parametrize("coding", list(RANKS))
def test_automobile_codings_match_pandas(coding):
    check_coding_by_pandas(raw_files("automobile")["imports-85.data"], coding)


def check_coding_by_pandas(content, coding):
    """The codings again by `get_dummies`, as frames with the columns in any order."""
    raw = pd.read_csv(io.BytesIO(content), header=None, names=paper_sets.AUTOMOBILE_COLUMNS, na_values="?")
    raw = raw.drop(columns=["normalized_losses", "make"])
    words = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "eight": 8, "twelve": 12}
    complete = raw.dropna().index
    if coding == "A":
        raw["num_of_doors"] = raw["num_of_doors"].map(words)
        coded = pd.get_dummies(raw.assign(num_of_cylinders=raw["num_of_cylinders"].map(words)), drop_first=True)
    elif coding == "C":
        raw = raw.loc[complete].drop(columns="symboling")
        raw["num_of_cylinders"] = raw["num_of_cylinders"].map(words)
        many = ["body_style", "drive_wheels", "engine_type", "fuel_system"]
        coded = pd.get_dummies(pd.get_dummies(raw, columns=many), drop_first=True)
    else:
        left_out = {"default": "fuel_system_idi", "B": "symboling"}[coding]
        coded = pd.get_dummies(raw.loc[complete], drop_first=True).drop(columns=left_out)
    table = frame_of(table_of("automobile", content, coding))
    assert table.columns[-1] == "price"
    assert len(table) == len(complete)
    expected = coded.loc[complete, list(table.columns)].astype(float).reset_index(drop=True)
    assert set(coded.columns) == set(table.columns)
    # pandas is a unit in the last place off where it does not read decimals by the round trip.
    pd.testing.assert_frame_equal(table, expected, rtol=1e-15)


def test_levels_of_incomplete_rows_count_in_coding_a_only():
    content = raw_files("automobile")["imports-85.data"]
    with_rotor = [coding for coding in RANKS if "engine_type_rotor" in table_of("automobile", content, coding).names]
    assert with_rotor == ["A"]
    table = frame_of(table_of("automobile", content, "A"))
    assert not table["engine_type_rotor"].any()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("concrete", b"header\n1,2,3\n", "cannot be read as Concrete"),
        ("concrete", b"header\n" + b"a," * 10 + b"b\n", "could not convert string to float"),
        ("housing", b"1 2 3\n", "3 columns, not 14"),
        ("automobile", b"1,2,3\n", "3 columns, not 26"),
        ("automobile", b"\xff\xfe", "cannot be read as Automobile"),
        ("crime", b"1,2,3\n", "3 columns, not 147"),
        ("crime", b"", "no rows"),
        ("pima", b"1,2,3,4,5,6,7,8,maybe\n", "unknown class 'maybe'"),
    ],
)
def test_recipes_refuse_other_files(name, content, message):
    with pytest.raises(DataMismatch, match=message):
        table_of(name, content)


def test_automobile_refuses_words_that_are_no_numbers():
    content = raw_files("automobile")["imports-85.data"].replace(b"twelve", b"dozen")
    with pytest.raises(DataMismatch, match="not number words: dozen"):
        table_of("automobile", content, "A")


@pytest.mark.parametrize("name", list(TABLE_1))
def test_every_set_says_whom_to_cite_and_what_to_beware_of(name):
    recipe = RECIPES[name]
    assert recipe.n_train == TABLE_1[name][2]
    assert len(recipe.citation) > 40
    assert len(recipe.caveat) > 40
    assert recipe.is_classification == (name == "pima")
    assert recipe.log_target == (name == "crime")
    assert {source.file for source in recipe.sources} <= set(recipe.files)
    if name in ("housing", "crime", "pima"):
        assert "test of software" in recipe.caveat


# The real files


@pytest.mark.parametrize("name", list(TABLE_1))
def test_raw_file_gives_the_prepared_table_exactly(name, real):
    recipe = RECIPES[name]
    prepared = exact_frame(real / recipe.prepared).astype(float)
    file = recipe.files[0]
    table = recipe.read(file.name, (real / "raw" / file.name).read_bytes(), "default", check=True)
    pd.testing.assert_frame_equal(frame_of(table), prepared, check_exact=True)
    p, n, _ = TABLE_1[name]
    assert table.values.shape == (n, p + 1)


@pytest.mark.parametrize("coding", list(RANKS))
def test_real_codings_have_38_inputs_and_the_known_rank(coding, real):
    content = (real / "raw" / "imports-85.data").read_bytes()
    inputs = RECIPES["automobile"].read("imports-85.data", content, coding, check=True).values[:, :-1]
    assert inputs.shape == (193, 38)
    scale = inputs.std(axis=0)
    centred = (inputs - inputs.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    assert np.linalg.matrix_rank(centred) == RANKS[coding]
    check_coding_by_pandas(content, coding)


def test_real_coding_a_has_three_constant_columns(real):
    table = frame_of(table_of("automobile", (real / "raw" / "imports-85.data").read_bytes(), "A"))
    constant = [name for name in table.columns if table[name].nunique() == 1]
    assert constant == ["engine_type_dohcv", "engine_type_rotor", "fuel_system_4bbl"]


def test_real_coding_b_follows_from_the_default(real):
    content = (real / "raw" / "imports-85.data").read_bytes()
    default, b = (frame_of(table_of("automobile", content, coding)) for coding in ("default", "B"))
    expected = default.drop(columns="symboling").assign(fuel_system_idi=1.0 - default["fuel_type_gas"])
    pd.testing.assert_frame_equal(b, expected[list(b.columns)], check_exact=True)


def test_real_pima_has_the_known_classes(real):
    table = table_of("pima", (real / "raw" / "pima-indians-diabetes.data").read_bytes())
    assert np.bincount(table.values[:, -1].astype(int)).tolist() == [262, 130]


def test_a_changed_digit_of_a_real_file_is_noticed(real):
    content = (real / "raw" / "housing.data").read_bytes()
    with pytest.raises(DataMismatch, match="sha256 .* expected"):
        RECIPES["housing"].read("housing.data", content.replace(b"24.00", b"24.01"), "default", check=True)
