"""Blocks: every row in one, near ones together, and points where their rows are."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gpsift.gp.sparse.vecchia.blocks import cut_into_blocks
from gpsift.kernels import Constant, Linear, Matern52, SquaredExponential

RNG = np.random.default_rng(8)
KERNEL = SquaredExponential(np.array([0.5, 1.0, 4.0]), 1.0) + Constant(1.0)
CLOUDS = {
    "normal": RNG.normal(size=(500, 3)),
    "few values": RNG.integers(0, 3, size=(500, 3)).astype(float),
    "one spread": np.column_stack([np.zeros(500), RNG.normal(size=500), np.ones(500)]),
    "an outlier": np.concatenate([np.zeros((60, 3)), [[100.0, 0.0, 0.0]]]),
    "one row": np.ones((1, 3)),
}

each_cloud = pytest.mark.parametrize("cloud", CLOUDS)


@each_cloud
@pytest.mark.parametrize("most", [1, 7, 40, 1000])
def test_every_row_is_in_one_cell_of_the_size_that_was_asked_for(cloud, most):
    X = CLOUDS[cloud]
    blocks, order = cut_into_blocks(X, KERNEL, most)
    assert_array_equal(np.sort(order), np.arange(len(X)))
    sizes = np.array([part.stop - part.start for part in blocks.slices])
    assert sizes.sum() == len(X)
    assert sizes.min() >= 1
    assert sizes.max() <= most
    assert blocks.n == len(sizes)


@each_cloud
def test_rows_are_found_where_they_were_put_unless_equal_ones_were_parted(cloud):
    X = CLOUDS[cloud]
    blocks, order = cut_into_blocks(X, KERNEL, 40)
    put = np.empty(len(X), dtype=int)
    for number, rows in enumerate(blocks.slices):
        put[order[rows]] = number
    found = blocks.numbers(X)
    for row in np.flatnonzero(found != put):
        assert np.count_nonzero(np.all(X[row] == X, axis=1)) > 40 // 2
    assert set(found) <= set(range(blocks.n))


def test_boxes_are_narrow_along_short_lengthscales():
    X = RNG.uniform(size=(4000, 3))
    for kernel in (SquaredExponential(np.array([0.1, 1.0, 10.0])), Matern52(np.array([0.1, 1.0, 10.0])) + Linear()):
        blocks, order = cut_into_blocks(X, kernel, 100)
        spread = np.mean([np.ptp(X[order[rows]], axis=0) for rows in blocks.slices], axis=0)
        assert spread[0] < 0.3 * spread[1]
        assert spread[1] < spread[2]


def test_a_kernel_without_lengthscales_has_cells():
    blocks, _ = cut_into_blocks(CLOUDS["normal"], Linear().for_features(3), 100)
    assert blocks.n >= 5


def test_rounding_does_not_decide_between_equal_spreads():
    X = RNG.normal(size=(300, 2))
    X = np.concatenate([X, X[:, ::-1]])
    orders = [cut_into_blocks(X * factor, SquaredExponential(1.0), 50)[1] for factor in (1.0, [1.0, 1.0 + 1e-15])]
    assert_array_equal(*orders)
