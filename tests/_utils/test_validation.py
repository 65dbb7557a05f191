from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest
from optional import need
from scipy import sparse

import gpsift as gs
from gpsift._utils.validation import default_names, read_features, read_target

EXPECTED = np.array([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]])
DATES = pd.date_range("2020-01-01", periods=3)


def small_data():
    rng = np.random.default_rng(0)
    X = rng.normal(3.0, 2.0, size=(12, 2))
    return X, X[:, 0] + 0.1 * rng.normal(size=12)


def missing(dtype):
    """A nullable pandas column whose second entry is missing."""
    return pd.array([1, None, 0], dtype=dtype)


# -- what is accepted --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "X",
    [
        EXPECTED.tolist(),
        tuple(map(tuple, EXPECTED)),
        EXPECTED.astype(np.float32),
        EXPECTED.astype(np.int8),
        EXPECTED.astype(np.uint64),
        EXPECTED.astype(object),
        np.asfortranarray(EXPECTED),
        np.repeat(EXPECTED, 2, axis=0)[::2],
        EXPECTED.astype(">f8"),
    ],
    ids=["lists", "tuples", "float32", "int8", "uint64", "objects", "fortran", "strided", "big-endian"],
)
def test_read_features_takes_every_kind_of_array(X):
    values, names = read_features(X)
    np.testing.assert_array_equal(values, EXPECTED)
    assert values.dtype == np.float64
    assert names is None


@pytest.mark.parametrize("dtype", ["int64", "float32", "Int64", "Float64", "Int8", "object"])
def test_read_features_takes_every_numeric_pandas_dtype(dtype):
    values, names = read_features(pd.DataFrame(EXPECTED.astype(int), columns=["a", "b"]).astype(dtype))
    np.testing.assert_array_equal(values, EXPECTED)
    assert names == ("a", "b")


@pytest.mark.parametrize("dtype", ["bool", "boolean"])
def test_read_features_takes_booleans_as_zero_and_one(dtype):
    values, _ = read_features(pd.DataFrame({"a": [True, False, True], "b": [1.5, 2.5, 3.5]}).astype({"a": dtype}))
    np.testing.assert_array_equal(values, [[1.0, 1.5], [0.0, 2.5], [1.0, 3.5]])


def test_read_features_takes_integer_column_labels():
    _, names = read_features(pd.DataFrame(EXPECTED, columns=[7, 3]))
    assert names == ("7", "3")


def test_read_features_takes_polars_frames():
    polars = need("polars")
    values, names = read_features(polars.DataFrame({"a": [1, 2, 3], "b": [4.0, 5.0, 6.0]}))
    np.testing.assert_array_equal(values, EXPECTED)
    assert names == ("a", "b")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_read_features_takes_torch_tensors(dtype):
    torch = need("torch")
    values, names = read_features(torch.tensor(EXPECTED.tolist()).to(getattr(torch, dtype)))
    np.testing.assert_array_equal(values, EXPECTED)
    assert values.dtype == np.float64
    assert names is None


@pytest.mark.parametrize(
    "y",
    [
        [1, 2, 3],
        (1.0, 2.0, 3.0),
        np.array([[1.0], [2.0], [3.0]]),
        pd.Series([1, 2, 3], index=[9, 4, 2]),
        pd.Series([1, 2, 3], dtype="Int64"),
        pd.Series([1.0, 2.0, 3.0], dtype="Float64"),
        pd.DataFrame({"y": [1, 2, 3]}),
    ],
    ids=["list", "tuple", "column", "series", "Int64", "Float64", "frame"],
)
def test_read_target_takes_every_kind_of_column(y):
    np.testing.assert_array_equal(read_target(y, 3), [1.0, 2.0, 3.0])


