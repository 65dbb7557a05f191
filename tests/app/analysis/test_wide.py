"""Tables with many columns: what an analysis with columns that are switched on one by one says, and in which words."""

import io
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import gpsift as gs
from gpsift.app.analysis.cautions import LEAST_SLOPE, correlated_pairs, find_close_columns
from gpsift.app.analysis.rows import row_details
from gpsift.app.cli.json_answer import as_json
from gpsift.app.cli.terminal_answer import show_ranking
from gpsift.app.findings import Finding, FindingKind, group_by_title
from gpsift.app.html import page_text

QUIET = gs.Work(progress=False)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 340)), columns=[f"gene{j}" for j in range(340)])
    X["twin"] = X["gene0"] + 0.1 * rng.normal(size=60)
    return X.assign(y=np.sin(2 * X["gene0"]) + X["gene1"] + 0.1 * rng.normal(size=60))


@pytest.fixture(scope="module")
def answer(frame):
    return gs.analyse(frame, "y", hyper=gs.Sift(), work=QUIET)


def printed(analysis):
    out = io.StringIO()
    show_ranking(analysis, Console(file=out, width=80))
    return " ".join(out.getvalue().split())


def test_a_wide_table_is_searched(answer):
    n_told = answer.leading.n_shown
    assert set(answer.selected) == {"gene0", "gene1"}
    assert answer.path.sizes[-1] == n_told < 12
    assert answer.unsearched is None
    assert set(answer.rankings) == {"KL", "VAR", "ARD"}
    assert all(len(ranking.names) == 341 for ranking in answer.rankings.values())
    assert all(len(ranking.names) == n_told for ranking in answer.shown_rankings.values())
    assert row_details(answer).names == ("gene0", "gene1") or row_details(answer).names == ("gene1", "gene0")


def test_the_terminal_sums_up_what_is_not_used(answer):
    text = printed(answer)
    close = len(answer.leading.close)
    assert f"and {341 - 2 - close} others, not used" in text
    assert text.count("not used") == close + 1
    assert "Columns were switched on one by one" in text
    assert "Next would be" in text
    steps = answer.switched_on
    assert [step.columns for step in steps if step.selected] == [("gene1",), ("gene0",)] or len(steps) >= 2
    assert all(step.description in text for step in steps if step.selected)


def test_the_page_sums_up_what_is_not_used(answer):
    page = page_text(answer)
    assert f"and {341 - answer.leading.n_shown} others, not used" in page
    assert page.count('<span class="figure">not used</span>') == len(answer.leading.close)
    assert "came close" in page
    assert "Switched on" in page
    assert len(page_text(replace(answer, path=None))) < 2_000_000


def test_json_has_every_column_and_whether_it_is_used(answer):
    record = json.loads(as_json(answer))
    columns = record["rankings"]["KL"]["columns"]
    assert len(columns) == 341
    assert {each["feature"] for each in columns if each["used"]} == {"gene0", "gene1"}
    assert [step["stays"] for step in record["switched_on"]].count(True) == 2
    close = [slope for slope in answer.leading.close.values() if slope >= LEAST_SLOPE]
    assert sum(each["kind"] == "came-close" for each in record["odd_columns"]) == len(close)


def test_a_column_that_noise_would_put_next_did_not_come_close(answer):
    leading = answer.leading
    (first, second, *_) = [leading.names.index(name) for name in leading.close]
    slopes = np.full(len(leading.names), 0.5)
    slopes[first], slopes[second] = 3.0, 1.9
    found = find_close_columns(replace(leading, slopes=slopes))
    assert [each.data for each in found] == [{"column": leading.names[first], "slope": 3.0}]


def test_only_pairs_with_a_column_that_is_used_go_together(answer):
    (found,) = [each for each in answer.cautions if each.kind is FindingKind.COLUMNS_GO_TOGETHER]
    assert [pair[:2] for pair in found.data["pairs"]] == [("gene0", "twin")]


@pytest.mark.filterwarnings("ignore::gpsift.GPSiftWarning")
def test_all_length_scales_at_once_get_a_caution(frame):
    few = gs.analyse(frame, "y", hyper=gs.MAP(starts=1, max_iterations=3), select=False, work=QUIET)
    assert FindingKind.MANY_COLUMNS in [each.kind for each in few.cautions]
    assert "Sift()" in dict(group_by_title(few.cautions))["Many columns at once"]


@pytest.mark.filterwarnings("ignore::gpsift.GPSiftWarning")
def test_noise_ends_with_no_column(frame):
    y = np.random.default_rng(3).normal(size=60)
    answer = gs.analyse(frame.assign(y=y), "y", hyper=gs.Sift(), work=QUIET)
    assert answer.selected == ()
    text = printed(answer)
    assert "so none is used" in text
    assert "Enough: no column: no feature is shown to help" in text
    assert "No column is shown to help" in page_text(answer)


def test_correlated_pairs_match_the_matrix_of_all(monkeypatch):
    monkeypatch.setattr("gpsift.app.analysis.cautions.BLOCK", 2)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)) @ rng.normal(size=(3, 9)) + 0.3 * rng.normal(size=(50, 9))
    X[:, 4] = 1.0
    with np.errstate(invalid="ignore"):
        r = np.corrcoef(X, rowvar=False)
    for columns in (range(9), [8], [4, 5]):
        wanted = [
            (i, j, r[i, j])
            for i in range(9)
            for j in range(i + 1, 9)
            if abs(r[i, j]) > 0.5 and (i in columns or j in columns)
        ]
        found = correlated_pairs(X, list(columns), 0.5)
        assert [pair[:2] for pair in found] == [pair[:2] for pair in wanted]
        np.testing.assert_allclose([pair[2] for pair in found], [pair[2] for pair in wanted])


def test_many_findings_of_one_kind_are_told_by_the_first_and_their_number():
    empty = [Finding(FindingKind.COLUMN_EMPTY, {"columns": (f"c{j}",)}) for j in range(500)]
    ((_, text),) = group_by_title(empty)
    assert text.count("nothing is in there") == 3
    assert text.endswith("The same holds for 497 other columns.")
    ((_, text),) = group_by_title(empty[:6])
    assert text.count("nothing is in there") == 6


def test_a_category_is_switched_on_as_one():
    rng = np.random.default_rng(1)
    levels = np.array(["red", "green", "blue", "black"])[rng.integers(4, size=90)]
    X = pd.DataFrame(rng.normal(size=(90, 5)), columns=list("abcde")).assign(colour=levels)
    y = X["b"] + X["colour"].map({"red": -1.5, "green": 0.0, "blue": 0.5, "black": 1.5}) + 0.1 * rng.normal(size=90)
    found = gs.analyse(X.assign(y=y), "y", hyper=gs.Sift(), work=QUIET, select=False)
    assert {column for step in found.switched_on if step.selected for column in step.columns} == {"b", "colour"}
    assert set(found.model.report.sift.active) == {"b", "colour"}
    assert found.switched_on[0].penalty == pytest.approx(np.log(6) + 1)
    indicators = [j for j, name in enumerate(found.model.inputs.names) if name.startswith("colour=")]
    assert set(indicators) <= set(found.model.used)
