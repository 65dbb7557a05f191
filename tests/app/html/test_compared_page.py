"""The page of a comparison."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import page_cases
import pytest
from test_page import Outline

import gpsift as gs
from gpsift.app.html.answer_pages import comparison_text


@pytest.fixture(scope="module")
def comparison():
    first, second = page_cases.hostile(), page_cases.hostile()
    return gs.compare(
        first, second.rankings["KL"].of_columns([1, 0, 2], second.leading.names[:3]), labels=("a <b>", "z")
    )


@pytest.fixture(scope="module")
def page(comparison):
    return Outline(comparison_text(comparison, command="gpsift compare a z"))


def test_it_is_whole_and_names_stay_text(page):
    assert page.open == []
    assert not page.all("b")
    assert "a <b>" in page.words("columns")
    assert page.words("answer").startswith("2 of 3 columns that both have changed place")
    assert "gpsift compare a z" in page.words("repeat")


def test_table_and_picture_hold_both_scores(page, comparison):
    cells = [float(attrs["data-value"]) for attrs in page.all("td") if attrs.get("class") == "number"]
    lines = np.array(cells).reshape(-1, 4)
    order = comparison.order
    np.testing.assert_allclose(lines[:, :2], comparison.scores[:, order].T)
    np.testing.assert_array_equal(lines[:, 3], comparison.places[order])
    assert set(page.data["figures"]) == {"pairs"}


def test_a_change_is_clear_where_the_intervals_do_not_overlap():
    before = page_cases.intervals().leading
    more = np.where(np.arange(len(before.names)) == before.order[0], 4.0, 1.0)  # of one column, far more
    after = replace(before, scores=more * before.scores, draws=more * before.draws)
    answer = gs.compare(before, after, labels=("before", "after"))
    page = Outline(comparison_text(answer))
    said = [
        json.loads(attrs["data-kept"])[""]
        for attrs in page.all("td")
        if attrs.get("data-value") in ("0", "1") and "text" in attrs["class"]
    ]
    assert said == answer.is_clear[answer.order].tolist()
    assert sum(said) == 1
    words = page.words("columns")
    assert words.count(" yes") == 1
    assert words.count(" within") == len(before.names) - 1