def test_read_target_takes_polars_and_torch():
    polars, torch = need("polars"), need("torch")
    np.testing.assert_array_equal(read_target(polars.Series([1, 2, 3]), 3), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(read_target(torch.tensor([1.0, 2.0, 3.0]), 3), [1.0, 2.0, 3.0])


def test_default_names_count_from_one():
    assert default_names(3) == ("x1", "x2", "x3")


# -- the input stays the user's ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_input", [np.array, pd.DataFrame, np.ndarray.tolist], ids=["array", "frame", "lists"])
def test_fit_and_rank_never_modify_their_input(as_input):
    original_X, original_y = small_data()
    X, y = as_input(original_X), original_y.copy()
    gp = gs.GP(hyper=gs.Fixed(lengthscale=1.0, noise_var=0.5)).fit(X, y)
    gp.predict(X)
    for measure in (gs.KL(), gs.KL(delta=1e-4), gs.VAR()):
        gs.rank(gp, X, measure=measure, points=5)
    np.testing.assert_array_equal(np.asarray(X), original_X)
    np.testing.assert_array_equal(y, original_y)


def test_changing_the_input_after_the_fit_changes_nothing():
    X, y = small_data()
    gp = gs.GP(hyper=gs.Fixed(lengthscale=1.0, noise_var=0.5)).fit(X, y)
    before = gp.predict([[0.3, -0.2]]).mean, gp.quality.lpd, gs.rank(gp).scores
    X[:], y[:] = 0.0, 0.0
    after = gp.predict([[0.3, -0.2]]).mean, gp.quality.lpd, gs.rank(gp).scores
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old, new)


def test_read_features_takes_read_only_arrays():
    X = EXPECTED.copy()
    X.flags.writeable = False
    values, _ = read_features(X)
    values[0, 0] = 9.0
    assert X[0, 0] == 1.0


# -- missing and infinite values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_read_features_rejects_not_finite_arrays_naming_column_and_rows(bad):
    X = np.ones((5, 3))
    X[[0, 3], 1] = bad
    with pytest.raises(ValueError, match=r"`X` has missing or infinite values in 1 column\(s\): x2 \(2 rows\)"):
        read_features(X)


