"""Every record shows itself in a notebook, and names in it stay text."""

import re
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from storage_cases import cases

import gpsift as gs
from gpsift.app.analysis.analysis import ColumnEffects
from gpsift.io.serializable import Serializable

MODELS = ["FittedGP", "FittedMulticlass", "DrawnGP", "FitReport"]
ANSWERS = [
    *("Attribution", "Baseline", "Comparison", "Curve", "Discoveries", "Effects", "Interactions", "Path", "Power"),
    *("Prediction", "Projection", "ProjectionPath", "Quality", "Ranking", "Stability", "Suggestion", "Surface"),
    *("VarianceShares", "Verdict"),
]
RECORDS = [*ANSWERS, *MODELS]


@pytest.fixture(scope="module")
def made():
    return {name: found[0] for name, found in cases().items()}


@pytest.mark.parametrize("name", RECORDS)
def test_every_record_shows_itself(made, name):
    text = made[name]._repr_html_()
    assert re.match(r"<(p|pre|table)\b", text)
    opened = re.findall(r"<(p|pre|table|tr|td)\b", text)
    assert all(text.count(f"</{tag}>") == opened.count(tag) for tag in set(opened))


def test_names_stay_text(made):
    for name in set(RECORDS).difference(MODELS):
        record = made[name]
        if is_dataclass(record) and "names" in {field.name for field in fields(record)}:
            names = ("<script>", *record.names[1:])
            assert "<script>" not in replace(record, names=names)._repr_html_(), name


def test_every_public_answer_shows_itself():
    ours = (getattr(gs, name) for name in gs.__all__)
    answers = [
        each for each in ours if isinstance(each, type) and issubclass(each, Serializable) and is_dataclass(each)
    ]
    assert len(answers) > 10
    assert [each.__name__ for each in answers if not hasattr(each, "_repr_html_")] == []


def test_how_columns_act_shows_its_parts(made):
    shape = ColumnEffects(effects=made["Effects"], variance_shares=made["VarianceShares"])
    assert shape._repr_html_() == made["Effects"]._repr_html_() + made["VarianceShares"]._repr_html_()
    assert ColumnEffects()._repr_html_() == ""


def test_numbers_of_a_prediction_are_in_its_table():
    X = np.linspace(-1, 1, 80)[:, None]
    gp = gs.GP(hyper=gs.Fixed(lengthscale=1.0, noise_var=0.1)).fit(X, X[:, 0])
    prediction = gp.predict(X)
    frame = prediction.to_frame()
    np.testing.assert_array_equal(frame["mean"], prediction.mean)
    text = prediction._repr_html_()
    assert "and 20 more" in text
    assert text.count("<tr") == 61
