"""Conjugate gradients against a dense solve."""

import numpy as np
from numpy.testing import assert_allclose

from gpsift._utils.newton import conjugate_gradients


def positive_matrix(n, rng):
    root = rng.normal(size=(n, 4))
    return np.eye(n) + root @ root.T


def test_solution_matches_a_dense_solve(rng):
    A, target = positive_matrix(50, rng), rng.normal(size=50)
    assert_allclose(conjugate_gradients(A.__matmul__, target, 1e-12), np.linalg.solve(A, target), atol=1e-10)


def test_unknowns_may_have_any_shape(rng):
    A, target = positive_matrix(30, rng), rng.normal(size=(3, 10))
    found = conjugate_gradients(lambda z: (A @ z.ravel()).reshape(z.shape), target, 1e-12)
    assert_allclose(found.ravel(), np.linalg.solve(A, target.ravel()), atol=1e-10)


def test_accuracy_is_a_share_of_the_target(rng):
    A, target = positive_matrix(50, rng), 1e6 * rng.normal(size=50)
    found = conjugate_gradients(A.__matmul__, target, 1e-2)
    assert np.linalg.norm(A @ found - target) <= 1e-2 * np.linalg.norm(target)


def test_what_takes_long_is_given_up(rng):
    """A hundred eigenvalues between 1 and 1e12 take more products than there are unknowns."""
    A = np.diag(np.logspace(0, 12, 100))
    assert conjugate_gradients(A.__matmul__, rng.normal(size=100), 1e-10) is None
