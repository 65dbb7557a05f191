"""The page shows how columns act: curves, pairs, shares of variance, and attributions of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import page_cases
import pytest
from test_page import Outline

import gpsift as gs
from gpsift.app.analysis.analysis import ColumnEffects
from gpsift.app.html import effects as effects_page
from gpsift.app.html import page_text
from gpsift.app.html.charts import MOST_PANELS, curve_panels


@pytest.fixture(scope="module")
def shown():
    return page_cases.acting()


@pytest.fixture(scope="module")
def page(shown):
    return Outline(page_text(shown))


def alt(page, id):
    (found,) = [attrs["aria-label"] for attrs in page.all("div") if attrs.get("id") == id]
    return found


def test_parts_come_in_order_and_the_menu_leads_to_them(page):
    parts = [attrs["id"] for attrs in page.all("section")]
    assert parts[:5] == ["answer", "data", "relevance", "acts", "together"]
    assert parts[-1] == "repeat"
    assert {"#acts", "#together"} <= {attrs["href"] for attrs in page.all("a")}
    assert page.open == []


def test_every_picture_has_words_and_a_place(page, shown):
    figures = page.data["figures"]
    ids = [attrs.get("id") for attrs in page.all("div")]
    assert {item["target_id"] for item in figures.values()} <= set(ids)
    panels = [id for id in ids if id and id.startswith("figure-acts-")]
    assert len(panels) == len(shown.column_effects.effects) == 4
    for id, curve in zip(panels, shown.column_effects.effects, strict=True):
        assert curve.name.split()[0] in alt(page, id)
        assert curve.course.told.split(",")[0].replace("-", "−") in alt(page, id)
    assert "slope with switch" in alt(page, "figure-pairs")
    assert "slope" in alt(page, "figure-surface")


def test_sections_say_what_the_records_say(page, shown):
    words = page.words("acts")
    assert "bend <b> down to" in words
    assert "switch" in words
    assert "How outcome changes along each column" in words
    assert "1 pair acts together: slope with switch." in page.words("together")
    share = shown.column_effects.variance_shares.noise_share
    assert f"noise {effects_page.percent(share)}" in page.words("together")


def test_all_panels_have_the_same_axis(shown):
    effects = shown.column_effects.effects
    ids = [f"panel-{place}" for place in range(len(effects))]
    ranges = {_y_range(item) for item in curve_panels(effects, ids)}
    assert len(ranges) == 1
    low, high = ranges.pop()
    assert low < min(curve.mean.min() for curve in effects)
    assert high > max(curve.mean.max() for curve in effects)


def _y_range(item):
    (root,) = item["doc"]["roots"]
    limits = root["attributes"]["y_range"]["attributes"]
    return limits["start"], limits["end"]


def test_the_bar_of_shares_is_whole(shown):
    parts = effects_page.share_parts(shown.column_effects.variance_shares)
    assert sum(part.share for part in parts) == pytest.approx(1.0, abs=2 * effects_page.LEAST_PART)
    assert [part.kind for part in parts][-1] == "noise"
    columns = [part.share for part in parts if part.kind == "column"]
    assert columns == sorted(columns, reverse=True)


def test_rows_carry_what_columns_add(page, shown):
    rows = page.data["rows"]
    added = np.array(rows["added"]).T
    apart = shown.column_effects.rows
    expected = apart.values[:, [apart.names.index(name) for name in rows["names"]]]
    assert np.allclose(added, expected, rtol=6e-3)
    prediction = shown.model.predict(shown.X).mean
    assert np.allclose(apart.average + added.sum(axis=1), prediction, atol=0.01 * np.ptp(prediction))
    assert rows["sums"][0].startswith("On average outcome is ")


def test_probabilities_have_curves_of_their_own():
    shown = page_cases.acting(2)
    page = Outline(page_text(shown))
    assert "How the probability of yes changes along each column" in page.words("acts")
    assert "by the delta method" in page.words("acts")
    assert "Of the variance of the latent function" in page.words("together")
    assert "noise" not in page.words("together")
    assert "On average the latent function is " in page.data["rows"]["sums"][0]


def test_no_pair_is_said_and_not_drawn(shown):
    none = replace(shown.column_effects.interactions, least_evidence=np.inf)
    page = Outline(page_text(replace(shown, column_effects=replace(shown.column_effects, interactions=none))))
    assert "No pair found" in page.words("together")
    assert not {"pairs", "surface"} & set(page.data["figures"])


def test_what_a_model_does_not_have_is_absent(shown):
    page = Outline(page_text(replace(shown, column_effects=None)))
    assert not {"acts", "together"} & set(page.sections)
    assert page.data["rows"]["added"] is None
    only = Outline(page_text(replace(shown, column_effects=ColumnEffects(effects=shown.column_effects.effects))))
    assert "acts" in only.sections
    assert "together" not in only.sections


def test_few_of_many_columns_have_a_panel(shown):
    effects = shown.column_effects.effects
    many = replace(effects, curves=tuple(replace(effects.curves[0], name=f"c{j}") for j in range(20)))
    page = Outline(page_text(replace(shown, column_effects=ColumnEffects(effects=many))))
    assert f"for the {MOST_PANELS} most relevant of 20" in page.words("acts")
    assert len([name for name in page.data["figures"] if name.startswith("figure-acts-")]) == MOST_PANELS


def test_report_writes_how_columns_act(tmp_path):
    shown = page_cases.acting()
    table = shown.X[["slope", "switch"]].assign(outcome=shown.y)
    hyper = gs.Fixed(lengthscale=1.5, signal_var=1.0, noise_var=0.5)
    options = {"select": False, "intervals": False, "work": gs.Work(progress=False), "hyper": hyper}
    made = gs.report(table, "outcome", tmp_path / "page.html", **options)
    assert made.column_effects.effects.names
    without = gs.report(table, "outcome", tmp_path / "page.html", effects=False, **options)
    assert without.column_effects is None
