"""Factors, inverses and solves on every array library against plain NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gpsift._utils import linalg
from gpsift._utils.arrays import to_numpy

SIZES = [1, 5, 64, 130]


def positive_definite(n, rng):
    root = rng.normal(size=(n, n + 2))
    return root @ root.T / n + 0.1 * np.eye(n)


@pytest.mark.parametrize("n", SIZES)
def test_factor_inverse_and_solves_match_numpy(n, rng, to_library):
    A, B = positive_definite(n, rng), rng.normal(size=(n, 3))
    L = linalg.cholesky(to_library(A))
    expected = np.linalg.cholesky(A)
    assert_allclose(to_numpy(L), expected, rtol=1e-9, atol=1e-12)
    inverse = to_numpy(linalg.inverse_from_cholesky(L))
    assert_allclose(inverse, np.linalg.inv(A), rtol=1e-8, atol=1e-10)
    assert_allclose(inverse, inverse.T, rtol=0, atol=0 if isinstance(L, np.ndarray) else 1e-12)
    assert_allclose(to_numpy(linalg.solve_lower(L, to_library(B))), np.linalg.solve(expected, B), atol=1e-8)
    transposed = to_numpy(linalg.solve_lower(L, to_library(B), transpose=True))
    assert_allclose(transposed, np.linalg.solve(expected.T, B), atol=1e-8)
    vector = to_numpy(linalg.cholesky_solve(L, to_library(B[:, 0].copy())))
    assert_allclose(vector, np.linalg.solve(A, B[:, 0]), rtol=1e-7, atol=1e-9)
    assert_allclose(float(linalg.log_det_from_cholesky(L)), np.linalg.slogdet(A)[1], rtol=1e-9, atol=1e-10)


def test_inputs_are_not_overwritten_unless_allowed(rng):
    A = positive_definite(20, rng)
    before = A.copy()
    L = linalg.cholesky(A)
    factor = L.copy()
    linalg.inverse_from_cholesky(L)
    linalg.solve_lower(L, A)
    assert np.array_equal(A, before)
    assert np.array_equal(L, factor)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_products_with_triangles_and_grams_match_numpy(n, rng, to_library):
    A, L, weights = rng.normal(size=(30, n)), np.tril(rng.normal(size=(n, n))), rng.uniform(size=30)
    found = linalg.times_transposed(to_library(A), to_library(L))
    assert_allclose(to_numpy(found), A @ L.T, rtol=1e-12, atol=1e-12)
    found = linalg.weighted_gram(to_library(A), to_library(weights))
    assert_allclose(to_numpy(found), (A.T * weights) @ A, rtol=1e-12, atol=1e-12)


def test_diagonal_helpers_match_numpy(rng, to_library):
    A, d = rng.normal(size=(4, 4)), rng.normal(size=4)
    assert_allclose(to_numpy(linalg.add_diagonal(to_library(A), to_library(d))), A + np.diag(d))
    assert_allclose(to_numpy(linalg.add_diagonal(to_library(A), 0.5)), A + 0.5 * np.eye(4))
    assert_allclose(to_numpy(linalg.zero_diagonal(to_library(A))), A - np.diag(np.diag(A)))


def test_jitter_is_zero_for_a_good_matrix(rng, to_library):
    _, jitter = linalg.jittered_cholesky(to_library(positive_definite(6, rng)))
    assert jitter == 0.0


def test_jitter_grows_only_until_the_factor_exists(to_library):
    A = np.full((30, 30), 4.0)  # rank one
    L, jitter = linalg.jittered_cholesky(to_library(A))
    assert 4.0 * linalg.FIRST_JITTER <= jitter <= 4.0 * 1e-6
    assert_allclose(to_numpy(L) @ to_numpy(L).T, A + jitter * np.eye(30), atol=1e-12)


def test_cholesky_rejects_an_indefinite_matrix(to_library):
    with pytest.raises(linalg.NotPositiveDefinite):
        linalg.cholesky(to_library(np.array([[1.0, 2.0], [2.0, 1.0]])))


def test_jittered_cholesky_gives_up_with_advice(to_library):
    with pytest.raises(linalg.NotPositiveDefinite, match="Raise the noise variance"):
        linalg.jittered_cholesky(to_library(np.array([[1.0, 2.0], [2.0, 1.0]])))


def test_jittered_cholesky_rejects_entries_that_are_not_finite():
    with pytest.raises(linalg.NotPositiveDefinite, match="not finite"):
        linalg.jittered_cholesky(np.array([[np.nan, 0.0], [0.0, 1.0]]))


@pytest.mark.parametrize("n", [5, 64, 150])
def test_triangles_are_solved_and_multiplied_as_matrices_are(n):
    rng = np.random.default_rng(n)
    L, B = (np.tril(rng.normal(size=(n, n))) / n + np.eye(n) for _ in range(2))
    assert_allclose(linalg.solve_lower_for_lower(L, B), np.linalg.solve(L, B), atol=1e-12)
    assert_allclose(linalg.triangle_gram(L), L.T @ L, atol=1e-12)


@pytest.mark.parametrize("left_out", [1e-2, 1e-6])
def test_pivoted_factor_leaves_out_what_it_may(rng, left_out):
    x = rng.normal(size=150)
    A = np.exp(-((x[:, None] - x) ** 2))
    F = linalg.pivoted_cholesky(A, left_out, max_rank=150)
    rest = A - F @ F.T
    assert F.shape[1] < 40
    assert np.abs(rest).max() <= left_out
    assert np.diagonal(rest).min() > -1e-12
    assert linalg.pivoted_cholesky(A, left_out, max_rank=F.shape[1] - 1) is None
    # A column less would leave more.
    assert np.diagonal(A - F[:, :-1] @ F[:, :-1].T).max() > left_out


def test_pivoted_factor_of_nothing_is_one_column_of_zeros():
    assert np.array_equal(linalg.pivoted_cholesky(np.zeros((3, 3)), 1e-6, max_rank=3), np.zeros((3, 1)))
