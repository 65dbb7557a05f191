"""The first screen: which columns matter and how sure that is, how they act, what to do; and the same in a notebook."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import numpy as np
import page_cases
import pytest
from test_discovered_page import record
from test_page import Outline

import gpsift as gs
from gpsift.app.analysis import costs
from gpsift.app.analysis.analysis import Analysis
from gpsift.app.analysis.parts import add_test
from gpsift.app.findings import Finding, FindingKind
from gpsift.app.html import page_text
from gpsift.app.html.render import NOT_WORDS
from gpsift.app.html.summary import EDGE, HEIGHT, MOST_COLUMNS, WIDTH, advice, first_screen, thumbnails
from gpsift.app.html.text import TERMS


def having_test(analysis: Analysis, **changes) -> Analysis:
    """Add a test made by hand, which finds the first two of four columns."""
    found = replace(record().found, names=analysis.leading.names[:4], **changes)
    return replace(analysis, tested=found)


@pytest.fixture(scope="module")
def analysis():
    return having_test(page_cases.regression())


@pytest.fixture(scope="module")
def page(analysis):
    return Outline(page_text(analysis))


def words_of(sentences):
    return [re.sub("<[^>]*>", "", sentence) for sentence in sentences]


def test_three_questions_are_answered_before_anything_else():
    page = Outline(page_text(having_test(page_cases.acting())))
    words = page.words("answer")
    places = [words.index(each) for each in ("Which columns matter", "What to do", "How they act", "Data and model")]
    assert places == sorted(places)
    assert page.all("section")[0]["id"] == "answer"


def test_bars_are_the_scores_of_the_first_columns(analysis):
    ranking, shown = analysis.leading, first_screen(analysis)
    order = ranking.order[:MOST_COLUMNS]
    assert [column.name for column in shown.columns] == [ranking.names[j] for j in order]
    np.testing.assert_allclose(
        [column.width for column in shown.columns], 100 * ranking.scores[order] / ranking.scores.max(), atol=0.01
    )
    assert shown.n_others == len(ranking.names) - MOST_COLUMNS


def test_intervals_are_drawn_around_the_scores(analysis):
    ranking = analysis.leading
    draws = ranking.scores * np.linspace(0.5, 1.5, 101)[:, None]
    drawn = replace(analysis, rankings={"KL": replace(ranking, draws=draws)})
    first = first_screen(drawn).columns[0]
    low, high = replace(ranking, draws=draws).interval()[ranking.order[0]]
    assert first.span == pytest.approx((100 * low / high, 100 - 100 * low / high), abs=0.02)
    assert first.width == pytest.approx(100 * ranking.scores.max() / high, abs=0.02)


def test_a_limit_that_is_nothing_beside_the_largest_is_nothing(analysis):
    ranking = analysis.leading
    draws = ranking.scores * np.geomspace(1e-7, 1.5, 101)[:, None]
    columns = first_screen(replace(analysis, rankings={"KL": replace(ranking, draws=draws)})).columns
    assert all(re.fullmatch(r"0 to \d+(\.\d+)?", column.interval) for column in columns)


def test_no_line_of_a_page_ends_between_a_number_and_its_sign(analysis):
    text = re.sub(NOT_WORDS, "", page_text(analysis), flags=re.DOTALL)
    assert "\u00a0%" in text
    assert "\u00a0±\u00a0" in text
    assert re.findall(r"\d [%±]|± \d", text) == []


def test_intervals_that_may_be_off_are_said_to_be():
    ranking = page_cases.regression().leading
    drawn = replace(page_cases.regression(), rankings={"KL": replace(ranking, draws=np.tile(ranking.scores, (5, 1)))})
    unsure = Finding(FindingKind.INTERVALS_UNSURE, {"k_hat": 0.9})
    said = "they may be off"
    assert said in Outline(page_text(replace(drawn, cautions=(unsure,)))).words("answer")
    assert said not in Outline(page_text(drawn)).words("answer")


def test_how_sure_it_is_comes_from_the_best_that_is_known(analysis):
    name = analysis.tested.discoveries[0]
    sure = {column.name: (column.sure, column.is_sure) for column in first_screen(analysis).columns}
    assert sure[name] == ("shown to matter", True)
    without = replace(analysis, tested=None)
    assert re.fullmatch(r"among the first \d in >?\d+ % of samples", first_screen(without).columns[0].sure)
    ranking = analysis.leading
    drawn = replace(ranking, draws=np.tile(ranking.scores, (5, 1)))
    by_draws = first_screen(replace(without, stability=None, rankings={"KL": drawn})).columns[0]
    assert by_draws.sure.endswith("with 100 %")
    bare = first_screen(replace(without, stability=None))
    assert (bare.columns[0].sure, bare.columns[0].is_sure, bare.says_how_sure) == ("", False, False)
    assert first_screen(without).says_how_sure
    told = "How sure that is was not looked at"
    assert told in page_text(replace(without, stability=None))
    assert told not in page_text(without)


def test_the_rate_of_a_test_is_said(page, analysis):
    a, b = analysis.tested.discoveries
    assert f"{a} and {b} are shown to matter given all others; of such columns at most 10 %" in page.words("answer")
    none = Outline(page_text(having_test(page_cases.regression(), q=np.ones(4))))
    assert "none of 4 columns is shown to matter" in none.words("answer")


def test_thumbnails_have_one_scale_and_stay_inside():
    curves = page_cases.acting().column_effects.effects.curves
    pictures = thumbnails(curves)
    heights = []
    for curve, picture in zip(curves, pictures, strict=True):
        drawn = re.search(r'class="curve" d="([^"]*)"', picture)
        numbers = np.array(re.findall(r"-?\d+\.\d", drawn[1]), dtype=float)
        assert numbers.min() >= EDGE - 0.1
        assert numbers.max() <= WIDTH
        if not curve.labels:
            at = numbers.reshape(-1, 2)
            heights.append((at[:, 1].max() - at[:, 1].min()) / curve.span)
    assert np.ptp(heights) < 0.05 * max(heights)
    assert max(heights) * max(curve.span for curve in curves) <= HEIGHT


def test_advice_is_what_was_found():
    analysis = page_cases.acting()
    assert words_of(advice(analysis)) == ["Look at slope with switch: what one does depends on the other."]
    assert words_of(advice(replace(analysis, column_effects=None))) == []
    leak = Finding(FindingKind.MAY_LEAK, {"columns": ("price",), "target": "outcome"})
    assert words_of(advice(replace(analysis, cautions=(leak,))))[0].startswith("Check whether price is known before")
    data = {"columns": ("net", "tax"), "text": "net + tax", "share": 1.0, "target": "outcome"}
    made = Finding(FindingKind.TARGET_FORMULA, data)
    first, *_ = words_of(advice(replace(analysis, cautions=(made,))))
    target = analysis.target
    assert first == f"Check whether net and tax are known before {target}: {target} = net + tax, up to rounding."


def test_advice_names_the_columns_that_are_enough(analysis):
    chosen = analysis.selected
    first = words_of(advice(analysis))[0]
    assert first.startswith("Keep ")
    assert all(name in first for name in chosen)
    assert "predicts about as well as one of all 8" in first


def test_a_column_that_gives_the_target_away_is_kept_under_a_condition(analysis):
    leak = Finding(FindingKind.MAY_LEAK, {"columns": (analysis.selected[0],), "target": "outcome"})
    check, keep, *_ = words_of(advice(replace(analysis, cautions=(leak,))))
    assert check.startswith(f"Check whether {analysis.selected[0]} is known before")
    assert keep.startswith("Only then keep ")


def test_twins_are_told_once():
    pairs = Finding(FindingKind.COLUMNS_GO_TOGETHER, {"pairs": (("x1", "x2", 0.97),)})
    analysis = replace(page_cases.regression(), cautions=(pairs,))
    assert any("Do not choose between x1 and x2" in each for each in words_of(advice(analysis)))
    copied = words_of(advice(having_test(analysis, copies=(("x1", "x2"),))))
    assert any("Keep one of x1 and x2" in each for each in copied)
    assert not any("Do not choose" in each for each in copied)


def test_rows_to_collect_are_those_of_the_test():
    z = np.array([5.6, 3.1, 1.3, -np.inf])
    analysis = having_test(page_cases.regression(), z=z)
    (sentence,) = [each for each in words_of(advice(analysis)) if each.startswith("Collect")]
    needed = analysis.tested.rows_needed(90)[2] - 90
    (rows,) = re.findall(r"about ([\d,]+) more rows", sentence)
    assert float(rows.replace(",", "")) == pytest.approx(needed, rel=0.05)
    assert analysis.leading.names[2] in sentence
    assert "chance of 80 %" in sentence
    weak = having_test(page_cases.regression(), z=np.array([5.6, 3.1, 0.9, -np.inf]))
    assert not any(each.startswith("Collect") for each in words_of(advice(weak)))


def test_a_column_that_the_model_leaves_out_must_have_come_close():
    z = np.array([5.6, 3.1, 1.3, -np.inf])
    analysis = having_test(page_cases.regression(), z=z)
    ranking = analysis.leading
    used = np.arange(len(ranking.names)) != 2

    def told(slope):
        off = replace(ranking, used=used, slopes=np.where(used, -np.inf, slope))
        return any(each.startswith("Collect") for each in words_of(advice(replace(analysis, rankings={"KL": off}))))

    assert told(2.5)
    assert not told(1.5)


def test_words_of_the_field_are_behind_a_question_mark(page):
    buttons = [attrs for attrs in page.all("button") if attrs.get("class") == "ask"]
    assert len(buttons) >= 5
    ids = {attrs["id"] for attrs in page.all("span") if attrs.get("class") == "meaning" and "hidden" in attrs}
    assert {attrs["aria-controls"] for attrs in buttons} == ids
    assert all(attrs["aria-expanded"] == "false" and attrs["aria-label"].startswith("What is ") for attrs in buttons)
    assert TERMS["elpd"] in page.words("data")


def test_meanings_that_follow_one_another_are_sentences(page):
    words = page.words("relevance")
    assert all(TERMS[each] in words for each in ("KL", "VAR"))
    assert ".," not in words


def test_a_test_is_made_where_it_is_quick():
    analysis = page_cases.counts()
    made = add_test(analysis, work=gs.Work(progress=False))
    assert made.tested.names == analysis.leading.names
    assert made.tested.discoveries[0] == "rate"
    assert add_test(made) is made
    assert add_test(analysis, wanted=False) is analysis
    assert costs.testing_is_slow(analysis.model, 1000)
    large = replace(analysis, X=analysis.X.reindex(columns=[*analysis.X, *map(str, range(300))], fill_value=0.0))
    assert add_test(large).cautions[-1].kind is FindingKind.TEST_LEFT_OUT
    assert add_test(large).tested is None


def test_a_notebook_shows_the_first_screen_and_the_table():
    analysis = page_cases.hostile()
    text = analysis._repr_html_()
    outer = Outline(text)
    (frame,) = outer.all("iframe")
    assert frame["sandbox"] == ""
    assert len(outer.elements) == 1
    inner = Outline(frame["srcdoc"])
    assert inner.open == []
    assert not inner.scripts
    words = html.unescape(inner.words("relevance"))
    assert all(name in words for name in page_cases.HOSTILE[:1])
    assert "Which columns matter" in inner.words("answer")
    assert "Choose a heading" not in words
