"""Which pairs act together: found where they are, not found where none are, and where in the data."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import gpsift as gs
from gpsift._utils.text import percent

MAP = gs.MAP(starts=1)


def product(n=120, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, X[:, 0] * X[:, 2] + X[:, 1] + 0.3 * rng.normal(size=n)


@pytest.fixture(scope="module")
def fitted():
    return gs.GP(hyper=MAP).fit(*product())


@pytest.fixture(scope="module")
def found(fitted):
    return gs.interactions(fitted, pairs=[("x4", "x2")])


def test_a_product_is_found_and_nothing_else(found):
    assert found.found == (("x1", "x3"),)
    assert found.told == "1 pair acts together: x1 with x3."
    assert_array_equal(found.pairs[0], [0, 2])


def test_shares_are_those_of_variance_shares(fitted, found):
    assert_allclose(found.share, gs.variance_shares(fitted).pairs, rtol=1e-10)


def test_no_interaction_in_a_sum_of_curves():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1.7, 1.7, size=(120, 4))
    y = 2 * np.sin(1.5 * X[:, 0]) + X[:, 1] ** 2 + 1.5 * X[:, 2] + 0.5 * rng.normal(size=120)
    found = gs.interactions(gs.GP(hyper=MAP).fit(X, y))
    assert found.found == ()
    assert found.told.startswith("No interaction found")


def test_a_model_of_nothing_has_no_pairs():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3))
    found = gs.interactions(gs.GP().fit(X, rng.normal(size=60)))
    assert found.found == ()
    assert found.pairs.shape == (0, 2)
    assert_array_equal(found.evidence, 0.0)


def test_evidence_is_share_over_what_is_undecided(found):
    assert_allclose(found.evidence, found.evidence.T, rtol=1e-12)
    assert found.evidence[0, 2] > found.least_evidence > found.evidence[0, 1]


def test_local_strength_matches_finite_differences(fitted, found):
    X, h = fitted.inputs.X[:20], 1e-3
    sd = fitted.inputs.X.std(axis=0)

    def mean(i, j):
        moved = X.copy()
        moved[:, 0] += i * h * sd[0]
        moved[:, 2] += j * h * sd[2]
        return fitted.predict(moved).mean

    second = (mean(1, 1) - mean(1, -1) - mean(-1, 1) + mean(-1, -1)) / (4 * h * h)
    expected = np.abs(second) / np.sqrt(fitted.predict(X).var)
    assert_allclose(found.local[:20, 0], expected, rtol=1e-4)
    strongest = found.where("x3", "x1")[0]
    assert found.local[strongest, 0] == found.local[:, 0].max()


def test_features_that_are_off_do_not_act_with_any():
    X, y = product()
    sifted = gs.GP().fit(np.column_stack([X, np.random.default_rng(5).normal(size=len(X))]), y)
    assert 4 not in sifted.used
    found = gs.interactions(sifted)
    assert found.found == (("x1", "x3"),)
    assert_array_equal(found.share[4], 0.0)
    assert np.all(np.isfinite(found.local))


def test_surfaces_are_averages_of_predictions(fitted, found):
    surface = found.surface("x3", "x1")
    assert surface.names == ("x1", "x3")
    moved = fitted.inputs.X.copy()
    moved[:, 0], moved[:, 2] = surface.x[5], surface.y[9]
    assert_allclose(surface.mean[5, 9], fitted.predict(moved).mean.mean(), rtol=1e-8)
    assert found.surface("x2", "x4").names == ("x2", "x4")


def test_a_category_has_a_surface_of_levels():
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.normal(size=90), rng.integers(0, 3, size=90)])
    y = X[:, 0] * (X[:, 1] == 1) + 0.2 * rng.normal(size=90)
    found = gs.interactions(gs.GP(hyper=MAP).fit(X, y), categorical=["x2"])
    assert found.found == (("x1", "x2"),)
    surface = found.surfaces[0]
    assert surface.y_labels == ("0", "1", "2")
    assert surface.mean.shape[1] == 3
    ax = found.plot(("x1", "x2"))
    assert [line.get_label() for line in ax.lines] == ["0", "1", "2"]
    assert_array_equal(ax.lines[1].get_ydata(), surface.mean[:, 1])
    plt.close("all")
    assert np.all(np.isnan(found.local))


def test_refusals(fitted, found):
    with pytest.raises(ValueError, match="no two features; they are x1"):
        gs.interactions(fitted, pairs=[("x1", "x9")])
    with pytest.raises(ValueError, match="must hold pairs"):
        gs.interactions(fitted, pairs=["x1"])
    with pytest.raises(ValueError, match="There is no surface of x1 and x4; ask for it"):
        found.surface("x1", "x4")
    with pytest.raises(ValueError, match="not among the"):
        found.where("x1", "x1")


def test_pictures_draw_what_is_found(found):
    ax = found.plot()
    assert [text.get_text() for text in ax.texts] == [percent(found.share[0, 2], 1)]
    assert ax.get_title() == "1 pair found"
    surface = found.plot(("x1", "x3"))
    assert (surface.get_xlabel(), surface.get_ylabel()) == ("x1", "x3")
    assert len(surface.collections[-1].get_offsets()) == 120
    plt.close("all")


def test_the_frame_has_all_pairs(found):
    frame = found.to_frame()
    assert len(frame) == 6
    assert list(frame.iloc[0][["first", "second", "found"]]) == ["x1", "x3", True]
    assert "* x1, x3" in repr(found)
