"""The selector as scikit-learn's users know selectors."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.feature_selection import SelectFromModel
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import gpsift as gs
from gpsift._utils.warnings import GPSiftWarning
from gpsift.sklearn import GPClassifier, GPRegressor, GPSelector, importance

FAST = GPRegressor(hyper=gs.MAP(starts=1))
# The checks fit hundreds of times, and ask for no good model.
ROUGH = GPRegressor(hyper=gs.MAP(starts=1, max_iterations=5))


@pytest.fixture
def table(regression):
    X, y = regression
    return pd.DataFrame(X, columns=["bend", "slope", "nothing"]), y


@pytest.mark.filterwarnings("ignore::gpsift.GPSiftWarning")
@pytest.mark.filterwarnings("ignore:No features were selected")  # some of the checks have targets of noise
@parametrize_with_checks(
    [
        GPSelector(ROUGH),
        GPSelector(ROUGH, n_features_to_select=1, measure="var"),
        GPSelector(ROUGH, criterion="rate"),
    ]
)
def test_selectors_pass_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_a_rate_selects_what_is_shown_to_matter(table):
    X, y = table
    selector = GPSelector(FAST, criterion="rate", rate=0.05).fit(X, y)
    expected = gs.discover(X, y, FAST.make_model(y)[0], rate=0.05, work=gs.Work(progress=False))
    assert selector.get_feature_names_out().tolist() == ["bend", "slope"]
    assert selector.discoveries_.discoveries == expected.discoveries
    np.testing.assert_allclose(selector.scores_, -np.log(expected.p))
    assert selector.ranking_.tolist() == [1, 1, 2]
    assert selector.path_ is None


def test_a_rate_may_select_nothing():
    rng = np.random.default_rng(0)
    with pytest.warns(GPSiftWarning, match="No feature is selected: none is shown to matter at a rate of 0.1"):
        selector = GPSelector(criterion="rate").fit(rng.normal(size=(60, 3)), rng.normal(size=60))
    assert selector.n_features_ == 0
    assert sorted(selector.ranking_) == [2, 3, 4]


def test_an_unknown_criterion_is_refused(table):
    with pytest.raises(ValueError, match='`criterion` must be "prediction" or "rate", got "p"'.replace('"p"', "'p'")):
        GPSelector(FAST, criterion="p").fit(*table)


def test_auto_takes_the_suggested_size(table):
    X, y = table
    selector = GPSelector(FAST).fit(X, y)
    path = gs.search(X, y, model=gs.GP(hyper=gs.MAP(starts=1)))
    np.testing.assert_array_equal(selector.path_.lpd, path.lpd)
    assert selector.n_features_ == gs.suggest_size(path).size == 2
    np.testing.assert_array_equal(selector.get_support(), [True, True, False])
    np.testing.assert_array_equal(selector.ranking_, [1, 1, 2])
    np.testing.assert_allclose(selector.scores_, gs.rank(gs.GP(hyper=gs.MAP(starts=1)).fit(X, y)).scores)
    assert list(selector.get_feature_names_out()) == ["bend", "slope"]


@pytest.mark.parametrize(("wanted", "count"), [(1, 1), (2, 2), (3, 3), (0.5, 1), (0.7, 2), (1.0, 3), (1e-9, 1)])
def test_a_number_or_a_share(table, wanted, count):
    selector = GPSelector(FAST, n_features_to_select=wanted).fit(*table)
    assert selector.get_support().sum() == selector.n_features_ == count
    assert selector.path_ is None
    assert sorted(selector.ranking_) == [1] * count + list(range(2, 5 - count))
    chosen = set(np.flatnonzero(selector.support_))
    assert chosen == set(np.argsort(-selector.scores_)[:count])


def test_more_than_there_are_keeps_all(table):
    with pytest.warns(GPSiftWarning, match="10 but there are 3"):
        selector = GPSelector(FAST, n_features_to_select=10).fit(*table)
    assert selector.support_.all()


@pytest.mark.parametrize("measure", ["kl", "var", "ard", "rate", "derivative", "projection", gs.VAR(n_nodes=5)])
def test_every_measure_selects(table, measure):
    selector = GPSelector(FAST, measure=measure, n_features_to_select=2).fit(*table)
    np.testing.assert_array_equal(selector.support_, [True, True, False])
    assert selector.scores_.shape == (3,)
    assert selector.scores_.argmin() == 2


@pytest.mark.parametrize("hyper", [gs.MAP(starts=1), gs.Sift()])
def test_noise_selects_nothing_and_says_so(rng, hyper):
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    with pytest.warns(GPSiftWarning) as caught:
        selector = GPSelector(GPRegressor(hyper=hyper), cv=5).fit(X, y)
    assert any("No feature is selected: no feature is shown to help" in str(w.message) for w in caught)
    assert gs.suggest_size(selector.path_).size == selector.n_features_ == 0
    assert not selector.support_.any()
    assert sorted(selector.ranking_) == [2, 3, 4]
    with pytest.warns(UserWarning, match="No features were selected"):  # scikit-learn's own
        assert selector.transform(X).shape == (60, 0)


def test_where_no_size_qualifies_the_largest_that_was_tried_is_taken_not_all(table, monkeypatch):
    def none_qualifies(path, rule):
        found = gs.suggest_size(path, rule)
        return replace(found, by_rule={each: replace(v, size=None) for each, v in found.by_rule.items()})

    monkeypatch.setattr("gpsift.sklearn.suggest_size", none_qualifies)
    X, y = table
    wide = X.assign(**{f"noise{j}": np.random.default_rng(j).normal(size=len(X)) for j in range(9)})
    with pytest.warns(GPSiftWarning, match="The largest submodel"):
        selector = GPSelector(GPRegressor(hyper=gs.Sift())).fit(wide, y)
    assert selector.n_features_ == selector.path_.sizes[-1] < wide.shape[1]


def test_frames_in_and_out(table):
    X, y = table
    selector = GPSelector(FAST).set_output(transform="pandas").fit(X, y)
    pd.testing.assert_frame_equal(selector.transform(X), X[["bend", "slope"]])
    assert selector.inverse_transform(X[["bend", "slope"]].to_numpy()).shape == X.shape


def test_labels_choose_a_classifier(rng):
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 1] + 0.3 * rng.normal(size=60) > 0, "yes", "no")
    fast = GPClassifier(hyper=gs.MAP(starts=1))
    by_label = GPSelector(n_features_to_select=1).fit(X, y)
    np.testing.assert_array_equal(by_label.support_, [False, True, False])
    given = GPSelector(fast, rule="negligible").fit(X, y)
    assert given.support_[1]
    assert "accuracy" in given.path_.metrics


def test_in_a_pipeline_and_a_grid(table):
    X, y = table
    pipeline = make_pipeline(GPSelector(FAST, n_features_to_select=1), LinearRegression())
    grid = GridSearchCV(pipeline, {"gpselector__n_features_to_select": [1, 2, 3]}, cv=3).fit(X, y)
    assert grid.best_params_["gpselector__n_features_to_select"] in (2, 3)
    assert clone(grid.best_estimator_).get_params()["gpselector__measure"] == "kl"


@pytest.mark.parametrize("wanted", [0, -1, 1.5, "all", True, None])
def test_bad_numbers_are_refused(table, wanted):
    with pytest.raises(ValueError, match="`n_features_to_select`"):
        GPSelector(FAST, n_features_to_select=wanted).fit(*table)


def test_other_estimators_are_refused(table):
    with pytest.raises(TypeError, match="LinearRegression"):
        GPSelector(LinearRegression()).fit(*table)


class TestImportance:
    def test_select_from_scikit_learns_own_process(self, regression):
        X, y = regression
        kernel = ConstantKernel() * RBF(np.ones(3)) + WhiteKernel(0.1)
        model = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
        for measure in ("kl", gs.VAR()):
            selector = SelectFromModel(model, importance_getter=importance(measure)).fit(X, y)
            assert selector.get_support()[0]
            assert not selector.get_support()[2]

    def test_scores_are_those_of_rank(self, regression):
        X, y = regression
        model = GPRegressor().fit(X, y)
        np.testing.assert_array_equal(importance("var")(model), gs.rank(model.gp_, measure=gs.VAR()).scores)

    def test_projection_scores_nothing(self):
        with pytest.raises(ValueError, match="scores every feature"):
            importance("projection")

    def test_it_says_what_it_is(self):
        assert repr(importance("kl")) == "importance(KL())"
