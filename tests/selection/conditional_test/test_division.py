"""Division of rows for a test of features; only parts in order suit a model that follows the noise."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import gpsift as gs
from gpsift.selection.conditional_test.folds import split_in_order, split_k_folds


@pytest.mark.parametrize("divide", [split_k_folds, split_in_order])
@pytest.mark.parametrize(("n", "folds"), [(20, 2), (23, 5), (100, 7)])
def test_no_model_has_seen_the_rows_that_it_is_asked_for(divide, n, folds):
    parts = divide(n, folds, [0, 0])
    assert len(parts) == folds
    assert all(not np.intersect1d(part.test, part.train).size for part in parts)
    asked = np.concatenate([part.test for part in parts])
    assert len(set(asked)) == asked.size


def test_all_rows_are_asked_for_after_a_fit_to_all_others():
    for part in split_k_folds(23, 5, [1]):
        assert np.array_equal(np.union1d(part.test, part.train), np.arange(23))


def test_parts_in_order_follow_those_before():
    parts = split_in_order(90, 4, [3])
    assert parts[0].train.size == 30
    for before, after in pairwise(parts):
        assert np.array_equal(after.train, np.union1d(before.train, before.test))
    assert np.array_equal(np.union1d(parts[-1].train, parts[-1].test), np.arange(90))


def test_another_seed_divides_otherwise():
    assert not np.array_equal(split_in_order(50, 5, [0])[0].test, split_in_order(50, 5, [1])[0].test)
    assert np.array_equal(split_in_order(50, 5, [0])[0].test, split_in_order(50, 5, [0])[0].test)


@pytest.mark.parametrize(("divide", "most"), [(split_k_folds, 6), (split_in_order, 4)])
def test_more_parts_than_rows_are_refused(divide, most):
    divide(6, most, [0])
    with pytest.raises(ValueError, match=f"`folds` must be at most {most} with 6 rows, got {most + 1}"):
        divide(6, most + 1, [0])


class Follower:
    """A model that follows the noise: sums over rows that are near."""

    def __init__(self, X, y):
        self.X, self.y = X, y

    def predict(self, X):
        return np.exp(-0.5 * cdist(X, self.X, "sqeuclidean")) @ self.y


def test_only_in_order_is_right_for_a_model_that_follows_the_noise():
    # With all others every pair of rows counts twice, as (asked, seen) and the other way round: the variance of the sum
    # is up to twice what the folds' variances add up to. 240 statistics.
    spread = {}
    for folds in (5, gs.InOrder(5)):
        z = []
        for seed in range(30):
            rng = np.random.default_rng(seed)
            X, y = rng.normal(size=(60, 8)), rng.normal(size=60)
            z.append(gs.discover(X, y, Follower, rate=1e-9, folds=folds).z)
        spread[folds] = np.std(z)
    assert spread[gs.InOrder(5)] < 1.0
    assert spread[5] > 1.15 * spread[gs.InOrder(5)]
