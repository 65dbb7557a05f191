"""The way to be sparse that was not taken: its model, its scores, and what is said where they differ."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from toys import toy

import gpsift as gs
from gpsift.app.analysis.cautions import CLEAR_LEAD, LARGE_DIFFERENCE, find_discrepancy
from gpsift.gp.sparse.bound_search import BoundSearch
from gpsift.relevance.record_other_way import OtherScores

N = 300
X, Y = toy("normal", N, seed=3, p=4)
FIXED = gs.Fixed(lengthscale=np.array([0.8, 1.0, 1.5, 2.0]), signal_var=1.3, noise_var=0.05, constant_var=0.2)
BY_POINTS, BY_NEIGHBOURS = gs.Sparse(m=30, near_rows=0), gs.Sparse(m=30, near_rows=1500)


@pytest.fixture(scope="module")
def by_points():
    return gs.GP(hyper=FIXED, inference=BY_POINTS).fit(X, Y)


@pytest.fixture(scope="module")
def by_neighbours():
    return gs.GP(hyper=FIXED, inference=BY_NEIGHBOURS).fit(X, Y)


@pytest.mark.parametrize("measure", [gs.KL(), gs.VAR(), gs.ARD()], ids=lambda measure: measure.label)
def test_either_way_has_the_other_one_beside_it(measure, by_points, by_neighbours):
    pair = (by_points, "inducing points"), (by_neighbours, "neighbours")
    for (one, _), (other, way) in (pair, pair[::-1]):
        found = one.other_way
        assert found.way == way
        assert_array_equal(found.predict(X[:20]).mean, other.predict(X[:20]).mean)
        assert found.log_marginal_likelihood == other.log_marginal_likelihood
        assert found.quality.elpd == pytest.approx(other.quality.elpd, rel=1e-12)
        assert (found.report.n_inducing, found.report.n_blocks) == (other.report.n_inducing, other.report.n_blocks)
        assert one.lead == pytest.approx((one.quality.elpd - other.quality.elpd) / N, rel=1e-9)
        ranking, beside = gs.rank(one, measure=measure), gs.rank(other, measure=measure)
        differences = np.abs(ranking.scores - beside.scores)
        assert ranking.apart.way == way
        assert ranking.apart.share == pytest.approx(differences.max() / ranking.scores.max(), rel=1e-9)
        assert ranking.apart.feature == ranking.names[differences.argmax()]


def test_known_noise_stays_that_of_each_row():
    noise_var = np.linspace(0.01, 0.4, N)
    models = [
        gs.GP(hyper=gs.Fixed(lengthscale=1.0), inference=each).fit(X, Y, noise_var=noise_var)
        for each in (BY_POINTS, BY_NEIGHBOURS)
    ]
    assert_array_equal(models[0].other_way.predict(X[:9]).mean, models[1].predict(X[:9]).mean)


def test_the_other_way_has_its_own_hyperparameters(monkeypatch):
    found, old = [], BoundSearch.answers
    monkeypatch.setattr(BoundSearch, "answers", lambda self, first: found.extend(old(self, first)) or found)
    fitted = gs.GP(hyper=gs.ML2(starts=1), inference=BY_NEIGHBOURS).fit(X, Y)
    bound, _ = found
    # A kernel keeps values, and the logarithm of an exponential is the number itself only up to rounding.
    assert_allclose(fitted.other_way.log_params, bound.estimate.log_params, rtol=1e-13)
    assert_array_equal(fitted.other_way.posterior.Z, bound.problem.engine.Z)
    assert np.abs(fitted.log_params - bound.estimate.log_params).max() > 0.1


def test_models_that_are_not_sparse_have_no_other_way():
    exact = gs.GP(hyper=FIXED).fit(X, Y)
    classes = gs.GP(hyper=gs.Fixed(lengthscale=1.0), likelihood="bernoulli", inference=gs.Sparse(m=20)).fit(X, Y > 0)
    for model in (exact, classes):
        ranking = gs.rank(model, points=20)
        assert model.other_way is None
        assert ranking.apart is None
        assert ranking.with_other_way() is ranking


def test_scores_of_the_other_way_are_at_the_points_of_the_ranking(by_points, by_neighbours):
    asked = {"X": X[:40] + 0.1, "groups": {"pair": ["x1", "x3"]}, "aggregate": "max"}
    ranking = gs.rank(by_points, **asked).with_other_way()
    assert_array_equal(ranking.other_way.scores, gs.rank(by_neighbours, **asked).scores)
    fewer = gs.rank(by_points, **asked).of_columns([1, 0], ["b", "a"])
    assert_array_equal(fewer.with_other_way().other_way.scores, ranking.other_way.scores[[1, 0]])
    assert_array_equal(ranking.of_columns([1, 0], ["b", "a"]).other_way.scores, ranking.other_way.scores[[1, 0]])


def test_files_keep_the_other_way(by_points, tmp_path):
    expected = gs.rank(by_points, points=30).apart
    by_points.save(tmp_path / "model.gpsift")
    gs.rank(by_points, points=30).with_other_way().save(tmp_path / "with.gpsift")
    gs.rank(by_points, points=30).save(tmp_path / "without.gpsift")
    assert gs.rank(gs.load(tmp_path / "model.gpsift"), points=30).apart == expected
    assert gs.load(tmp_path / "with.gpsift").apart == expected
    assert gs.load(tmp_path / "without.gpsift").apart is None


def test_a_large_difference_of_ways_that_are_as_good_is_told(by_points):
    ranking = gs.rank(by_points, points=30)
    top = ranking.scores.max()

    def told(share, lead):
        moved = ranking.scores + np.array([0.0, 0.0, share * top, 0.0])
        return replace(ranking, other_way=OtherScores("neighbours", lead, moved))

    assert not find_discrepancy(told(0.9 * LARGE_DIFFERENCE, 0.0))
    assert not find_discrepancy(told(2 * LARGE_DIFFERENCE, 2 * CLEAR_LEAD))
    (finding,) = find_discrepancy(told(2 * LARGE_DIFFERENCE, 0.5 * CLEAR_LEAD))
    sentence = (
        "The other way to be sparse (neighbours) predicts rows that were left out worse by 0.01 nats each, and gives "
        "scores that differ by at most 0.2 of the top one (x3)."
    )
    assert finding.detail == sentence
    assert sentence in repr(told(0.2, 0.01))
    assert "sparse" not in repr(ranking)
    assert "better by 0.5 nats" in repr(told(0.2, -0.5))


def test_ways_of_which_one_uses_nothing_are_apart_by_its_scores():
    other = OtherScores("neighbours", 0.0, np.array([0.0, 2.0]))
    assert other.apart(np.zeros(2), ["a", "b"]).share == 1.0
    assert_allclose(OtherScores("neighbours", 0.0, np.zeros(2)).apart(np.zeros(2), ["a", "b"]).share, 0.0)
