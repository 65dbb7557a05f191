"""Inducing points: the greedy choice against its definition, and where it ends."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from gpsift.gp.sparse import inducing
from gpsift.gp.sparse.inducing import inducing_rows
from gpsift.kernels import Constant, Linear, SquaredExponential

RNG = np.random.default_rng(43)
X = RNG.normal(size=(50, 2))
KERNEL = SquaredExponential(np.array([0.7, 2.0]), 1.3) + Linear(0.4) + Constant(0.2)


def conditional_var(kernel, points):
    K_zz, K_zx = kernel.between(points, points.copy()).K, kernel.between(points, X).K
    return kernel.diag(X) - np.sum(K_zx * np.linalg.solve(K_zz, K_zx), axis=0)


def test_each_point_lowers_the_trace_most_of_all_rows_that_compete(monkeypatch):
    monkeypatch.setattr(inducing, "COMPETITORS", len(X))
    rows = inducing_rows(KERNEL, X, 8)
    for k in range(8):
        traces = [conditional_var(KERNEL, X[[*rows[:k], i]]).sum() for i in range(len(X)) if i not in rows[:k]]
        assert_allclose(conditional_var(KERNEL, X[rows[: k + 1]]).sum(), min(traces), rtol=1e-8)


def test_the_seed_decides_which_rows_compete():
    assert_array_equal(inducing_rows(KERNEL, X, 8, seed=1), inducing_rows(KERNEL, X, 8, seed=1))
    assert list(inducing_rows(KERNEL, X, 8, seed=1)) != list(inducing_rows(KERNEL, X, 8, seed=2))


def test_points_leave_less_than_those_of_largest_variance():
    """A dense middle and a few outliers, which the largest variance would take first."""
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(300, 2)), 8.0 * rng.normal(size=(30, 2))])
    kernel = SquaredExponential(np.array([0.7, 0.7]), 1.0)
    rows, unexplained = [], kernel.diag(points)
    for _ in range(25):
        rows.append(int(np.argmax(unexplained)))
        K = kernel.between(points, points[rows]).K
        unexplained = 1.0 - np.sum(K * np.linalg.solve(K[rows] + 1e-10 * np.eye(len(rows)), K.T).T, axis=1)
    picked = kernel.between(points, points[inducing_rows(kernel, points, 25)]).K
    inner = picked[inducing_rows(kernel, points, 25)]
    left = 1.0 - np.sum(picked * np.linalg.solve(inner + 1e-10 * np.eye(25), picked.T).T, axis=1)
    assert left.sum() < 0.9 * unexplained.sum()


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
