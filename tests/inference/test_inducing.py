"""Inducing points: the greedy choice against its definition, and where it ends."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from gpsift.inference.inducing import inducing_rows
from gpsift.kernels import Constant, Linear, SquaredExponential

RNG = np.random.default_rng(43)
X = RNG.normal(size=(50, 2))
KERNEL = SquaredExponential(np.array([0.7, 2.0]), 1.3) + Linear(0.4) + Constant(0.2)


def conditional_var(kernel, points):
    K_zz, K_zx = kernel.between(points, points.copy()).K, kernel.between(points, X).K
    return kernel.diag(X) - np.sum(K_zx * np.linalg.solve(K_zz, K_zx), axis=0)


def test_each_point_is_the_row_that_the_ones_before_explain_least():
    rows = inducing_rows(KERNEL, X, 8)
    assert rows[0] == np.argmax(KERNEL.diag(X))
    for k in range(1, 8):
        assert rows[k] == np.argmax(conditional_var(KERNEL, X[rows[:k]]))


def test_more_points_begin_with_the_same():
    assert_array_equal(inducing_rows(KERNEL, X, 20)[:8], inducing_rows(KERNEL, X, 8))


def test_repeated_rows_are_picked_once():
    doubled = np.concatenate([X[:10], X[:10]])
    rows = inducing_rows(KERNEL, doubled, 20)
    assert len(rows) == 10
    assert len(np.unique(rows % 10)) == 10


def test_a_kernel_of_few_dimensions_needs_few_points():
    """Two slopes and a level: three points explain all rows."""
    kernel = Linear(0.4) + Constant(0.2)
    rows = inducing_rows(kernel, X, 20)
    assert len(rows) == 3
    assert_allclose(conditional_var(kernel, X[rows]), 0.0, atol=1e-12)
