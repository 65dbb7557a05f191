from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import sklearn.utils
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import gpsift as gs
from gpsift import likelihoods
from gpsift.sklearn import GPClassifier, GPRegressor


@pytest.fixture
def classes(rng):
    """Two overlapping classes; the second feature does nothing."""
    X = rng.normal(size=(60, 2))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=60) > 0, "sick", "healthy")


@pytest.fixture
def three_classes(rng):
    """Three overlapping classes; the last of three features does nothing."""
    X = rng.normal(size=(75, 3))
    scores = np.column_stack([3 * X[:, 0], 3 * X[:, 1], -2 * X[:, 0] - 2 * X[:, 1]])
    return X, np.array(["hare", "ant", "bee"])[np.argmax(scores + rng.gumbel(size=(75, 3)), axis=1)]


# Notices about data that the checks make up (a constant column, few rows) are not what is checked. The logit takes
# known hyperparameters for speed: the checks fit hundreds of times, with two and three classes, also to classes that
# a line separates.
@pytest.mark.filterwarnings("ignore::gpsift.GPSiftWarning")
@parametrize_with_checks(
    [
        GPRegressor(),
        GPClassifier(),
        GPClassifier(link="logit", hyper=gs.Fixed(lengthscale=2.0, signal_var=10.0)),
    ]
)
def test_estimators_pass_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_regressor_predicts_as_its_gp(regression):
    X, y = regression
    model = GPRegressor().fit(X[:30], y[:30])
    expected = gs.GP().fit(X[:30], y[:30]).predict(X[30:])
    mean, std = model.predict(X[30:], return_std=True)
    np.testing.assert_array_equal(mean, expected.mean)
    np.testing.assert_array_equal(model.predict(X[30:]), mean)
    np.testing.assert_array_equal(std, np.sqrt(expected.var))
    assert np.all(std**2 > expected.latent_var)  # noise is in it
    residuals = y[30:] - mean
    assert model.score(X[30:], y[30:]) == pytest.approx(
        1 - residuals @ residuals / np.sum((y[30:] - y[30:].mean()) ** 2)
    )


@pytest.mark.parametrize("likelihood", ["student-t", "poisson", "negative-binomial", "gamma"])
@pytest.mark.filterwarnings("ignore::gpsift.GPSiftWarning")
def test_regressor_takes_every_regression_likelihood(regression, likelihood):
    X, y = regression
    target = y if likelihood == "student-t" else np.round(np.exp(1 + y)) + (likelihood == "gamma")
    hyper = gs.MAP(starts=1)
    expected = gs.GP(likelihood=likelihood, hyper=hyper).fit(X, target).predict(X)
    model = GPRegressor(likelihood=likelihood, hyper=hyper).fit(X, target)
    np.testing.assert_array_equal(model.predict(X), expected.mean)
    as_object = GPRegressor(likelihood=model.gp_.likelihood, hyper=hyper).fit(X, target)
    assert type(as_object.gp_.likelihood) is type(model.gp_.likelihood)


@pytest.mark.skipif(not hasattr(sklearn.utils, "get_tags"), reason="tags of scikit-learn 1.6 and later")
def test_tags_tell_which_targets_are_allowed():
    tags = sklearn.utils.get_tags
    assert tags(GPClassifier()).classifier_tags.multi_class
    assert not tags(GPRegressor()).target_tags.positive_only
    assert not tags(GPRegressor(likelihood="no such")).target_tags.positive_only
    for likelihood in ("poisson", "negative-binomial", "gamma", likelihoods.Gamma(2.0)):
        assert tags(GPRegressor(likelihood=likelihood)).target_tags.positive_only


