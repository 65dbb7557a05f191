"""Predictions taken apart, in the user's units, and handed to shap."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from optional import need

import gpsift as gs
from gpsift.gp import DrawnGP


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = 5 + 2 * rng.normal(size=(50, 3))
    y = 10 * np.sin(X[:, 0] / 3) * X[:, 1] + X[:, 2] + rng.normal(size=50)
    return gs.GP(hyper=gs.Fixed(lengthscale=np.array([1.0, 1.5, 3.0]), signal_var=1.0, noise_var=0.05)).fit(X, y)


def test_values_add_up_to_predictions(fitted):
    X_new = 5 + 2 * np.random.default_rng(1).normal(size=(7, 3))
    found = gs.explain(fitted, X_new)
    assert_allclose(found.prediction, fitted.predict(X_new).mean, rtol=0, atol=1e-10 * np.abs(found.values).max())
    assert np.all(found.sd > 0)


def test_kernel_explainer_has_the_same_values(fitted):
    """Its background has every combination of the margins' values, so that it samples nothing."""
    shap = need("shap")
    nodes = {"x1": [3.0, 4.5, 7.0], "x2": [2.0, 5.0, 6.0, 9.0], "x3": [4.0, 8.0]}
    background = np.stack(np.meshgrid(*nodes.values(), indexing="ij"), axis=-1).reshape(-1, 3)
    rows = fitted.inputs.X[:5]
    explainer = shap.KernelExplainer(lambda X: fitted.predict(X).mean, background)
    theirs = explainer.shap_values(rows, nsamples=1000, l1_reg=False, silent=True)
    found = gs.explain(fitted, rows, margins=nodes)
    assert_allclose(found.values, theirs, rtol=0, atol=1e-8 * np.abs(theirs).max())
    assert_allclose(found.average, explainer.expected_value)


def test_shap_draws_a_row(fitted):
    shap = need("shap")
    found = gs.explain(fitted)
    explanation = found.to_shap()
    assert_array_equal(explanation.values, found.values)
    assert_allclose(explanation.base_values, found.average)
    plt.figure()
    shap.plots.waterfall(explanation[3], show=False)
    plt.close("all")


def test_groups_add_up_too_and_are_one(fitted):
    found = gs.explain(fitted, fitted.inputs.X[:4], groups={"two": ["x1", "x2"]})
    assert found.values.shape == (4, 2)
    assert_allclose(found.prediction, fitted.predict(fitted.inputs.X[:4]).mean, rtol=1e-10)


def test_draws_are_averaged_and_what_they_disagree_on_is_in_the_sd(fitted):
    X, y = fitted.inputs.X, fitted.y_train
    other = gs.GP(hyper=gs.Fixed(lengthscale=2.0, noise_var=0.1)).fit(X, y)
    members = fitted, replace(other, inputs=fitted.inputs)
    found = gs.explain(DrawnGP(members, None, {"r_hat": 1.0}, fitted.report), X[:3])
    each = [gs.explain(member, X[:3]) for member in members]
    assert_allclose(found.values, (each[0].values + each[1].values) / 2)
    spread = ((each[0].values - each[1].values) / 2) ** 2
    assert_allclose(found.sd**2, (each[0].sd ** 2 + each[1].sd ** 2) / 2 + spread)


def test_features_that_are_off_add_nothing():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 4))
    gp = gs.GP().fit(X, 2 * X[:, 0] + 0.2 * rng.normal(size=80))
    found = gs.explain(gp)
    off = [j for j in range(4) if j not in gp.used]
    assert off
    assert_array_equal(found.values[:, off], 0.0)
    assert_array_equal(found.sd[:, off], 0.0)


def test_one_row_is_printed_and_drawn(fitted):
    found = gs.explain(fitted, fitted.inputs.X[:1])
    assert "adds" in repr(found)
    assert found.row(0)["feature"].iloc[0] == found.names[found.order[0]]
    ax = found.plot()
    assert_allclose(sorted(bar.get_width() for bar in ax.patches), sorted(found.values[0]))
    plt.close("all")


def test_linear_terms_add_up_and_have_their_variance(fitted):
    """Without other terms a value is slope times distance from the average, and so is its standard deviation."""
    X, y = fitted.inputs.X, fitted.y_train
    gp = gs.GP(gs.Linear(np.ones(3)) + gs.Constant(), hyper=gs.Fixed(noise_var=0.1)).fit(X, y)
    found = gs.explain(gp, X[:4])
    assert_allclose(found.prediction, gp.predict(X[:4]).mean, rtol=1e-9)
    elsewhere = gs.explain(gp, X[:4], margins={name: [6.0, 9.0] for name in gp.inputs.names})
    assert_allclose(elsewhere.prediction, gp.predict(X[:4]).mean, rtol=1e-9)
    up = X[:1] + np.eye(3)[:1]
    slope = gp.predict(up).mean - gp.predict(X[:1]).mean
    assert_allclose(found.values[:, 0], slope * (X[:4, 0] - X[:, 0].mean()), rtol=1e-8)
    _, joint = gp.joint(gp.inputs.points(np.concatenate([X[:1], up])))
    slope_sd = np.sqrt(np.array([-1.0, 1.0]) @ joint @ [-1.0, 1.0])
    assert_allclose(found.sd[:, 0], slope_sd * np.abs(X[:4, 0] - X[:, 0].mean()), rtol=1e-5)


def test_of_many_features_those_that_are_off_are_not_told(monkeypatch):
    monkeypatch.setattr("gpsift.decomposition.context.MOST_UNITS", 5)
    monkeypatch.setattr("gpsift.gp.fitted.FEW_OPEN", 2)
    rng = np.random.default_rng(4)
    X = rng.normal(size=(70, 8))
    gp = gs.GP().fit(X, X[:, 6] + np.sin(2 * X[:, 2]) + 0.1 * rng.normal(size=70))
    found, shares = gs.explain(gp), gs.variance_shares(gp, margins="uniform")
    assert found.names == shares.names == tuple(gp.inputs.names[j] for j in gp.used)
    assert_array_equal(found.points, X[:, list(gp.used)])
    assert_allclose(found.prediction, gp.predict(X).mean, rtol=1e-8)
    assert gs.interactions(gp).share.shape == (len(gp.used), len(gp.used))
    assert set(gs.effects(gp).names) == set(found.names)
