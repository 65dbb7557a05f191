"""Points that fill a cube evenly: a known sequence without shuffles, and the laws of uniform numbers."""

from itertools import islice

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from gpsift.gp.hyperparameters.even import BLOCK, ShuffledDigits, even_shares, first_primes


def points(n, n_coordinates, seed):
    return np.concatenate(list(islice(even_shares(n_coordinates, seed), -(-n // BLOCK))))[:n]


def test_without_shuffles_it_is_the_sequence_of_halton():
    for base in (2, 3, 5):
        coordinate = ShuffledDigits(base, np.random.default_rng(0))
        coordinate.shuffled = np.tile(np.arange(base), (len(coordinate.shuffled), 1))
        coordinate.rest = 0.0
        halton = stats.qmc.Halton(d=first_primes(9).index(base) + 1, scramble=False).random(300)[:, -1]
        assert_allclose(coordinate.shares(np.arange(300)), halton, atol=1e-15)


def test_every_interval_of_a_base_has_its_share():
    """Of the first and the second base^m points each of as many equal intervals has one."""
    for column, base in zip(points(1200, 4, 3).T, (2, 3, 5, 7), strict=True):
        for m in range(1, int(np.log(600) / np.log(base)) + 1):
            n = base**m
            for start in (0, n):
                assert_array_equal(np.sort(np.floor(n * column[start : start + n])), np.arange(n))


def test_each_point_is_uniform():
    """Over seeds, whatever its number."""
    last = np.array([points(20, 3, seed)[-1] for seed in range(400)])
    assert last.min() > 0
    assert last.max() < 1
    for column in last.T:
        assert stats.kstest(column, "uniform").pvalue > 0.01


def test_blocks_go_on():
    blocks = list(islice(even_shares(2, 5), 3))
    assert [block.shape for block in blocks] == [(BLOCK, 2)] * 3
    assert np.unique(np.concatenate(blocks), axis=0).shape == (3 * BLOCK, 2)
    assert_array_equal(blocks[1], list(islice(even_shares(2, 5), 2))[1])


def test_means_are_nearer_than_those_of_independent_points():
    """Of a sum over twenty coordinates, as many as intervals have at most: its variance is 20 / 12 / n."""
    errors = [points(128, 20, seed).sum(axis=1).mean() - 10 for seed in range(50)]
    assert np.sqrt(np.mean(np.square(errors))) < 0.5 * np.sqrt(20 / 12 / 128)