@pytest.mark.parametrize(("link", "likelihood"), [("probit", "bernoulli"), ("logit", "logit")])
def test_classifier_predicts_as_its_gp(classes, link, likelihood):
    X, y = classes
    hyper = gs.MAP(starts=1)
    model = GPClassifier(link=link, hyper=hyper).fit(X[:40], y[:40])
    expected = gs.GP(likelihood=likelihood, hyper=hyper).fit(X[:40], y[:40] == "sick").predict(X[40:])
    probability = model.predict_proba(X[40:])
    assert model.classes_.tolist() == ["healthy", "sick"]
    np.testing.assert_allclose(probability[:, 1], expected.mean, rtol=1e-10)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(model.predict_log_proba(X[40:]), np.log(probability), atol=1e-12)
    np.testing.assert_array_equal(model.predict(X[40:]), np.where(expected.mean > 0.5, "sick", "healthy"))
    assert model.score(X[40:], y[40:]) == np.mean(model.predict(X[40:]) == y[40:])


def test_several_classes_are_predicted_as_by_their_gp(three_classes):
    X, y = three_classes
    hyper = gs.MAP(starts=1)
    model = GPClassifier(hyper=hyper).fit(X[:55], y[:55])
    assert model.classes_.tolist() == ["ant", "bee", "hare"]
    codes = np.searchsorted(model.classes_, y)
    expected = gs.GP(likelihood="softmax", hyper=hyper).fit(X[:55], codes[:55]).predict(X[55:]).mean
    probability = model.predict_proba(X[55:])
    np.testing.assert_allclose(probability, expected, rtol=1e-10)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(model.predict_log_proba(X[55:]), np.log(probability), atol=1e-12)
    np.testing.assert_array_equal(model.predict(X[55:]), model.classes_[expected.argmax(axis=1)])
    assert model.score(X[55:], y[55:]) > 0.6
    ranking = model.rank()
    assert ranking.names[ranking.order[-1]] == "x3"
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_link_is_for_two_classes_only(three_classes):
    X, y = three_classes
    hyper = gs.Fixed(lengthscale=2.0, signal_var=3.0)
    probit, logit = (GPClassifier(link=link, hyper=hyper).fit(X, y).predict_proba(X) for link in ("probit", "logit"))
    np.testing.assert_array_equal(probit, logit)


def test_several_classes_in_cross_validation(three_classes):
    X, y = three_classes
    scores = cross_val_score(
        GPClassifier(hyper=gs.MAP(starts=1)), X, y, cv=3, scoring="neg_log_loss", error_score="raise"
    )
    assert np.all(scores > -0.9)


@pytest.mark.parametrize("labels", [(3, 7), (-1, 1), (False, True), (0.0, 1.0), ("a", "b")])
def test_classifier_keeps_its_labels(classes, labels):
    X, y = classes
    given = np.where(y == "sick", labels[1], labels[0])
    model = GPClassifier(hyper=gs.MAP(starts=1)).fit(X, given)
    assert model.classes_.tolist() == list(labels)
    predicted = model.predict([[-3.0, 0.0], [3.0, 0.0]])
    assert predicted.tolist() == list(labels)
    assert predicted.dtype == given.dtype


def test_swapped_labels_swap_the_columns_of_predict_proba(classes):
    X, y = classes
    hyper = gs.MAP(starts=1)
    model = GPClassifier(hyper=hyper).fit(X, y)
    swapped = GPClassifier(hyper=hyper).fit(X, np.where(y == "sick", "healthy", "sick"))
    np.testing.assert_allclose(model.predict_proba(X), swapped.predict_proba(X)[:, ::-1], atol=1e-6)


@pytest.mark.parametrize("estimator", [GPRegressor, GPClassifier])
def test_names_of_columns_reach_the_ranking(regression, estimator):
    X, y = regression
    frame = pd.DataFrame(X, columns=["bend", "slope", "nothing"])
    target = y if estimator is GPRegressor else np.where(y > 0, "up", "down")
    model = estimator(hyper=gs.MAP(starts=1)).fit(frame, target)
    assert model.feature_names_in_.tolist() == list(model.gp_.inputs.names) == list(frame.columns)
    ranking = model.rank()
    assert ranking.names == ("bend", "slope", "nothing")
    assert ranking.names[ranking.order[-1]] == "nothing"
    np.testing.assert_array_equal(ranking.scores, gs.rank(model.gp_, frame).scores)
    few = model.rank(frame.head(5), gs.VAR(), aggregate="max")
    assert few.measure == "VAR()"
    assert few.pointwise.shape == (5, 3)


