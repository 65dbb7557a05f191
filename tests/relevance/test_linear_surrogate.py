"""Scores of draws that no posterior was made for, against scores that are known everywhere."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import gpsift as gs
from gpsift.reference.base import DrawRequest
from gpsift.relevance.intervals import add_surrogate_scores, is_linear


def bent(places):
    """Scores whose roots are no lines: a product of coordinates, an exponential function, a square."""
    u, v, w = places.T[:3]
    return np.column_stack([(3.0 + u + 0.1 * v * w) ** 2, np.exp(0.5 * v - 0.3 * w), (2.0 + 0.5 * w + 0.1 * u) ** 4])


def ends(scores):
    return np.quantile(scores, [0.05, 0.95], axis=0)


def test_squares_of_lines_are_found_between_the_draws():
    places = np.linspace(-1.0, 1.0, 40)[:, None]
    others = np.linspace(-0.9, 0.9, 7)[:, None]
    found = add_surrogate_scores(places, (3.0 + places) ** 2, others)
    assert_array_equal(found[:40], (3.0 + places) ** 2)
    assert_allclose(found[40:], (3.0 + others) ** 2, rtol=1e-10)


def test_ends_are_nearer_to_those_of_many_draws():
    """Than those of the draws alone, over many seeds."""
    truth = ends(bent(np.random.default_rng(0).standard_normal((200_000, 6))))
    alone, with_more = [], []
    for seed in range(30):
        places = np.random.default_rng([1, seed]).standard_normal((500, 6))
        scores = bent(places[:56])
        alone.append(ends(scores) - truth)
        with_more.append(ends(add_surrogate_scores(places[:56], scores, places[56:])) - truth)
    spread, spread_alone = np.std(with_more, axis=0), np.std(alone, axis=0)
    assert np.all(spread < spread_alone)
    assert np.mean(spread / spread_alone) < 0.7
    assert np.all(np.abs(np.mean(with_more, axis=0)) < 0.5 * spread_alone)


def test_permuted_columns_permute_scores():
    places = np.random.default_rng(2).standard_normal((300, 4))
    scores = bent(places[:40])
    order = [2, 0, 1]
    found = add_surrogate_scores(places[:40], scores, places[40:])
    assert_allclose(add_surrogate_scores(places[:40], scores[:, order], places[40:]), found[:, order], rtol=1e-9)


def test_scores_stay_what_they_can_be():
    """None is below the smallest that was found, and what is the same in all draws stays so."""
    places = np.random.default_rng(3).standard_normal((400, 3))
    scores = np.column_stack([bent(places[:30]), -((4.0 + places[:30, 0]) ** 2), np.zeros(30), np.full(30, 0.7)])
    found = add_surrogate_scores(places[:30], scores, places[30:])
    assert_array_equal(found.min(axis=0), scores.min(axis=0))
    assert found[:, 1].max() > scores[:, 1].max()  # a line is beyond the highest, and its score, too
    assert_array_equal(found[:, 4:], np.tile([0.0, 0.7], (400, 1)))


def test_lines_that_leave_much_are_none():
    """By what they leave of draws that are left out, in the mean over scores."""
    rng = np.random.default_rng(5)
    places, noise = rng.standard_normal((60, 5)), rng.standard_normal((60, 1))
    for share, expected in ((0.02, True), (0.12, True), (0.4, False), (0.9, False)):
        roots = 10.0 + np.sqrt(1.0 - share) * places[:, :1] + np.sqrt(share) * noise
        assert is_linear(places, roots**2) == expected
    assert not is_linear(places, (10.0 + rng.standard_normal((60, 2))) ** 2)  # 6 coefficients fit noise, too


def test_what_lines_leave_is_that_of_draws_which_they_do_not_know():
    """Coefficients fit half of the noise of 24 draws: they leave less than 0.2, and more of draws that are new."""
    rng = np.random.default_rng(6)
    places = rng.standard_normal((24, 10))
    roots = 20.0 + np.sqrt(0.75) * places[:, :8] + np.sqrt(0.25) * rng.standard_normal((24, 8))
    design = np.column_stack([np.ones(24), places])
    left = roots - design @ np.linalg.lstsq(design, roots, rcond=None)[0]
    assert np.mean(left.var(axis=0) / roots.var(axis=0)) < 0.19
    assert not is_linear(places, roots**2)


@pytest.mark.parametrize("n", [4, 9])
def test_too_few_draws_have_no_others(n):
    places = np.random.default_rng(4).standard_normal((50, 4))
    scores = (9.0 + places) ** 2
    assert not is_linear(places[:n], scores[:n])
    assert is_linear(places[:12], scores[:12])
    assert len(add_surrogate_scores(places[:12], scores[:12], places[12:])) == 50
    assert len(add_surrogate_scores(places[:12], scores[:12], places[:0])) == 12


def test_ends_of_a_model_are_those_of_many_of_its_draws():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 4))
    y = np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=60)
    gp = gs.GP().fit(X, y)
    low, high = ends(gp.map_draws(lambda model: gs.rank(model, X).scores, DrawRequest(1200, 7)).values)
    found_low, found_high = ends(gs.rank(gp, X, intervals=True).draws)
    assert np.all(np.abs(found_low - low) < 0.1 * (high - low))
    assert np.all(np.abs(found_high - high) < 0.15 * (high - low))
