"""Intervals over splits."""

import numpy as np
import pytest
from scipy import stats

from gpsift.paper.reproduce.claims import corrected_interval, normalised_entropy, plain_interval


def test_a_plain_interval_is_students(rng):
    values = rng.normal(size=20)
    interval = plain_interval(values)
    low, high = stats.t.interval(0.95, 19, loc=values.mean(), scale=stats.sem(values))
    assert (interval.low, interval.high) == pytest.approx((low, high))


def test_overlapping_training_sets_widen_it(rng):
    values = rng.normal(size=50)
    plain, corrected = plain_interval(values), corrected_interval(values, n_train=300, n_test=206)
    ratio = (corrected.high - corrected.mean) / (plain.high - plain.mean)
    assert ratio == pytest.approx(np.sqrt((1 / 50 + 206 / 300) * 50))


def test_the_correction_covers_the_truth_where_the_plain_interval_does_not():
    """Means over random splits of one sample: the interval is for the population, which has mean 0."""
    rng = np.random.default_rng(0)
    covered = {"plain": 0, "corrected": 0}
    for _ in range(300):
        sample = rng.normal(size=60)
        means = np.array([rng.permutation(sample)[:12].mean() for _ in range(20)])
        plain, corrected = plain_interval(means), corrected_interval(means, n_train=48, n_test=12)
        covered["plain"] += plain.low < 0 < plain.high
        covered["corrected"] += corrected.low < 0 < corrected.high
    assert covered["plain"] / 300 < 0.75
    assert covered["corrected"] / 300 > 0.9


def test_one_value_decides_nothing():
    interval = corrected_interval(np.array([3.0]), 10, 5)
    assert interval.mean == 3
    assert not interval.above_zero
    assert not interval.below_zero


def test_entropy_by_hand():
    orders = np.array([[0, 1, 2], [0, 2, 1], [0, 1, 2], [1, 0, 2]])
    first = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25)) / np.log(3)
    second = -(2 * 0.25 * np.log(0.25) + 0.5 * np.log(0.5)) / np.log(3)
    np.testing.assert_allclose(normalised_entropy(orders), [first, second, first])