def test_polars_names_reach_the_ranking(regression):
    polars = pytest.importorskip("polars")
    X, y = regression
    model = GPRegressor(hyper=gs.MAP(starts=1)).fit(polars.DataFrame(X, schema=["a", "b", "c"]), y)
    if not hasattr(model, "feature_names_in_"):
        pytest.skip("this version of scikit-learn does not read the names of this version of polars")
    assert model.rank().names == ("a", "b", "c")


def test_columns_without_string_names_get_made_up_ones(regression):
    X, y = regression
    model = GPRegressor(hyper=gs.MAP(starts=1)).fit(pd.DataFrame(X), y)
    assert not hasattr(model, "feature_names_in_")
    assert model.rank().names == ("x1", "x2", "x3")


def test_notices_of_the_fit_name_the_columns(regression):
    X, y = regression
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(flat=1.0)
    with pytest.warns(gs.GPSiftWarning, match="Constant column.*: flat"):
        GPRegressor(hyper=gs.MAP(starts=1)).fit(frame, y)


def test_other_columns_than_in_fit_are_refused(regression):
    X, y = regression
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    nameless = GPRegressor(hyper=gs.MAP(starts=1)).fit(X, y)
    model = clone(nameless).fit(frame, y)
    for method in (nameless.predict, nameless.rank):
        with pytest.raises(ValueError, match="X has 2 features, but GPRegressor is expecting 3 features as input"):
            method(X[:, :2])
    for method in (model.predict, model.rank):
        with pytest.raises(ValueError, match="feature names should match"):
            method(frame[["c", "b", "a"]])
        with pytest.warns(UserWarning, match="X does not have valid feature names"):
            method(X)


def test_random_state_is_the_seed_of_the_starts(regression):
    X, y = regression

    def objectives(random_state, hyper=None):
        return GPRegressor(hyper=hyper, random_state=random_state).fit(X, y).gp_.report.objectives

    ml2 = gs.ML2()
    assert objectives(None) == objectives(3) == gs.GP().fit(X, y).report.objectives
    assert objectives(None, ml2) == objectives(0, ml2) == gs.GP(hyper=ml2).fit(X, y).report.objectives
    assert objectives(None, gs.ML2(seed=5)) == objectives(5, ml2) != objectives(0, ml2)
    assert objectives(np.random.RandomState(1), ml2) == objectives(np.random.RandomState(1), ml2) != objectives(0, ml2)
    known = gs.Fixed(lengthscale=1.0, noise_var=0.1)
    assert objectives(3, known) == objectives(None, known) == ()


def test_parameters_are_kept_as_given_and_cloned():
    kernel, hyper = gs.Matern52(), gs.MAP(starts=1)
    for estimator in (GPRegressor(likelihood="student-t"), GPClassifier(link="logit")):
        assert estimator.get_params()["kernel"] is estimator.get_params()["hyper"] is None
        estimator.set_params(kernel=kernel, hyper=hyper, random_state=3)
        assert estimator.kernel is kernel
        assert estimator.hyper is hyper
        assert clone(estimator).get_params() == estimator.get_params()


def test_fit_uses_kernel_inference_and_standardize(regression):
    X, y = regression
    known = gs.Fixed(lengthscale=1.0, noise_var=0.1)
    model = GPRegressor(kernel=gs.Matern52(), hyper=known, standardize=False, inference="laplace").fit(X, y)
    expected = gs.GP(kernel=gs.Matern52(), hyper=known, standardize=False).fit(X, y)
    assert model.gp_.inference == "laplace"
    assert model.gp_.log_marginal_likelihood == pytest.approx(expected.log_marginal_likelihood)


