from __future__ import annotations

import numpy as np
import pytest

from gpsift.paper.datasets.paper_sets import (
    arff_cells,
    headed_cells,
    headed_table,
    spaced_cells,
    split_cells,
    statlib_cells,
)

EXPECTED = np.array([["1", "2.50", "x"], ["4", "5", "y"]])


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        (split_cells, "1,2.50,x\n4,5,y\n"),
        (split_cells, "1, 2.50 ,x\r\n\r\n4,5,y"),
        (headed_cells, "a,b,c\n1,2.50,x\n4,5,y\n\n"),
        (spaced_cells, "  1   2.50 x\n4 5\ty\n"),
        (arff_cells, "% 9,9,9\n@relation r\n@attribute a real\n@data\n1,2.50,'x'\n% no row\n4, 5 ,\"y\"\n%\n"),
        (arff_cells, "@RELATION r\r\n@DATA\r\n1,2.50,x\r\n4,5,y\r\n"),
    ],
)
def test_cells_are_what_is_written(cells, text):
    np.testing.assert_array_equal(cells(text), EXPECTED)


def test_statlib_rows_go_over_two_lines():
    rows = np.arange(28).reshape(2, 14).astype(str)
    lines = [" ".join(part) for row in rows for part in (row[:11], row[11:])]
    np.testing.assert_array_equal(statlib_cells("1 2 3\n" * 22 + "\n".join(lines) + "\n"), rows)


def test_headed_table_has_names_and_numbers():
    names, values = headed_table("a,b\r\n0.1,2\r\n1e3,-4.50\r\n")
    assert names == ("a", "b")
    np.testing.assert_array_equal(values, [[0.1, 2.0], [1000.0, -4.5]])


@pytest.mark.parametrize(
    ("cells", "text", "message"),
    [
        (split_cells, "1,2\n3\n", "row 2 has 1 cells, the first has 2"),
        (split_cells, "\n\n", "no rows"),
        (headed_cells, "a,b\n", "no rows"),
        (arff_cells, "<html>\n<body>\n", "no line @data"),
        (statlib_cells, "words\n" * 22 + "1 2 3\n", "3 numbers below"),
        (statlib_cells, "words\n", "0 numbers below"),
    ],
)
def test_formats_refuse_other_text(cells, text, message):
    with pytest.raises(ValueError, match=message):
        cells(text)
