"""The course of a curve in words, against curves whose course is known."""

import numpy as np
import pytest

from gpsift.decomposition.course import describe_curve

X = np.linspace(-2.0, 2.0, 41)
SURE = 1e-8 * np.eye(41)
ROWS = np.zeros((0, 41))


def course(mean, covariance=SURE, individual=ROWS, x=X, labels=()):
    return describe_curve(x, np.asarray(mean, dtype=float), covariance, individual, labels)


@pytest.mark.parametrize(
    ("mean", "told"),
    [
        (3 * X, "up"),
        (-X, "down"),
        (np.exp(X), "up, bent"),
        (-np.exp(X), "down, bent"),
        (X**2, "down to 0, then up"),
        (1 - (X - 0.5) ** 2, "up to 0.5, then down"),
        (np.sin(3 * X), "up and down, turns at -1.6, -0.5, 0.5, 1.6"),
        (np.zeros(41), "nothing clear"),
    ],
)
def test_known_curves_have_their_words(mean, told):
    assert course(mean).told == told


def test_what_is_open_is_not_told():
    wiggle = X + 0.5 * np.sin(6 * X)
    assert len(course(wiggle).turns) > 0
    unsure = course(wiggle, 0.09 * np.eye(41))
    assert (unsure.told, unsure.turns) == ("up", ())
    assert course(wiggle, 100 * np.eye(41)).told == "nothing clear"


def test_small_wiggles_are_no_turns_however_sure():
    found = course(X + 0.06 * np.sin(25 * X))
    assert np.any(np.diff(X + 0.06 * np.sin(25 * X)) < 0)
    assert (found.told, found.turns) == ("up", ())


def test_a_common_shift_makes_nothing_less_sure():
    shift = np.full((41, 41), 1e4)
    found = course(X**2, SURE + shift)
    assert found.told == "down to 0, then up"
    assert found.span_sd < 1e-2


def test_span_and_its_sd_are_those_of_the_difference():
    root = np.random.default_rng(0).normal(size=(41, 41))
    covariance = 1e-3 * root @ root.T
    found = course(3 * X, covariance)
    difference = np.zeros(41)
    difference[[0, -1]] = -1, 1
    assert (found.lowest, found.highest) == (0, 40)
    assert found.span == pytest.approx(12)
    assert found.span_sd == pytest.approx(np.sqrt(difference @ covariance @ difference))


def test_mirrored_curves_turn_at_mirrored_places():
    mean = np.sin(2 * X + 0.4) + 0.2 * X
    there, back = course(mean), course(mean[::-1])
    assert back.turns == pytest.approx(tuple(-turn for turn in there.turns[::-1]), abs=1e-12)
    assert back.moves == tuple(-move for move in there.moves[::-1])


def test_without_a_band_the_mean_speaks():
    found = course(X**2, np.full((41, 41), np.nan))
    assert found.told == "down to 0, then up"
    assert np.isnan(found.span_sd)


def test_rows_that_cross_are_told():
    crossing = np.outer([-2.0, -1.0, 1.0, 2.0], X)
    assert course(0.01 * X, 0.01 * np.eye(41), crossing).told == "nothing on average, but rows differ"
    assert not course(3 * X, SURE, 3 * np.outer([0.9, 1.0, 1.1], X)).rows_differ


def test_levels_are_named_and_not_walked_along():
    found = course([0.5, -1.0, 2.0], 1e-4 * np.eye(3), np.zeros((0, 3)), np.arange(3.0), ("red", "green", "blue"))
    assert found.told == "green lowest, blue highest"
    assert not found.is_bent
    unsure = course([0.5, -1.0, 2.0], 9 * np.eye(3), np.zeros((0, 3)), np.arange(3.0), ("red", "green", "blue"))
    assert unsure.told == "nothing clear"


@pytest.mark.parametrize("n", [1, 2])
def test_few_values_are_never_bent(n):
    found = course(np.arange(n), 1e-8 * np.eye(n), np.zeros((0, n)), np.arange(float(n)))
    assert not found.is_bent
    assert found.told == ("up" if n == 2 else "nothing clear")
