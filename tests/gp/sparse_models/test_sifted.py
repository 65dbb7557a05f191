"""A sift of many rows: what a sample has left off is tried again with more of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import gpsift as gs
from gpsift.gp.hyperparameters.restarts import INACTIVE
from gpsift.gp.hyperparameters.stepwise import selection_penalty
from gpsift.gp.sparse.search import StepwiseRefinement

SPARSE = gs.Sparse(m=40)


@pytest.fixture
def rows():
    """A strong effect, and one that sixty rows do not see."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(600, 6))
    return X, 2.0 * X[:, 1] + 0.035 * X[:, 4] + 0.2 * rng.normal(size=600)


@pytest.fixture
def few_are_sifted(monkeypatch):
    monkeypatch.setattr("gpsift.gp.sparse.search.MANY_ROWS", 100)
    monkeypatch.setattr("gpsift.gp.sparse.search.FIRST_ROWS", 60)
    monkeypatch.setattr("gpsift.gp.sparse.search.EXACT_ROWS", 100)
    monkeypatch.setattr("gpsift.gp.sparse.vecchia.evidence.NEAR_ROWS", 50)
    monkeypatch.setattr("gpsift.gp.sparse.vecchia.evidence.FAR_ROWS", 20)
    return monkeypatch


@pytest.mark.parametrize("near_rows", [0, 50], ids=["points", "neighbours"])
def test_more_rows_switch_on_what_few_have_left_off(rows, few_are_sifted, near_rows):
    X, y = rows
    model = gs.GP(inference=gs.Sparse(m=40, near_rows=near_rows), hyper=gs.Sift())
    gp = model.fit(X, y)
    report = gp.report.sift
    assert set(report.active) == {"x2", "x5"}
    assert report.steps[-1].features == ("x5",)
    assert report.steps[-1].gain > report.steps[-1].toll > 0.0
    assert_array_equal(np.isinf(gp.lengthscale), [True, False, True, True, False, True])
    assert_array_equal(np.isneginf(report.slopes), [False, True, False, False, True, False])
    assert not set(dict(report.close)) & set(report.active)
    assert_array_equal(gs.rank(gp).scores > 0.0, np.isfinite(gp.lengthscale))
    few_are_sifted.setattr("gpsift.gp.sparse.search.MANY_ROWS", 1000)
    assert model.fit(X, y).report.sift.active == ("x2",)


def test_counts_too(few_are_sifted):
    few_are_sifted.setattr("gpsift.gp.sparse.search.LAPLACE_ROWS", 60)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(800, 4))
    y = rng.poisson(np.exp(1.0 + 0.8 * X[:, 0] + 0.08 * X[:, 2])).astype(float)
    gp = gs.GP(likelihood="poisson", inference=SPARSE, hyper=gs.Sift()).fit(X, y)
    assert set(gp.report.sift.active) == {"x1", "x3"}
    assert gp.report.sift.steps[-1].features == ("x3",)


@pytest.mark.filterwarnings("ignore::gpsift.GPSiftWarning")  # that points are too few where nothing pays
@pytest.mark.usefixtures("few_are_sifted")
def test_a_group_comes_back_as_one_and_owes_one_toll(rows):
    X, y = rows
    groups = {"pair": ["x5", "x6"]}
    report = gs.GP(inference=SPARSE, hyper=gs.Sift(groups=groups)).fit(X, y).report.sift
    assert {"x2", "pair"} <= set(report.active)
    new, k = report.steps[-1], len(report.active)
    assert "pair" in new.features
    assert new.toll == pytest.approx(selection_penalty(k, 5) - selection_penalty(k - len(new.features), 5))
    alone = gs.GP(inference=SPARSE, hyper=gs.Sift(groups=groups, toll=1000.0)).fit(X, y).report.sift
    assert "pair" not in alone.active


def test_no_more_than_may_be_active_are_tried(rows, few_are_sifted):
    """What is on, and the steepest of the others."""
    X, y = rows
    seen, old = [], StepwiseRefinement.reactivate
    few_are_sifted.setattr(StepwiseRefinement, "reactivate", lambda self, at: seen.append((self, at)) or old(self, at))
    gs.GP(inference=SPARSE, hyper=gs.Sift(max_active=3)).fit(X, y)
    tried, first = seen[0]
    assert len(tried.units) == 3
    assert tried.names[tried.units[0]] == "x2"
    slopes = np.array(tried.report.slopes)
    assert min(slopes[tried.units[1:]]) >= max(np.delete(slopes, tried.units))
    assert len(tried.active(old(tried, first))) == 3


def test_what_is_on_but_idle_comes_back_too(rows, few_are_sifted):
    """Fewer rows may leave a feature at a length-scale at which all is flat: a search would not see it again."""
    X, y = rows
    seen, old = [], StepwiseRefinement.reactivate
    few_are_sifted.setattr(StepwiseRefinement, "reactivate", lambda self, at: seen.append(self) or old(self, at))
    gs.GP(inference=SPARSE, hyper=gs.Sift()).fit(X, y)
    tried, start = seen[0], seen[0].problem.log_params
    lengths = np.exp(start[:6])
    at = start.copy()
    at[:6] = np.log(lengths * [1.0, 50.0, np.inf, 0.2, 9.0, 11.0])
    found = np.exp(old(tried, at)[:6]) / lengths
    (back,) = INACTIVE.values
    assert_allclose(found, [1.0, back, back, 0.2, 9.0, back])
    assert_array_equal(old(tried, at)[6:], at[6:])


@pytest.mark.filterwarnings("ignore::gpsift.GPSiftWarning")  # that it explains nothing
@pytest.mark.usefixtures("few_are_sifted")
def test_noise_stays_off():
    rng = np.random.default_rng(3)
    gp = gs.GP(inference=SPARSE, hyper=gs.Sift()).fit(rng.normal(size=(500, 4)), rng.normal(size=500))
    assert gp.report.sift.active == ()
    assert_array_equal(gs.rank(gp).scores, 0.0)


def test_length_scales_are_compared_in_units_of_their_inputs(rows, few_are_sifted):
    """A model that is not standardised has the same answer whatever the units are."""
    few_are_sifted.setattr("gpsift.gp.sparse.search.ENOUGH_KEPT", 2)  # after the two true ones nothing is tried
    X, y = rows
    model = gs.GP(inference=SPARSE, hyper=gs.Sift(), standardize=False)
    for scale in (np.ones(6), np.array([1e-3, 1.0, 1e3, 1.0, 1e-2, 1e2])):
        assert set(model.fit(X * scale, y).report.sift.active) == {"x2", "x5"}