def test_read_features_rejects_not_finite_frames_naming_every_column():
    X = pd.DataFrame({"age": [1.0, np.nan, np.nan], "bmi": [1.0, 2.0, 3.0], "bp": [np.inf, 1.0, 2.0]})
    with pytest.raises(ValueError, match=r"2 column\(s\): age \(2 rows\), bp \(1 rows\)"):
        read_features(X)


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean"])
def test_read_features_rejects_missing_values_of_nullable_dtypes(dtype):
    with pytest.raises(ValueError, match=r"missing or infinite values in 1 column\(s\): b \(1 rows\)"):
        read_features(pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": missing(dtype)}))


@pytest.mark.parametrize("marker", [None, np.nan, pd.NA], ids=["None", "nan", "NA"])
def test_read_features_rejects_missing_values_among_objects(marker):
    with pytest.raises(ValueError, match=r"a \(1 rows\)"):
        read_features(pd.DataFrame({"a": pd.Series([1, marker, 3], dtype=object)}))


@pytest.mark.parametrize("values", [[1, None, 3], [1.0, None, 3.0], [True, None, False]], ids=["int", "float", "bool"])
def test_read_features_rejects_polars_nulls(values):
    polars = need("polars")
    with pytest.raises(ValueError, match=r"1 column\(s\): b \(1 rows\)"):
        read_features(polars.DataFrame({"a": [1, 2, 3], "b": values}))


def test_read_features_rejects_masked_arrays():
    # np.asarray would bring the numbers under the mask back to life.
    X = np.ma.masked_array(EXPECTED, mask=[[False, True], [False, False], [False, True]])
    with pytest.raises(ValueError, match=r"x2 \(2 rows\)"):
        read_features(X)


def test_read_target_rejects_masked_arrays():
    with pytest.raises(ValueError, match="1 missing or infinite"):
        read_target(np.ma.masked_array([1.0, 2.0, 3.0], mask=[False, True, False]), 3)


@pytest.mark.parametrize(
    "y",
    [
        [1.0, np.nan, 2.0],
        [1.0, -np.inf, 2.0],
        [1, None, 2],
        pd.Series(missing("Int64")),
        pd.Series(missing("Float64")),
        pd.Series(missing("boolean")),
        pd.DataFrame({"y": missing("Int64")}),
    ],
    ids=["nan", "inf", "None", "Int64", "Float64", "boolean", "frame"],
)
def test_read_target_rejects_missing_values_naming_the_row(y):
    with pytest.raises(ValueError, match=r"`y` has 1 missing or infinite value\(s\), the first in row 1"):
        read_target(y, 3)


def test_read_target_rejects_polars_nulls():
    polars = need("polars")
    with pytest.raises(ValueError, match="1 missing or infinite"):
        read_target(polars.Series([1, None, 3]), 3)


# -- what is not a number ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([["1", "2"]]), "`X` holds text"),
        ([["1", "2"]], "`X` holds text"),
        (np.array([[b"1", b"2"]]), "`X` holds text"),
        (np.array([[1, "2"]], dtype=object), "not real numbers, such as '2'"),
        (np.array([[1, [2]]], dtype=object), "not numbers"),
        (np.array([[1, 2j]], dtype=object), "not real numbers, such as 2j"),
        (np.array([[1, datetime.date(2020, 1, 1)]], dtype=object), "not numbers"),
        (np.array([[1, np.datetime64("2020-01-01")]], dtype=object), "not"),
        (np.array([[1, np.timedelta64(1, "D")]], dtype=object), "not"),
        (np.array([[1, 2j]]), "complex numbers; only real"),
        (np.full((2, 2), np.datetime64("2020-01-01")), "`X` holds dates"),
        (np.full((2, 2), np.timedelta64(1, "D")), "`X` holds time differences"),
        ({"a": [1, 2]}, "not numbers"),
        ([[1, 2], [3]], "Rows of unequal length"),
    ],
    ids=[
        "text", "lists of text", "bytes", "text among objects", "list among objects", "complex among objects",
        "date among objects", "numpy date among objects", "numpy difference among objects", "complex", "dates",
        "time differences", "dict", "ragged",
    ],
)  # fmt: skip
def test_read_features_rejects_what_is_not_numbers(X, message):
    with pytest.raises(TypeError, match=message):
        read_features(X)


@pytest.mark.parametrize(
    "column",
    [
        ["u", "v", "u"],
        ["1", "2", "3"],
        pd.array(["u", "v", None], dtype="string"),
        pd.Categorical(["u", "v", "u"]),
        pd.Categorical([1, 2, 1]),
        DATES,
        DATES.tz_localize("UTC"),
        DATES - DATES[0],
        pd.period_range("2020-01", periods=3, freq="M"),
        [1j, 2.0, 3.0],
    ],
    ids=[
        "text", "digits", "string", "category", "category of numbers", "dates", "dates with zone", "differences",
        "periods", "complex",
    ],
)  # fmt: skip
def test_read_features_rejects_frame_columns_without_numbers_by_name(column):
    X = pd.DataFrame({"colour": column, "size": [1.0, 2.0, 3.0], "kind": ["p", "q", "r"]})
    with pytest.raises(TypeError, match=r"do not hold numbers: colour, kind\. .*encode"):
        read_features(X)


@pytest.mark.parametrize("kind", ["String", "Categorical", "Date"])
def test_read_features_rejects_polars_columns_without_numbers_by_name(kind):
    polars = need("polars")
    values = [datetime.date(2020, 1, d) for d in (1, 2, 3)] if kind == "Date" else ["u", "v", None]
    X = polars.DataFrame(
        {"colour": values, "size": [1.0, 2.0, 3.0]}, schema_overrides={"colour": getattr(polars, kind)}
    )
    with pytest.raises(TypeError, match="do not hold numbers: colour"):
        read_features(X)


