"""Findings: every kind has words, and all who show them take the same."""

import io
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import gpsift as gs
from gpsift.app.cli.json_answer import as_json
from gpsift.app.cli.options import ADVICE
from gpsift.app.cli.terminal_answer import show_ranking
from gpsift.app.findings import WORDS, Finding, FindingKind
from gpsift.app.findings import group_by_title as told
from gpsift.app.html import page_text

DRAWN = Finding(FindingKind.ROWS_DRAWN, {"used": 40, "n_rows": 60, "seed": 3})
EMPTY = Finding(FindingKind.COLUMN_EMPTY, {"columns": ("{odd}",)})
FEW = Finding(FindingKind.FEW_ROWS, {"n_rows": 8, "n_columns": 4})


def test_every_kind_has_words():
    assert set(WORDS) == set(FindingKind)


def test_findings_of_one_title_share_it():
    assert [title for title, _ in told([EMPTY, FEW, DRAWN])] == ["What was done with the table", FEW.title]
    assert [title for title, _ in told([FEW, EMPTY, DRAWN])] == [FEW.title, "What was done with the table"]
    assert told([EMPTY, DRAWN])[0][1] == f"{EMPTY.detail} {DRAWN.detail}"
    assert "'{odd}'" in EMPTY.detail


@pytest.mark.parametrize(("last", "end"), [("Temp.", ": Temp."), ("size", ": size."), ("a ...", ": a ...")])
def test_a_sentence_has_one_full_stop(last, end):
    finding = Finding(FindingKind.NAMES_TOLD_APART, {"columns": (last,), "count": 1})
    assert finding.detail.endswith(end)


def test_advice_is_added_where_it_belongs():
    ((_, text),) = told([EMPTY, DRAWN], ADVICE)
    assert text.endswith(f"{DRAWN.detail} --rows takes more, and longer.")
    assert "--" not in "".join(finding.detail for finding in (DRAWN, EMPTY, FEW))


@pytest.fixture(scope="module")
def answer():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 2)), columns=["bend", "spike"])
    frame["y"] = np.sin(frame["bend"]) + 0.1 * rng.normal(size=40)
    found = gs.analyse(frame, "y", select=False, hyper=gs.MAP(starts=1))
    pointwise = np.full_like(found.leading.pointwise, 0.1)
    pointwise[7, 1] = 2.0
    leading = replace(found.leading, pointwise=pointwise, scores=pointwise.mean(axis=0), terms={})
    return replace(found, rankings={"KL": leading}, cautions=(FEW, DRAWN))


def test_terminal_machines_and_page_show_the_same_findings(answer):
    (odd,) = answer.odd_columns
    assert (odd.kind, odd.data["column"]) == (FindingKind.MATTERS_FOR_FEW_ROWS, "spike")
    console = Console(width=400, record=True, file=io.StringIO())
    show_ranking(answer, console)
    terminal, page, record = console.export_text(), page_text(answer), json.loads(as_json(answer))
    for finding in (odd, FEW, DRAWN):
        assert finding.detail in terminal
        assert finding.detail in page
    assert [each["kind"] for each in record["odd_columns"]] == ["matters-for-few-rows"]
    assert record["odd_columns"][0]["data"]["ratio"] == pytest.approx(odd.data["ratio"])
    assert [each["kind"] for each in record["cautions"]] == ["few-rows", "rows-drawn"]
    assert record["cautions"][1]["data"]["n_rows"] == 60
    assert "--rows" in terminal
    assert "--rows" not in page


@pytest.mark.filterwarnings("ignore::gpsift.GPSiftWarning")
def test_a_fit_that_leaves_no_noise_is_a_caution():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(100, 10))).add_prefix("x")
    frame["y"] = rng.normal(size=100)
    free, held = (gs.analyse(frame, "y", select=False, hyper=hyper).cautions for hyper in (gs.ML2(), gs.MAP()))
    (found,) = [each for each in free if each.kind is FindingKind.NO_NOISE_LEFT]
    assert found.data["noise"] < 0.05 < found.data["missed"]
    assert "noise was taken for signal" in found.detail
    assert FindingKind.NO_NOISE_LEFT not in [each.kind for each in held]


@pytest.mark.parametrize(
    ("kind", "count", "told"),
    [
        ("ROWS_WITHOUT_TARGET", 1, "1 of 60 rows has no target and was left out."),
        ("ROWS_WITHOUT_TARGET", 2, "2 of 60 rows have no target and were left out."),
        ("ROWS_LEFT_OUT", 1, "1 of 60 rows with missing values was left out."),
        ("FILLED_WITH_MEAN", 1, "1 missing value of 'a' was replaced by its mean."),
        ("FILLED_WITH_LEVEL", 1, "1 missing value of 'a' became a level of its own."),
        ("FILLED_WITH_LEVEL", 3, "3 missing values of 'a' became a level of their own."),
    ],
)
def test_one_of_a_thing_is_told_as_one(kind, count, told):
    assert Finding(FindingKind[kind], {"count": count, "n_rows": 60, "column": "a"}).detail == told
