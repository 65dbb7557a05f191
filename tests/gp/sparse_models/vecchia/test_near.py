"""Neighbours of blocks against distances one by one."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gpsift.gp.sparse.vecchia.blocks import cut_into_blocks, nearest_rows, vecchia_blocks
from gpsift.kernels import Constant, Linear, SquaredExponential

RNG = np.random.default_rng(3)
X = RNG.normal(size=(90, 3))
LENGTHSCALE = np.array([0.3, 1.0, np.inf])
KERNEL = SquaredExponential(LENGTHSCALE, 1.0) + Constant(0.5)


@pytest.mark.parametrize("k", [20, 35, 90, 200])
def test_nearest_rows_are_the_nearest_to_the_centre_with_the_blocks_own(k):
    blocks, order = cut_into_blocks(X, KERNEL, 15)
    rows = X[order]
    near = nearest_rows(rows, blocks, KERNEL, k, range(blocks.n))
    assert near.shape == (blocks.n, min(k, len(X)))
    for number, own in enumerate(blocks.slices):
        own = np.arange(own.start, own.stop)
        distance = np.sum(((rows - rows[own].mean(axis=0)) / LENGTHSCALE) ** 2, axis=1)
        others = [row for row in np.argsort(distance) if row not in own][: near.shape[1] - len(own)]
        assert_array_equal(near[number], [*others[::-1], *own])  # the nearer, the later


@pytest.mark.parametrize(("near", "far"), [(10, 0), (40, 0), (10, 8)])
def test_blocks_are_given_the_nearest_of_the_rows_before_and_some_others(near, far):
    blocks = vecchia_blocks(X, KERNEL, 15, near, far, seed=0)
    earlier = np.empty(0, dtype=int)
    for block in blocks:
        distance = np.sum(((X[earlier] - X[block.rows].mean(axis=0)) / LENGTHSCALE) ** 2, axis=1)
        given = set(block.conditioning)
        assert set(earlier[np.argsort(distance)[:near]]) <= given <= set(earlier)
        assert len(given) == len(block.conditioning) == min(near + far, len(earlier))
        earlier = np.concatenate([earlier, block.rows])
    assert_array_equal(np.sort(earlier), np.arange(len(X)))


def test_some_blocks_are_given_what_they_are_given_among_all():
    everything, some = (vecchia_blocks(X, KERNEL, 15, 40, 0, seed=0, every=every) for every in (1, 3))
    assert len(everything) == 8
    for one, other in zip(everything[1::3], some, strict=True):
        assert_array_equal(one.rows, other.rows)
        assert_array_equal(np.sort(one.conditioning), np.sort(other.conditioning))


def test_the_seed_decides_the_order_of_blocks_and_the_rows_that_are_far():
    one, same, other = (vecchia_blocks(X, KERNEL, 15, 10, 5, seed=seed) for seed in (0, 0, 1))
    assert all(np.array_equal(a.conditioning, b.conditioning) for a, b in zip(one, same, strict=True))
    assert not all(np.array_equal(a.rows, b.rows) for a, b in zip(one, other, strict=True))


def test_without_lengthscales_a_unit_of_every_feature_counts_the_same():
    blocks, order = cut_into_blocks(X, Linear(np.ones(3)), 15)
    near = nearest_rows(X[order], blocks, Linear(np.ones(3)), 30, range(blocks.n))
    assert all(len(set(rows)) == 30 for rows in near)
