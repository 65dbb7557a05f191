"""Intervals of scores: which models have them, what they hold, and what is said of them."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import gpsift as gs
from gpsift.reference.base import MissingCapability
from gpsift.reference.ensemble import Ensemble
from gpsift.relevance.feature_groups import FeatureGroups
from gpsift.relevance.intervals import N_FUNCTIONS, N_MODELS, N_MODELS_ALONE, score_functions


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 4))
    y = np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=60)
    return X, y


@pytest.fixture(scope="module")
def fitted(table):
    return gs.GP().fit(*table)


@pytest.fixture(scope="module")
def ranking(fitted, table):
    return gs.rank(fitted, table[0], intervals=True)


def test_scores_stay_those_of_the_fit(ranking, fitted, table):
    assert_array_equal(ranking.scores, gs.rank(fitted, table[0]).scores)
    assert ranking.draws.shape == (N_MODELS * N_FUNCTIONS, 4)
    assert ranking.drawn == "function and hyperparameters"


def test_draws_are_scores_of_drawn_functions_at_rows_drawn_again(fitted, table):
    X, _ = table
    one = fitted.on_columns(range(4))
    points, groups = one.inputs.training_points, FeatureGroups.read(None, None, one.inputs)
    found = score_functions(
        one, gs.KL(), points, groups, lambda values: values.mean(axis=0), 3, np.random.default_rng(7)
    )
    rng = np.random.default_rng(7)
    rows = rng.integers(60, size=60)
    for scores, function in zip(found, one.draw_functions(3, rng), strict=True):
        slope = np.abs(function.gradients(X[rows])[0]).mean(axis=0)
        assert_allclose(scores, slope * X[rows].std(axis=0) / np.sqrt(one.noise_var), rtol=1e-8)


def test_what_is_used_is_above_zero_and_what_is_not_stays_open(ranking):
    low, high = ranking.interval().T
    assert np.all(low[:2] > 0.3)
    assert np.all((low[:2] < ranking.scores[:2]) & (ranking.scores[:2] < high[:2]))
    assert np.all((low[2:] >= 0) & (low[2:] < 0.1) & (high[2:] > 0.02))
    assert_allclose(ranking.rank_probability.sum(axis=1), 1.0)
    assert_allclose(ranking.in_first_probability(2)[:2], 1.0)


def test_strengths_are_medians_and_probabilities_shares_of_the_draws(ranking):
    assert_array_equal(ranking.strength, np.median(ranking.draws, axis=0))
    for level in (0.5, 0.9):
        ends = np.quantile(ranking.draws, [0.5 - level / 2, 0.5 + level / 2], axis=0)
        assert_array_equal(ranking.interval(level), ends.T)
    assert_array_equal(ranking.probability(above=0.5), np.mean(ranking.draws > 0.5, axis=0))
    beyond = replace(ranking, scores=np.array([9.0, *ranking.scores[1:]]))
    assert_array_equal(beyond.interval(), ranking.interval())  # the score does not move it


def test_without_noise_to_speak_of_the_truth_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    slope = np.abs(2 * np.cos(2 * X[:, 0])).mean() * X[:, 0].std()
    found = gs.rank(gs.GP().fit(X, np.sin(2 * X[:, 0]) + 0.05 * rng.normal(size=150)), X, intervals=True)
    assert_allclose(found.strength[0], slope / 0.05, rtol=0.15)
    low, high = found.interval()[0]
    assert low < slope / 0.05 < high


@pytest.mark.filterwarnings("ignore:The intervals may be off")
def test_the_same_seed_gives_the_same_interval(fitted, table, ranking):
    again = gs.rank(fitted, table[0], intervals=True)
    other = gs.rank(fitted, table[0], intervals=True, seed=1)
    assert_array_equal(again.draws, ranking.draws)
    assert not np.array_equal(other.draws, ranking.draws)
    assert_allclose(other.interval(), ranking.interval(), atol=0.25 * np.ptp(ranking.interval(), axis=1).max())


@pytest.mark.parametrize(
    "measure",
    [gs.KL(), gs.KL(delta=1e-3), gs.KL(latent=True), gs.VAR(), gs.Derivative(), gs.ARD()],
    ids=lambda each: each.label,
)
def test_every_measure_has_them(fitted, table, measure):
    found = gs.rank(fitted, table[0], measure, intervals=True)
    of_function = measure.is_of_function
    assert found.draws.shape == ((N_MODELS * N_FUNCTIONS if of_function else N_MODELS_ALONE), 4)
    assert found.drawn == ("function and hyperparameters" if of_function else "hyperparameters alone")
    low, high = found.interval().T
    assert np.all(low <= high)
    assert low[0] > high[2:].max() * 0.2


def test_groups_points_and_aggregates(fitted, table):
    found = gs.rank(fitted, table[0], groups={"pair": ["x2", "x3"]}, points=20, aggregate="max", intervals=True)
    assert found.draws.shape == (N_MODELS * N_FUNCTIONS, 3)
    low, high = found.interval()[1]
    assert low < found.scores[1] < high


@pytest.mark.parametrize("measure", [gs.KL(), gs.VAR()], ids=lambda each: each.label)
def test_categories_have_them(measure):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 3, 80), rng.normal(size=80)]).astype(float)
    y = np.array([0.0, 1.0, 3.0])[X[:, 0].astype(int)] + 0.3 * rng.normal(size=80)
    gp = gs.GP(hyper=gs.MAP(starts=1)).fit(X, y)
    found = gs.rank(gp, X, measure, categorical=["x1"], intervals=True)
    low, high = found.interval().T
    assert low[0] < found.scores[0] < high[0]
    assert low[0] > high[1]


@pytest.mark.filterwarnings("ignore:The model does not predict better", "ignore:The intervals may be off")
@pytest.mark.parametrize("likelihood", ["bernoulli", "poisson", "student-t", "softmax"])
def test_every_likelihood_has_them(likelihood, table):
    X, y = table
    targets = {
        "bernoulli": y > 0,
        "poisson": np.random.default_rng(0).poisson(np.exp(y)),
        "student-t": y,
        "softmax": np.digitize(y, [-0.5, 0.5]),
    }
    gp = gs.GP(likelihood=likelihood, hyper=gs.MAP(starts=1)).fit(X[:40], targets[likelihood][:40])
    found = gs.rank(gp, X[:40], intervals=True)
    assert np.all(np.isfinite(found.draws))
    assert found.strength[:2].max() > found.strength[2:].max()
    assert found.drawn == "function and hyperparameters"


def test_of_many_features_only_the_closest_are_open():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 30))
    y = np.sin(X[:, 3]) + 0.2 * rng.normal(size=50)
    gp = gs.GP().fit(X, y)
    assert gp.used == (3,)
    closest = np.argsort(-gp.slopes)[:4]
    assert set(gp.open_columns) == {3, *closest.tolist()}
    few = gs.GP().fit(X[:, :5], y)
    assert few.open_columns == (0, 1, 2, 3, 4)


@pytest.mark.filterwarnings("ignore:The intervals may be off")
def test_noise_is_not_taken_for_strength_where_features_are_many():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 300))
    found = gs.rank(gs.GP().fit(X, 2 * X[:, 0] + 0.3 * rng.normal(size=60)), intervals=True)
    assert_allclose(found.strength[0], 2 * X[:, 0].std() / 0.3, rtol=0.4)


def test_draws_that_are_not_to_be_trusted_are_reported(fitted, table, monkeypatch):
    monkeypatch.setattr("gpsift._utils.pareto.pareto_shape", lambda log_ratios: 0.93)
    with pytest.warns(gs.GPSiftWarning, match=r"may be off \(k-hat 0\.93, above 0\.7\).*NUTS"):
        found = gs.rank(fitted, table[0], intervals=True)
    assert found.k_hat == 0.93


def test_models_of_other_kinds_have_none(table):
    X, _ = table

    def predict(X):
        return X[:, 0], np.ones(len(X))

    model = gs.as_reference(predict, family="gaussian", X_train=X)
    with pytest.raises(MissingCapability, match="does not offer draws of its function"):
        gs.rank(model, X, intervals=True)


def test_they_are_shown(ranking, tmp_path):
    lines = repr(ranking).splitlines()
    assert lines[1].split() == ["rank", "feature", "strength", "90", "%", "interval", "score"]
    assert " to " in lines[2]
    frame = ranking.to_frame()
    assert np.all((frame["lower"] <= frame["strength"]) & (frame["strength"] <= frame["upper"]))
    assert "90 % interval" in ranking._repr_html_()
    ax = ranking.plot()
    assert "90 % interval" in [text.get_text() for text in ax.get_legend().get_texts()]
    ranking.save(tmp_path / "ranking.gpsift")
    loaded = gs.load(tmp_path / "ranking.gpsift")
    assert_array_equal(loaded.interval(), ranking.interval())
    assert (loaded.k_hat, loaded.drawn) == (ranking.k_hat, ranking.drawn)


def test_without_them_they_are_made_when_asked_for_and_once(fitted, table, ranking, monkeypatch):
    later = gs.rank(fitted, table[0])
    assert later.draws is None
    assert_array_equal(later.interval(), ranking.interval())
    monkeypatch.setattr(type(fitted), "map_draws", None)  # it would be noticed
    assert_array_equal(later.rank_probability, ranking.rank_probability)
    made = later.with_intervals()
    assert_array_equal(made.draws, ranking.draws)
    assert made.k_hat == ranking.k_hat
    assert made.draw_scores is None
    assert made.with_intervals() is made
    assert later.draws is None  # a record does not change


def test_some_of_the_features_have_them_too(fitted, table, ranking):
    some = gs.rank(fitted, table[0]).of_columns([2, 0], ["c", "a"])
    assert_array_equal(some.interval(), ranking.interval()[[2, 0]])
    assert_array_equal(some.with_intervals().draws, ranking.draws[:, [2, 0]])


def test_a_ranking_that_goes_elsewhere_leaves_the_model_behind(fitted, table, tmp_path):
    later = gs.rank(fitted, table[0])
    later.save(tmp_path / "ranking.gpsift")
    assert len(pickle.dumps(later)) < len(pickle.dumps(fitted)) / 3
    for elsewhere in (gs.load(tmp_path / "ranking.gpsift"), pickle.loads(pickle.dumps(later))):
        assert_array_equal(elsewhere.scores, later.scores)
        with pytest.raises(ValueError, match=r"comes from a file or another process.*rank\(\.\.\., intervals=True\)"):
            elsewhere.interval()


def test_a_model_without_draws_of_hyperparameters_has_those_of_the_function(table):
    X, y = table
    hyper, inference = gs.Fixed(lengthscale=1.0), gs.Sparse(m=10)
    sparse = gs.GP(hyper=hyper, inference=inference, likelihood="bernoulli").fit(X, y > 0)
    found = gs.rank(sparse, X, intervals=True)
    assert found.drawn.startswith("function alone")
    assert "function alone, with the hyperparameters of the fit" in repr(found)
    assert found.k_hat is None
    assert found.interval()[0, 0] > found.interval()[2:, 0].max()
    for late in (False, True):
        with pytest.raises(MissingCapability, match="of sparse models those with Gaussian noise"):
            gs.rank(sparse, X, gs.ARD(), intervals=not late).interval()


def test_an_ensemble_has_those_of_the_functions_of_its_members(fitted, table):
    X, _ = table
    ensemble = Ensemble((fitted, fitted, fitted))
    found = gs.rank(ensemble, X)
    assert found.drawn == "function and hyperparameters"
    assert len(found.draws) == 3 * -(-N_MODELS * N_FUNCTIONS // 3)
    alone = gs.rank(ensemble, X, gs.ARD())
    assert alone.drawn == "hyperparameters alone"
    assert alone.draws.shape == (3, 4)
