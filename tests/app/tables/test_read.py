"""Tables from files as people have them."""

import io
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from gpsift.app.tables.layout import find_delimiter
from gpsift.app.tables.read import read_file

TABLE = pd.DataFrame({"size": [1.5, -2.25, 1000.5], "colour": ["red", "blue, light", "red"], "n": [1.0, 2.0, 3.0]})


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"], ids=["comma", "semicolon", "tab", "bar"])
@pytest.mark.parametrize("decimal", [".", ","])
def test_delimiter_and_decimal_sign_are_found(tmp_path, delimiter, decimal):
    if delimiter == decimal == ",":
        pytest.skip("no file has both")
    path = tmp_path / "table.csv"
    TABLE.to_csv(path, index=False, sep=delimiter, decimal=decimal)
    pd.testing.assert_frame_equal(read_file(path).reset_index(drop=True), TABLE, check_dtype=False)


def test_thousands_with_a_decimal_comma(tmp_path):
    path = tmp_path / "german.csv"
    path.write_text("preis;menge\n1.234,5;2\n12,25;3\n")
    assert_allclose(read_file(path)["preis"], [1234.5, 12.25])


@pytest.mark.parametrize(
    ("other", "first"), [("64.6", "2,405"), ("64,6", 2.405), ("1.234", 2.405), ("0.125", "2,405"), ("7", 2.405)]
)
def test_commas_before_three_digits_are_decimal_unless_others_have_points(tmp_path, other, first):
    path = tmp_path / "force.csv"
    path.write_text(f"force;other\n2,405;{other}\n987;{other}\n")
    column = read_file(path)["force"]
    assert column.iloc[0] == first


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252"])
def test_encodings(tmp_path, encoding):
    path = tmp_path / "umlauts.csv"
    path.write_bytes("Größe,Maß\n1,2\n3,4\n".encode(encoding))
    assert list(read_file(path).columns) == ["Größe", "Maß"]


def test_quotes_line_ends_and_empty_lines(tmp_path):
    path = tmp_path / "messy.csv"
    path.write_bytes(b'"a, b",c\r\n"1","x ""y"""\r\n\r\n2,z\r\n')
    frame = read_file(path)
    assert list(frame.columns) == ["a, b", "c"]
    assert list(frame["c"]) == ['x "y"', "z"]
    assert_allclose(frame["a, b"], [1, 2])


def test_missing_values_have_many_names(tmp_path):
    path = tmp_path / "holes.csv"
    path.write_text("a,b\n1,x\n?,NA\n,\nNaN,y\n5,null\n")
    frame = read_file(path)
    assert list(frame["a"].isna()) == [False, True, True, True, False]
    assert list(frame["b"].isna()) == [False, True, True, False, True]


def test_standard_input(monkeypatch):
    class Stdin:
        buffer = io.BytesIO(b"a;b\n1,5;2\n2,5;3\n")

    monkeypatch.setattr(sys, "stdin", Stdin())
    assert_allclose(read_file("-")["a"], [1.5, 2.5])


def test_parquet(tmp_path):
    path = tmp_path / "table.parquet"
    try:
        TABLE.to_parquet(path)
    except ImportError as missing:  # or one that needs another NumPy
        pytest.skip(str(missing))
    pd.testing.assert_frame_equal(read_file(path).reset_index(drop=True), TABLE, check_dtype=False)
    path.write_bytes(b"no parquet")
    with pytest.raises(ValueError, match="could not be read as Parquet"):
        read_file(path)


def test_excel(tmp_path):
    pytest.importorskip("openpyxl")
    path = tmp_path / "table.xlsx"
    TABLE.to_excel(path, index=False)
    frame = read_file(path)
    assert_allclose(frame["size"].astype(float), TABLE["size"])
    assert list(frame["colour"]) == list(TABLE["colour"])
    path.write_bytes(b"no excel")
    with pytest.raises(ValueError, match="could not be read as Excel"):
        read_file(path)


@pytest.mark.parametrize(("suffix", "library"), [(".parquet", "pyarrow"), (".xlsx", "openpyxl")])
def test_a_missing_reader_is_named(tmp_path, monkeypatch, suffix, library):
    path = tmp_path / f"table{suffix}"
    path.write_bytes(b"x")

    def missing(*_args, **_kwargs):
        raise ImportError

    monkeypatch.setattr(pd, "read_parquet", missing)
    monkeypatch.setattr(pd, "read_excel", missing)
    with pytest.raises(ImportError, match=f"pip install {library}"):
        read_file(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("  \n \n", "is empty"),
        ("a,b\n", "has a header but no rows"),
        ("a,b\n1,2\n1,2,3\n", "Record 3 of .* has 3 fields but the header has 2"),
        ("a,a\n1,2\n", "several columns called 'a'"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, content, message):
    path = tmp_path / "bad.csv"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        read_file(path)


def test_other_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        read_file(tmp_path / "nothing.csv")
    binary = tmp_path / "picture.csv"
    binary.write_bytes(b"\x89PNG\x00\x01")
    with pytest.raises(ValueError, match="is no text"):
        read_file(binary)
    old = tmp_path / "old.xls"
    old.write_bytes(b"x")
    with pytest.raises(ValueError, match="save it as .xlsx"):
        read_file(old)


def test_columns_without_a_name_are_numbered(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(",b\n1,2\n2,3\n")
    assert list(read_file(path).columns) == ["column 1", "b"]


def test_one_column_needs_no_delimiter():
    assert find_delimiter("a\n1\n2\n") == ","


def test_commas_in_texts_do_not_mislead():
    text = "name;note\n" + "\n".join(f"x{i};a, b, c" for i in range(20))
    assert find_delimiter(text) == ";"


def test_numbers_keep_all_digits(tmp_path):
    values = np.random.default_rng(0).normal(size=50) * 10.0 ** np.arange(-25, 25)
    path = tmp_path / "digits.csv"
    path.write_text("a,b\n" + "\n".join(f"{value!r},1" for value in values.tolist()))
    assert list(read_file(path)["a"]) == values.tolist()


def test_rows_are_counted_from_one(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n2,3\n")
    assert list(read_file(path).index) == [1, 2]
