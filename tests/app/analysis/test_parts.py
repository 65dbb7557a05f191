"""Parts of an analysis are the answers of the public functions, are kept once, and are left out if they take long."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import gpsift as gs
from gpsift.app.analysis.costs import MOST_PREDICTED_COLUMNS, MOST_WORK, effects_are_slow
from gpsift.app.analysis.parts import add_effects
from gpsift.app.findings import FindingKind
from gpsift.app.html import write_page
from gpsift.reference.base import MissingCapability

SILENT = gs.Work(progress=False)
HYPER = gs.Fixed(lengthscale=1.5, signal_var=1.0, noise_var=0.1)


@pytest.fixture(scope="module")
def analysis():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "c"])
    table["kind"] = rng.choice(["low", "mid", "top"], 40)
    table["y"] = table["a"] * table["b"] + (table["kind"] == "mid") + 0.1 * rng.normal(size=40)
    return gs.analyse(table, "y", select=False, hyper=HYPER, work=SILENT)


def test_parts_are_the_answers_of_the_verbs(analysis):
    shape = add_effects(analysis, work=SILENT).column_effects
    units = {"groups": dict(analysis.groups), "categorical": ["kind"]}
    assert set(shape.effects.names) == {"a", "b", "c", "kind"}
    for curve in gs.effects(analysis.model, **units):
        assert shape.effects[curve.name].mean == pytest.approx(curve.mean)
    assert shape.interactions.share == pytest.approx(gs.interactions(analysis.model, **units).share)
    assert shape.variance_shares.shapley == pytest.approx(gs.variance_shares(analysis.model, **units).shapley)
    prediction = analysis.model.predict(analysis.X).mean
    assert shape.rows.prediction == pytest.approx(prediction)


def test_what_is_there_already_stays(analysis):
    first = add_effects(analysis, work=SILENT)
    some = replace(first, column_effects=replace(first.column_effects, rows=None))
    again = add_effects(some, work=SILENT)
    assert again.column_effects.effects is first.column_effects.effects
    assert again.column_effects.rows.values == pytest.approx(first.column_effects.rows.values)


def test_it_is_left_out_if_not_wanted_or_where_it_takes_long(analysis, monkeypatch):
    assert add_effects(analysis, False, SILENT) is analysis
    monkeypatch.setitem(MOST_WORK, "exact", 40.0**2)
    without = add_effects(analysis, work=SILENT)
    assert without.column_effects is None
    assert without.cautions[-1].kind is FindingKind.SHAPE_LEFT_OUT
    assert without.cautions[-1].data == {"n_rows": 40, "n_columns": 6}
    assert add_effects(analysis, True, SILENT).column_effects is not None


def test_a_date_alone_has_curves_of_its_parts_and_a_page(tmp_path):
    days = pd.date_range("2020-01-01", periods=60, freq="9D")
    table = pd.DataFrame({"day": days.astype(str), "y": np.sin(np.arange(60) / 12)})
    shaped = add_effects(gs.analyse(table, "y", select=False, hyper=HYPER, work=SILENT), work=SILENT)
    assert shaped.groups  # days and month, scored as one
    assert {curve.name for curve in shaped.column_effects.effects.curves} == {"day: days", "day: month", "day: weekday"}
    assert shaped.column_effects.variance_shares.names == ("day",)
    assert "What matters for" in write_page(shaped, tmp_path / "page.html").read_text()


def test_a_model_without_columns_has_no_shape():
    rng = np.random.default_rng(3)
    table = pd.DataFrame(rng.normal(size=(30, 3)), columns=["a", "b", "y"])
    with pytest.warns(gs.GPSiftWarning):
        analysis = gs.analyse(table, "y", select=False, work=SILENT)
    assert add_effects(analysis, work=SILENT) is analysis


def test_curves_of_blocks_are_limited_by_columns(analysis):
    blocked = replace(analysis.model, report=replace(analysis.model.report, n_blocks=4))
    assert not effects_are_slow(analysis.model)
    assert len(analysis.X.columns) > MOST_PREDICTED_COLUMNS
    assert effects_are_slow(blocked)


def test_several_classes_have_what_their_model_offers():
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(size=(45, 2)), columns=["a", "b"])
    table["kind"] = np.array(["low", "mid", "top"])[np.digitize(table["a"], [-0.5, 0.5])]
    known = gs.Fixed(lengthscale=1.0, signal_var=9.0)
    found = add_effects(gs.analyse(table, "kind", select=False, hyper=known, work=SILENT), work=SILENT)
    verbs = {"effects": gs.effects, "interactions": gs.interactions, "variance_shares": gs.variance_shares}
    for name, verb in verbs.items():
        try:
            is_offered = verb(found.model) is not None
        except MissingCapability:
            is_offered = False
        assert (getattr(found.column_effects, name, None) is not None) == is_offered


def test_many_columns_that_are_used_take_long(analysis, monkeypatch):
    monkeypatch.setattr("gpsift.app.analysis.costs.MOST_COLUMNS_OF_EFFECTS", 5)
    assert effects_are_slow(analysis.model)
