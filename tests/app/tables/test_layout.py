"""A table is found among titles, units, totals and remarks."""

import pandas as pd
import pytest

from gpsift.app.tables.read import read_file, read_table
from gpsift.app.tables.steps import TableError

BODY = "oak,1.5,3\nfir,2.5,1\nelm,0.5,7\nash,4.5,2\n"


def read(tmp_path, text, **options):
    path = tmp_path / "table.csv"
    path.write_text(text)
    return read_table(path, **options)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("kind,size,out\n" + BODY, []),
        ("Trees of 2024\nkind,size,out\n" + BODY, ["lines-above"]),
        ("Trees of 2024,,\n,,\nkind,size,out\n" + BODY, ["lines-above"]),
        ("# by hand, in May\nkind,size,out\n" + BODY, ["lines-above"]),
        ("kind,size,out\n,m,t\n" + BODY, ["line-of-units"]),
        ("kind,size,out\n" + BODY + "Total,9.0,13\n", ["lines-below"]),
        ("kind,size,out\n" + BODY + ",,\nSource: the forest,,\n", ["lines-below"]),
        ("Trees\nkind,size,out\n-,m,t\n" + BODY + "Sum,9,13\n", ["lines-above", "line-of-units", "lines-below"]),
    ],
)
def test_what_is_around_a_table_is_left_out(tmp_path, text, kinds):
    table = read(tmp_path, text)
    assert [step.kind for step in table.steps] == kinds
    expected = pd.DataFrame({"kind": ["oak", "fir", "elm", "ash"], "size": [1.5, 2.5, 0.5, 4.5], "out": [3.0, 1, 7, 2]})
    pd.testing.assert_frame_equal(table.frame.reset_index(drop=True), expected, check_dtype=False)
    if kinds:
        with pytest.raises(ValueError, match="strict|fields but the header"):
            read_file(tmp_path / "table.csv")


def test_commas_of_a_title_and_of_thousands_divide_no_cells(tmp_path):
    rows = "".join(f"B-{i};{1000 + 37 * i:,};{i % 7}.5\n" for i in range(20))
    table = read(tmp_path, "Batches, plant 2\nReport, in full\nbatch;force;yield\n" + rows)
    assert table.frame.columns.tolist() == ["batch", "force", "yield"]
    assert [step.kind for step in table.steps] == ["lines-above"]
    assert len(table.frame) == 20


def test_lists_in_cells_divide_no_cells(tmp_path):
    rows = "".join(f"{i},red;green;blue\n" for i in range(20))
    assert read(tmp_path, "number,colours\n" + rows).frame.columns.tolist() == ["number", "colours"]


def test_a_category_that_has_totals_is_no_line_of_totals(tmp_path):
    assert read(tmp_path, "kind,size\ntotal,1\npart,2\ntotal,3\npart,4\ntotal,5\n").steps == ()


def test_a_first_row_of_texts_is_a_row_where_its_texts_come_again(tmp_path):
    assert len(read(tmp_path, "a,b,c\nx,NA,y\nx,1,z\nu,2,y\nu,3,z\n").frame) == 4


def test_a_first_line_of_numbers_is_a_row(tmp_path):
    table = read(tmp_path, "5.1 3.5\n4.9 3.0\n4.7 3.2\n")
    assert table.frame.columns.tolist() == ["column 1", "column 2"]
    assert len(table.frame) == 3
    assert [step.kind for step in table.steps] == ["header-missing"]


@pytest.mark.parametrize("header", ["0,1,2", "1990,1991,1992"])
def test_names_that_count_are_a_header(tmp_path, header):
    table = read(tmp_path, f"{header}\n5.1,3.5,1\n4.9,3.0,2\n")
    assert table.frame.columns.tolist() == header.split(",")
    assert table.steps == ()


def test_columns_of_one_name_are_told_apart(tmp_path):
    table = read(tmp_path, "dose,dose,dose (2),dose\n1,2,3,4\n5,6,7,8\n")
    assert table.frame.columns.tolist() == ["dose", "dose (3)", "dose (2)", "dose (4)"]
    assert table.frame.iloc[0].tolist() == [1, 2, 3, 4]
    assert table.steps[0].count == 2


def test_short_lines_get_empty_cells_and_long_ones_lose_theirs(tmp_path):
    table = read(tmp_path, "a,b\n" + "1,2\n" * 8 + "3\n4,5,6\n")
    assert table.frame["b"].isna().tolist() == [False] * 8 + [True, False]
    assert (table.steps[0].kind, table.steps[0].count) == ("lines-uneven", 2)


def test_many_uneven_lines_are_refused(tmp_path):
    with pytest.raises(TableError, match="Record 3 of .* has 1 fields but the header has 2"):
        read(tmp_path, "a,b\n" + "1,2\n3\n" * 2 + "1,2\n" * 2)
