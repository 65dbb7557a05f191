"""The page of a test: what it says, and that it is safe."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import page_cases
import pytest
from test_page import Outline

from gpsift.app.analysis.run import ColumnTest
from gpsift.app.findings import Finding, FindingKind
from gpsift.app.html.answer_pages import discoveries_text, discovery_sentences, write_discoveries
from gpsift.selection.conditional_test.discover import Discoveries


def record(names=("a", "b", "c", "d"), p=(1e-8, 0.001, 0.4, 1.0), copies=()):
    """A record as `discover` makes it, by hand."""
    n = len(names)
    p = np.array(p)
    q = np.minimum(np.minimum.accumulate((n * np.sort(p) / np.arange(1, n + 1))[::-1])[::-1], 1.0)[np.argsort(p)]
    found = Discoveries(
        names=tuple(names),
        z=np.array([5.6, 3.1, 0.25, -np.inf])[:n],
        p=p,
        q=q,
        rate=0.1,
        conditionals=("normal scores", "Gaussian process", "normal scores", "normal scores")[:n],
        copies=copies,
        details={"folds": 5, "repeats": 1, "versions": {"gpsift": "0.1.0"}},
        explained=np.array([0.2, 0.52, 0.004, 1.0])[:n],
        calibration=np.array([1.0, 0.97, 1.01, 1.0])[:n],
    )
    note = Finding(FindingKind.ROWS_DRAWN, {"used": 60, "n_rows": 80, "seed": 2})
    return ColumnTest("toy.csv", "yield", "regression", 60, found, (note,), 2, "gpsift discover toy.csv -t yield", 3.0)


@pytest.fixture(scope="module")
def page():
    return Outline(discoveries_text(record()))


def test_what_is_not_shown_to_matter_may_need_more_rows(page):
    assert "How many, gpsift power says" in page.words("repeat")


def test_the_answer_is_a_sentence_with_the_rate(page):
    said = page.words("answer")
    assert "2 of 4 columns matter for yield, with at most 10 % of them expected to be false: a and b." in said
    assert "The others are not shown to matter: an effect that is too small for 60 rows may be there." in said


@pytest.mark.parametrize("p", [(1e-8, 0.001, 0.4, 1.0), (0.3, 0.4, 0.5, 1.0)])
def test_it_is_never_said_that_a_column_does_not_matter(p):
    text = discoveries_text(record(p=p))
    body = text[text.index("<body>") : text.index("<script")]
    assert "do not matter" not in body
    assert "does not matter" not in body


def test_nothing_found_and_everything_found_are_said():
    (none, rest) = discovery_sentences(record(p=(0.3, 0.4, 0.5, 1.0)))
    assert none.striptags() == "None of 4 columns is shown to matter for yield, at a rate of 10 %."
    assert rest.startswith("An effect that is too small for ")
    (one,) = discovery_sentences(record(names=("a",), p=(0.01,)))
    assert one.striptags() == "1 of 1 column matters for yield, with at most 10 % of them expected to be false: a."


def test_columns_that_cannot_be_told_apart_are_named():
    *_, last = discovery_sentences(record(copies=(("c", "d"),)))
    assert last.striptags() == "c and d carry the same values and cannot be told apart."


def test_the_table_has_a_line_for_each_column(page):
    said = page.words("tests")
    for line in (
        "1 a yes 1.0e−8 4.0e−8 5.60 normal scores 20 % 1.00",
        "2 b yes 0.0010 0.0020 3.10 Gaussian process 52 % 0.97",
        "3 c not shown 0.40 0.53 0.25 normal scores <1 % 1.01",
        "4 d not shown 1.0 1.0 – normal scores 100 % 1.00",
    ):
        assert line in said


def test_the_picture_has_the_p_values_and_the_limits(page):
    figure = page.data["figures"]["tests"]
    assert figure["target_id"] == "figure-tests"
    assert any(each.get("id") == "figure-tests" for each in page.all("div"))
    assert np.allclose(record().found.limits, [0.025, 0.05, 0.075, 0.1])
    under_any = record().found.under_any_dependence()
    assert np.allclose(under_any.limits, record().found.limits / (1 + 1 / 2 + 1 / 3 + 1 / 4))


def test_what_was_tested_is_on_the_page(page):
    sheet = page.words("data")
    assert "10 % expected share of false ones among the columns named (Benjamini and Hochberg)" in sheet
    assert "60 of 80 rows were used, drawn with seed 2" in sheet
    assert "gpsift discover toy.csv -t yield" in page.words("repeat")
    other = replace(record(), found=record().found.under_any_dependence())
    assert "Benjamini and Yekutieli" in Outline(discoveries_text(other)).words("data")


def test_names_stay_names(tmp_path):
    names = page_cases.HOSTILE[:4]
    path = write_discoveries(record(names=names), tmp_path / "page.html")
    page = Outline(path.read_text(encoding="utf-8"))
    assert len(page.scripts) == 4  # data, Bokeh, our two
    assert not page.all("img")
    assert names[0] in page.words("tests")


def test_many_columns_are_folded():
    n = 40
    found = record().found
    many = replace(
        found,
        names=tuple(f"x{j}" for j in range(n)),
        z=np.zeros(n),
        p=np.full(n, 0.5),
        q=np.ones(n),
        conditionals=("normal scores",) * n,
        explained=None,
        calibration=None,
    )
    page = Outline(discoveries_text(replace(record(), found=many)))
    assert "The 20 surest of 40 columns" in page.words("tests")
    assert "Show all 40 columns" in page.words("tests")
