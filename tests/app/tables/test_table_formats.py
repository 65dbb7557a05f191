"""Files of every form and packing: all of them hold the same table."""

import bz2
import gzip
import io
import json
import lzma
import sqlite3
import sys
import zipfile

import pandas as pd
import pytest

from gpsift.app.tables.read import read_file, read_table

TABLE = pd.DataFrame(
    {"size": [1.5, -2.25, 1000.5, 3.0], "colour": ["red", "blue", "red", "green"], "n": [1.0, 2, 3, 4]}
)
TEXT = TABLE.to_csv(index=False)


def zipped(content):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("inner.csv", content)
    return buffer.getvalue()


def same(frame):
    pd.testing.assert_frame_equal(frame.reset_index(drop=True), TABLE, check_dtype=False)


def written(folder, content, name="table.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    "pack", [gzip.compress, bz2.compress, lzma.compress, zipped], ids=["gzip", "bzip2", "xz", "zip"]
)
@pytest.mark.parametrize("name", ["table.csv", "table.csv.gz"])
def test_a_packed_file_is_known_by_its_content(tmp_path, pack, name):
    same(read_file(written(tmp_path, pack(TEXT.encode()), name)))


def test_a_file_that_is_not_packed_may_be_called_so(tmp_path):
    same(read_file(written(tmp_path, TEXT, "table.csv.gz")))


BLANKS = "\n".join(["size colour   n", *(f"  {a} {b}\t{c}" for a, b, c in TABLE.itertuples(index=False))])
FIXED = "\n".join(["size      colour  n", *(f"{a:<10}{b:<8}{c}" for a, b, c in TABLE.itertuples(index=False))])
RECORDS = TABLE.to_dict(orient="records")
NESTED = json.dumps({"meta": {"of": 2024}, "rows": RECORDS})
TEXTS = {
    "records": TABLE.to_json(orient="records"),
    "columns": TABLE.to_json(orient="columns"),
    "lists": json.dumps(TABLE.to_dict(orient="list")),
    "split": TABLE.to_json(orient="split"),
    "lines": TABLE.to_json(orient="records", lines=True),
    "inside an object": NESTED,
    "lists in a list": json.dumps([list(TABLE), *TABLE.to_numpy().tolist()]),
    "blanks": BLANKS,
    "fixed width": FIXED,
    "quoted names": TEXT.replace("size,colour,n", '\'size\',"""colour""",`n`'),
}


@pytest.mark.parametrize("form", TEXTS)
def test_forms_of_text(tmp_path, form):
    same(read_file(written(tmp_path, TEXTS[form])))


def test_cells_of_fixed_width_may_hold_blanks_or_nothing(tmp_path):
    text = "size      colour       n\n1.5       light red    1\n-2.25                  2\n3.0       dark blue    3\n"
    frame = read_file(written(tmp_path, text))
    assert frame["colour"].tolist()[::2] == ["light red", "dark blue"]
    assert frame["colour"].isna().tolist() == [False, True, False]
    assert frame["n"].tolist() == [1, 2, 3]


def test_objects_in_cells_become_columns(tmp_path):
    frame = read_file(written(tmp_path, '[{"a": 1, "at": {"x": 2, "y": [3]}}, {"a": 4, "at": {"x": 5, "y": []}}]'))
    assert frame.columns.tolist() == ["a", "at.x", "at.y"]
    assert frame["at.y"].tolist() == ["[3]", "[]"]


def test_names_of_rows_need_no_name_in_the_header(tmp_path):
    path = written(tmp_path, '"mpg" "cyl"\n"Mazda RX4" 21 6\n"Valiant" 18.1 6\n"Duster 360" 14.3 8\n')
    table = read_table(path)
    assert table.frame.columns.tolist() == ["column 1", "mpg", "cyl"]
    assert table.frame["column 1"].tolist() == ["Mazda RX4", "Valiant", "Duster 360"]
    assert [step.kind for step in table.steps] == ["header-short"]


def test_feather(tmp_path):
    path = tmp_path / "table.data"
    try:
        TABLE.to_feather(path)
    except ImportError as missing:
        pytest.skip(str(missing))
    same(read_file(path))


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "tables.db"
    with sqlite3.connect(path) as connection:
        TABLE.to_sql("measured", connection, index=False)
        pd.DataFrame({"other": [1]}).to_sql('odd "name"', connection, index=False)
    connection.close()
    return path


def test_a_database_has_the_table_of_the_target(database):
    table = read_table(database, target="colour")
    same(table.frame)
    assert [step.finding.detail for step in table.steps] == ["Of 2 tables the one called 'measured' was read."]
    named = read_table(database, table='odd "name"')
    assert named.frame.columns.tolist() == ["other"]
    assert named.steps == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "height"}, "none has a column 'height'. Name one"),
        ({"table": "lost"}, "has no table 'lost'; there are measured"),
    ],
)
def test_a_database_without_the_table_is_refused(database, options, message):
    with pytest.raises(ValueError, match=message):
        read_table(database, **options)


def test_the_sheet_with_the_target_is_read(tmp_path):
    pytest.importorskip("openpyxl")
    path = tmp_path / "book.xlsx"
    with pd.ExcelWriter(path) as book:
        pd.DataFrame({"a remark": ["made in May", "by hand"], "b": ["", "x"]}).to_excel(
            book, sheet_name="notes", index=False
        )
        TABLE.to_excel(book, sheet_name="data", index=False, startrow=2)
    table = read_table(path, target="n")
    same(table.frame)
    assert table.steps[0].detail["name"] == "data"
    assert read_table(path, table="notes").frame.columns.tolist() == ["a remark", "b"]


def test_cells_from_a_spreadsheet_on_standard_input(monkeypatch):
    class Stdin:
        buffer = io.BytesIO(TABLE.to_csv(index=False, sep="\t").encode())

    monkeypatch.setattr(sys, "stdin", Stdin())
    same(read_table("-").frame)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(TEXT.encode())[:-20], "begins like a gzip file, but is damaged"),
        (zipped(TEXT)[:60], "begins like a zip file, but is damaged"),
        (b"\x28\xb5\x2f\xfdxx", "zstandard"),
        ('{"a": 1}', "is JSON, but no table"),
        ('[{"a": 1}, {"a": ', "could not be read as such"),
        (b"SQLite format 3\x00 and no more", "could not be read as SQLite"),
    ],
    ids=["gzip", "zip", "zstandard", "no table in JSON", "half of JSON", "SQLite"],
)
def test_damaged_files_are_refused(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        read_file(written(tmp_path, content))


def test_an_archive_of_several_files_is_refused(tmp_path):
    path = tmp_path / "two.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", TEXT)
        archive.writestr("b.csv", TEXT)
    with pytest.raises(ValueError, match=r"holds 2 files \(a.csv, b.csv\)"):
        read_file(path)