def test_fitted_estimators_can_be_pickled(regression, classes):
    X, y = regression
    model = GPRegressor(hyper=gs.MAP(starts=1)).fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.gp_.predict(X).mean, model.gp_.predict(X).mean)
    assert again.rank().names == ("a", "b", "c")
    X, y = classes
    model = GPClassifier(hyper=gs.MAP(starts=1)).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_regressor_in_pipeline_and_grid_search():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:120, [2, 3, 8]], y[:120]  # bmi, bp, s5
    search = GridSearchCV(
        make_pipeline(StandardScaler(), GPRegressor()),
        {"gpregressor__hyper": [gs.ML2(starts=1), gs.MAP(starts=1)]},
        cv=3,
        error_score="raise",
    ).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_params_["gpregressor__hyper"] in (gs.ML2(starts=1), gs.MAP(starts=1))
    scores = cross_val_score(GPRegressor(hyper=gs.MAP(starts=1)), X, y, cv=3, error_score="raise")
    assert scores.mean() > 0.1


def test_classifier_in_pipeline_and_grid_search(classes):
    X, y = classes
    search = GridSearchCV(
        make_pipeline(StandardScaler(), GPClassifier()),
        {"gpclassifier__hyper": [gs.ML2(starts=1), gs.MAP(starts=1)], "gpclassifier__link": ["probit", "logit"]},
        cv=3,
        error_score="raise",
    ).fit(X, y)
    assert search.best_score_ > 0.7
    scores = cross_val_score(
        GPClassifier(hyper=gs.MAP(starts=1)), X, y, cv=3, scoring="neg_log_loss", error_score="raise"
    )
    assert np.all(scores > -np.log(2))


@pytest.mark.parametrize("likelihood", ["bernoulli", "logit", "binomial", "cauchy", None, likelihoods.Probit(), 1])
def test_regressor_refuses_other_likelihoods(regression, likelihood):
    with pytest.raises(ValueError, match="`likelihood` of a regression must be one of gaussian, student-t"):
        GPRegressor(likelihood=likelihood).fit(*regression)


def test_regressor_refuses_a_constant_target(regression):
    X, _ = regression
    with pytest.raises(ValueError, match="`y` is constant"):
        GPRegressor().fit(X, np.ones(len(X)))


@pytest.mark.parametrize("link", ["cauchit", None, "bernoulli"])
def test_classifier_refuses_other_links(classes, link):
    with pytest.raises(ValueError, match='`link` must be "probit" or "logit"'):
        GPClassifier(link=link).fit(*classes)


def test_classifier_refuses_one_class(classes):
    X, _ = classes
    with pytest.raises(ValueError, match=r"one class only \(a\)"):
        GPClassifier().fit(X, np.full(60, "a"))


def test_classifier_refuses_expectation_propagation_of_several_classes(three_classes):
    with pytest.raises(ValueError, match="Laplace's method only"):
        GPClassifier(inference="ep").fit(*three_classes)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "rank"])
def test_unfitted_estimators_say_so(classes, method):
    with pytest.raises(NotFittedError):
        getattr(GPClassifier(), method)(classes[0])


def test_wrong_choices_are_refused_at_fit(regression):
    with pytest.raises(TypeError, match="`hyper` must be"):
        GPRegressor(hyper="map", random_state=0).fit(*regression)
    with pytest.raises(TypeError, match="`kernel` must be"):
        GPRegressor(kernel="rbf").fit(*regression)
    with pytest.raises(ValueError, match="`inference` must be"):
        GPRegressor(inference="mcmc").fit(*regression)


def test_a_failed_fit_leaves_no_classes(classes):
    model = GPClassifier(inference="exact")
    with pytest.raises(ValueError, match="Exact inference needs Gaussian noise"):
        model.fit(*classes)
    assert not hasattr(model, "classes_")


def test_importing_gpsift_does_not_import_scikit_learn():
    script = "import gpsift, sys; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
