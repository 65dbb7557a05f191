"""Intervals of scores: which models have them, what they hold, and what is said of them."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import gpsift as gs
from gpsift.gp.hyperparameters.laplace_approximation import LaplaceApproximation
from gpsift.gp.refit import dense_problem
from gpsift.reference.base import DrawRequest, MissingCapability
from gpsift.relevance.intervals import MOST_SCORED, N_DRAWS, N_SCORED


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
    assert ranking.draws.shape == (N_DRAWS, 4)


def test_scores_of_draws_are_those_of_models_with_their_hyperparameters(ranking, fitted, table):
    X, y = table
    assert fitted.used == (0, 1)
    all_open = fitted.on_columns(range(4))
    draws = LaplaceApproximation.fit(dense_problem(all_open), all_open.log_params).draws(3, seed=0)
    for draw, found in zip(draws, ranking.draws, strict=False):
        *lengthscale, signal_var, constant_var, noise_var = np.exp(draw.log_params)
        given = gs.Fixed(lengthscale=lengthscale, signal_var=signal_var, constant_var=constant_var, noise_var=noise_var)
        assert_allclose(found, gs.rank(gs.GP(hyper=given).fit(X, y), X).scores, rtol=1e-6, atol=1e-9)


def test_what_is_used_is_above_zero_and_what_is_not_stays_open(ranking):
    low, high = ranking.interval().T
    assert np.all(low[:2] > 0.3)
    assert np.all((low[:2] < ranking.scores[:2]) & (ranking.scores[:2] < high[:2]))
    assert np.all((low[2:] >= 0) & (low[2:] < 0.1) & (high[2:] > 0.02))
    assert_allclose(ranking.rank_probability.sum(axis=1), 1.0)
    assert_allclose(ranking.in_first_probability(2)[:2], 1.0)


def test_a_score_is_in_its_interval_even_where_all_draws_are_beyond_it(ranking):
    beyond = replace(ranking, scores=np.array([9.0, *ranking.scores[1:]]))
    assert_array_equal(ranking.scores[2:], 0.0)
    assert np.all(ranking.draws[:, 2:] > 0.0)
    for record in (ranking, beyond):
        for level in (0.5, 0.9):
            low, high = record.interval(level).T
            assert np.all((low <= record.scores) & (record.scores <= high))
            ends = np.quantile(record.draws, [0.5 - level / 2, 0.5 + level / 2], axis=0)
            assert_array_equal(low, np.minimum(ends[0], record.scores))
            assert_array_equal(high, np.maximum(ends[1], record.scores))
    frame = beyond.to_frame()
    assert np.all((frame["lower"] <= frame["score"]) & (frame["score"] <= frame["upper"]))


@pytest.mark.filterwarnings("ignore:The intervals of the scores may be off")
def test_the_same_seed_gives_the_same_interval(fitted, table, ranking):
    again = gs.rank(fitted, table[0], intervals=True)
    other = gs.rank(fitted, table[0], intervals=True, seed=1)
    assert_array_equal(again.draws, ranking.draws)
    assert not np.array_equal(other.draws, ranking.draws)
    assert_allclose(other.interval(), ranking.interval(), atol=0.25 * np.ptp(ranking.interval(), axis=1).max())


@pytest.mark.parametrize("measure", [gs.KL(), gs.VAR(), gs.Derivative(), gs.ARD()], ids=lambda each: each.label)
def test_every_measure_has_them(fitted, table, measure):
    found = gs.rank(fitted, table[0], measure, intervals=True)
    assert found.draws.shape in ((N_DRAWS, 4), (MOST_SCORED, 4))
    low, high = found.interval().T
    assert np.all(low <= high)
    assert low[0] > high[2:].max() * 0.2


def test_groups_points_and_aggregates(fitted, table):
    found = gs.rank(fitted, table[0], groups={"pair": ["x2", "x3"]}, points=20, aggregate="max", intervals=True)
    assert found.draws.shape == (N_DRAWS, 3)
    low, high = found.interval()[1]
    assert low < found.scores[1] < high


def test_more_draws_are_scored_where_those_that_are_are_not_enough(fitted, table, monkeypatch):
    monkeypatch.setattr("gpsift.relevance.intervals.MOST_LEFT", 0.0)
    without = gs.rank(fitted, table[0], intervals=True)
    assert len(without.draws) == MOST_SCORED
    monkeypatch.setattr("gpsift.relevance.intervals.MOST_LEFT", 1.0)
    with_lines = gs.rank(fitted, table[0], intervals=True)
    assert len(with_lines.draws) == N_DRAWS
    assert_array_equal(with_lines.draws[:N_SCORED], without.draws[:N_SCORED])
    assert not np.any(np.all(np.isclose(with_lines.draws[N_SCORED:MOST_SCORED], without.draws[N_SCORED:]), axis=1))


def test_a_model_stops_where_draws_are_enough(fitted):
    seven = DrawRequest(12, 0, 5, lambda places, values: len(values) == 7)
    stopped = fitted.map_draws(lambda model: model.noise_var, seven)
    whole = fitted.map_draws(lambda model: model.noise_var, DrawRequest(12, 0, 5))
    assert (len(stopped.values), len(whole.values)) == (7, 12)
    assert (stopped.stopped, whole.stopped) == (True, False)
    assert_array_equal(stopped.values, whole.values[:7])
    assert_array_equal(
        np.concatenate([stopped.coordinates, stopped.unscored]), np.concatenate([whole.coordinates, whole.unscored])
    )
    assert len(whole.unscored) == 5


@pytest.mark.filterwarnings("ignore:The model does not predict better")
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
    values, k_hat, *_ = gp.map_draws(lambda model: gs.rank(model, X[:40]).scores, DrawRequest(12, 0))
    assert np.shape(values) == (12, 4)
    assert np.all(np.isfinite(values))
    assert np.median(values, axis=0)[:2].max() > np.median(values, axis=0)[2:].max()
    assert k_hat <= np.inf


def test_beyond_twenty_features_only_the_closest_are_open():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 30))
    y = np.sin(X[:, 3]) + 0.2 * rng.normal(size=50)
    gp = gs.GP().fit(X, y)
    assert gp.used == (3,)
    assert len(gp.open_columns) == 20
    assert 3 in gp.open_columns
    closest = np.argsort(-gp.slopes)[:19]
    assert set(gp.open_columns) == {3, *closest.tolist()}


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
    with pytest.raises(MissingCapability, match="does not say how far the data leave its hyperparameters open"):
        gs.rank(model, X, intervals=True)


def test_they_are_shown(ranking, tmp_path):
    lines = repr(ranking).splitlines()
    assert lines[1].split() == ["rank", "feature", "score", "90", "%", "interval"]
    assert " to " in lines[2]
    frame = ranking.to_frame()
    assert np.all(frame["lower"] <= frame["upper"])
    ax = ranking.plot()
    assert "90 % interval" in [text.get_text() for text in ax.get_legend().get_texts()]
    ranking.save(tmp_path / "ranking.gpsift")
    loaded = gs.load(tmp_path / "ranking.gpsift")
    assert_array_equal(loaded.interval(), ranking.interval())
    assert loaded.k_hat == ranking.k_hat


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


def test_what_has_none_says_so_when_it_is_asked(table):
    X, y = table
    hyper, inference = gs.Fixed(lengthscale=1.0), gs.Sparse(m=10)
    sparse = gs.GP(hyper=hyper, inference=inference, likelihood="bernoulli").fit(X, y > 0)
    for late in (False, True):
        with pytest.raises(MissingCapability, match="of sparse models those with Gaussian noise"):
            gs.rank(sparse, X, intervals=not late).interval()