def test_read_features_rejects_lazy_frames_with_advice():
    polars = need("polars")
    with pytest.raises(TypeError, match="collect"):
        read_features(polars.LazyFrame({"a": [1, 2, 3]}))


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix])
def test_read_features_rejects_sparse_matrices(make):
    with pytest.raises(TypeError, match=r"`X` is a sparse matrix.*`X\.toarray\(\)`"):
        read_features(make(np.eye(3)))


def test_read_target_rejects_sparse_matrices():
    with pytest.raises(TypeError, match="`y` is a sparse matrix"):
        read_target(sparse.csr_matrix(np.ones((3, 1))), 3)


def test_read_features_rejects_tensors_with_gradients():
    torch = need("torch")
    with pytest.raises(TypeError, match="`X` cannot be read.*Detach it first"):
        read_features(torch.eye(2, requires_grad=True))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a", "b", "c"], "`y` holds text"),
        (["1", "2", "3"], "`y` holds text"),
        ([1j, 2, 3], "`y` holds complex"),
        (DATES, "`y` holds dates"),
        (pd.Series(pd.Categorical(["a", "b", "a"])), "`y` holds values that are not"),
        (pd.Series(pd.Categorical([1, 2, 1])), "`y` holds values that are not"),
        (pd.DataFrame({"y": pd.Categorical([1, 2, 1])}), "`y` has column.s. that do not hold numbers: y"),
    ],
    ids=["text", "digits", "complex", "dates", "category", "category of numbers", "frame of a category"],
)
def test_read_target_rejects_what_is_not_numbers(y, message):
    with pytest.raises(TypeError, match=message):
        read_target(y, 3)


# -- shapes ------------------------------------------------------------------------------------------------------------


def test_read_features_rejects_one_dimension_with_advice():
    with pytest.raises(ValueError, match=r"must be 2-d .*got shape \(3,\).*`X_new\.reshape\(-1, 1\)`"):
        read_features(np.arange(3.0), name="X_new")


@pytest.mark.parametrize("X", [np.zeros((2, 2, 2)), 3.0, None], ids=["3-d", "number", "None"])
def test_read_features_rejects_other_dimensions(X):
    with pytest.raises((ValueError, TypeError), match="`X` must be 2-d"):
        read_features(X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.empty((0, 3)), "`X` is empty: 0 rows and 3 features"),
        (np.empty((3, 0)), "`X` is empty: 3 rows and 0 features"),
        ([[]], "`X` is empty: 1 rows and 0 features"),
        (pd.DataFrame({"a": []}), "`X` is empty: 0 rows and 1 features"),
        (pd.DataFrame(index=[0, 1]), "`X` is empty: 2 rows and 0 features"),
    ],
    ids=["no rows", "no columns", "empty list", "frame without rows", "frame without columns"],
)
def test_read_features_rejects_empty_data(X, message):
    with pytest.raises(ValueError, match=message):
        read_features(X)


def test_read_features_rejects_duplicate_column_names():
    with pytest.raises(ValueError, match="several columns called a, b"):
        read_features(pd.DataFrame(np.ones((2, 5)), columns=["b", "a", "b", "c", "a"]))


def test_read_features_rejects_labels_that_read_the_same():
    with pytest.raises(ValueError, match="several columns called 1"):
        read_features(pd.DataFrame(np.ones((2, 2)), columns=[1, "1"]))


@pytest.mark.parametrize("length", [2, 4])
def test_read_target_rejects_wrong_length(length):
    with pytest.raises(ValueError, match=f"`y` has {length} entries but `X` has 3 rows"):
        read_target(np.ones(length), 3)


@pytest.mark.parametrize(
    "y", [np.ones((3, 2)), np.ones((1, 3)), 1.0, None], ids=["two columns", "row", "number", "None"]
)
def test_read_target_rejects_wrong_dimensions(y):
    with pytest.raises((ValueError, TypeError), match="`y` must be 1-d"):
        read_target(y, 3)


def test_fit_reports_the_users_column_names():
    X = pd.DataFrame({"age": [1.0, np.nan, 3.0], "bmi": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match=r"age \(1 rows\)"):
        gs.GP().fit(X, [1.0, 2.0, 3.0])
