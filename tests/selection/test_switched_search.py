"""Searches along a model that leaves features switched off, and what they say where nothing explains."""

import math

import numpy as np
import pytest

import gpsift as gs
from gpsift.selection.search import n_candidate_units
from gpsift.selection.submodels import submodel

QUIET = gs.Work(progress=False)
SIFT = gs.GP(hyper=gs.Sift())


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 40))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=60)


@pytest.mark.parametrize("order", [None, gs.Backward(), "projection"])
def test_active_features_come_first_and_sizes_end_soon_after_them(wide, order):
    gp = SIFT.fit(*wide)
    path = gs.search(*wide, order, model=SIFT, work=QUIET)
    assert sorted(path.units(len(gp.used))) == sorted(gp.report.sift.active)
    assert path.sizes[-1] == len(gp.used) + len(gp.report.sift.close) < 40
    assert path.suggestion.size == 2
    assert sorted(path.order) == list(range(40))


def test_folds_sift_anew(wide):
    path = gs.search(*wide, cv=3, model=SIFT, work=QUIET)
    assert {path.names[j] for j in path.order[:2]} == {"x1", "x2"}
    assert all(set(order[:2]) == {0, 1} for order in path.fold_orders)
    assert path.suggestion.size == 2


def test_forced_units_count(wide):
    features = gs.Features(groups={"pair": ["x1", "x9"]}, force="x30")
    gp = SIFT.fit(*wide)
    units = features.units(gp.inputs.names)
    path = gs.search(*wide, model=SIFT, features=features, work=QUIET)
    assert path.units(3) == ["x30", *path.units(3)[1:]]
    assert set(path.units(3)) == {"x30", "pair", "x2"}
    assert path.sizes[-1] == n_candidate_units(gp, units)


def test_submodels_have_the_prior_of_what_is_active():
    sift = gs.Sift(prior=gs.MAP(starts=1, seed=7))
    assert submodel(gs.GP(hyper=sift), [0, 1], starts=2).hyper == gs.MAP(starts=2, seed=7)
    assert submodel(gs.GP(hyper=sift), list(range(40)), starts=None).hyper is sift


def test_a_search_over_many_features_says_what_to_do(monkeypatch, wide):
    monkeypatch.setattr("gpsift.selection.search.MANY_FEATURES", 2)
    X, y = wide
    with pytest.warns(gs.GPSiftWarning, match=r"hyper=Sift\(\)"):
        gs.search(X[:, :3], y, model=gs.GP(hyper=gs.MAP(starts=1)), work=QUIET)


@pytest.mark.filterwarnings("ignore::gpsift.GPSiftWarning")
@pytest.mark.parametrize("hyper", [gs.ML2(starts=1), gs.MAP(starts=1), gs.Sift()], ids=["ml2", "map", "sift"])
def test_noise_gets_size_0_by_every_rule(hyper):
    rng = np.random.default_rng(0)
    path = gs.search(rng.normal(size=(80, 6)), rng.normal(size=80), model=gs.GP(hyper=hyper), work=QUIET)
    assert not path.explains
    for rule in ("one-se", "negligible", "explained"):
        suggestion = gs.suggest_size(path, rule)
        assert suggestion.size == 0
        assert suggestion.features == ()
        assert "no feature is shown to help" in suggestion.reason


@pytest.mark.filterwarnings("ignore::gpsift.GPSiftWarning")
def test_a_full_model_that_overfits_does_not_hide_a_submodel_that_explains():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 120))
    y = 2 * X[:, 0] + 0.5 * rng.normal(size=40)
    model = gs.GP(hyper=gs.ML2(starts=1))
    assert not model.fit(X, y).explains  # it has 122 hyperparameters for 40 rows
    path = gs.search(X, y, model=model, sizes=3, work=QUIET)
    assert path.explains


def test_the_price_of_a_choice_is_the_logarithm_of_the_number_of_choices(wide):
    quality = SIFT.fit(*wide).quality
    price = math.log(math.comb(40, 2))
    for gain, explains in ((quality.n_searched + price + 0.01, True), (quality.n_searched + price - 0.01, False)):
        changed = gs.Quality(**{**vars(quality), "evidence_gain": gain})
        assert changed.explains_as_chosen(2, 40) is explains
        assert changed.explains_as_chosen(40, 40)


def test_samples_sift_anew_and_what_no_sample_uses_is_summed_up(wide):
    found = gs.stability(*wide, n_splits=3, model=SIFT, work=QUIET)
    used = int(found.scores.any(axis=0).sum())
    assert {found.names[j] for j in found.order[:2]} == {"x1", "x2"}
    assert found.n_shown == used < 40
    assert (found.ranks[found.scores == 0] == 40).all()
    assert f"and {40 - used} others, not used in any sample" in repr(found)
    assert found.in_first(2)[[0, 1]].tolist() == [1.0, 1.0]
    assert found.in_first(5)[2:][found.scores[:, 2:].max(axis=0) == 0].sum() == 0


def test_entropy_matches_the_table_of_counts():
    scores = np.random.default_rng(0).normal(size=(7, 5))
    found = gs.Stability("KL()", tuple("abcde"), scores, 10, 0)
    shares = found.counts / 7
    by_hand = [-sum(s * math.log(s) for s in column if s > 0) / math.log(5) for column in shares.T]
    np.testing.assert_allclose(found.entropy, by_hand, atol=1e-12)
