"""Rankings in the forms that other libraries plot."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from optional import need

import gpsift as gs
from gpsift.relevance.ranking import Ranking


def ranking(*, draws=None, pointwise=True):
    rng = np.random.default_rng(0)
    values = rng.gamma(2.0, size=(30, 3)) * [3.0, 1.0, 0.1]
    return Ranking(
        measure="KL()",
        scores=values.mean(axis=0) if draws is None else draws.mean(axis=0),
        pointwise=values if pointwise else None,
        names=("age", "bmi", "sex"),
        units="per standard deviation of the feature",
        points=rng.normal(size=(30, 3)),
        rows=np.arange(30),
        draws=draws,
    )


def test_shap_draws_its_pictures_of_a_ranking():
    shap = need("shap")
    found = ranking()
    explanation = found.to_shap()
    assert isinstance(explanation, shap.Explanation)
    assert_array_equal(explanation.values, found.pointwise)
    assert_array_equal(explanation.data, found.points)
    assert explanation.feature_names == ["age", "bmi", "sex"]
    plt.figure()  # shap draws into the current one, whoever left it
    axes = shap.plots.beeswarm(explanation, show=False)
    assert [label.get_text() for label in axes.get_yticklabels()][::-1] == ["age", "bmi", "sex"]
    plt.close("all")


def test_the_explanation_is_a_copy():
    need("shap")
    found = ranking()
    before = found.pointwise.copy()
    found.to_shap().values[:] = 0.0
    assert_array_equal(found.pointwise, before)


def test_a_measure_of_the_whole_model_has_nothing_to_explain():
    need("shap")
    with pytest.raises(ValueError, match=r"KL\(\) has no pointwise scores"):
        ranking(pointwise=False).to_shap()


def test_draws_become_inference_data():
    az = need("arviz")
    draws = np.random.default_rng(1).gamma(2.0, size=(200, 3)) * [3.0, 1.0, 0.1]
    data = ranking(draws=draws).to_arviz()
    assert_array_equal(data.posterior["strength"].sel(chain=0), draws)
    assert list(data.posterior["feature"].values) == ["age", "bmi", "sex"]
    ranks = data.posterior["rank"].values[0]
    assert_array_equal(np.sort(ranks, axis=1), np.tile([1, 2, 3], (200, 1)))
    assert_array_equal(ranks[:, 0] == 1, draws[:, 0] == draws.max(axis=1))
    summary = az.summary(data, var_names=["strength"])
    assert summary.loc["strength[age]", "mean"] == pytest.approx(draws[:, 0].mean(), abs=0.01)


def test_one_fit_has_no_draws():
    with pytest.raises(ValueError, match="draw the hyperparameters"):
        ranking().to_arviz()


@pytest.mark.parametrize(("library", "export"), [("shap", "to_shap"), ("arviz", "to_arviz")])
def test_a_missing_library_is_named(monkeypatch, library, export):
    monkeypatch.setitem(__import__("sys").modules, library, None)
    with pytest.raises(ImportError, match=f"pip install {library}"):
        getattr(ranking(draws=np.ones((2, 3))), export)()


def test_categories_and_groups_are_columns_too(regression):
    need("shap")
    X, y = regression[:2]
    gp = gs.GP(hyper=gs.Fixed(lengthscale=1.0, signal_var=1.0, noise_var=0.1)).fit(X, y)
    explanation = gs.rank(gp, groups={"two": [0, 1]}).to_shap()
    assert explanation.values.shape == explanation.data.shape == (len(y), X.shape[1] - 1)
