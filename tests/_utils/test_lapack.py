"""LAPACK by its addresses: the same numbers as by SciPy's wrappers, without Python's lock."""

import ctypes

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.linalg import blas
from scipy.linalg import lapack as wrappers

from gpsift._utils import linalg

SIZES = (linalg.UNLOCKED_SIZE - 1, linalg.UNLOCKED_SIZE, 2 * linalg.UNLOCKED_SIZE + 17)


def positive_definite(n):
    root = np.random.default_rng(n).normal(size=(n, n))
    return root @ root.T + n * np.eye(n)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_factors_are_those_of_the_wrapper(n, order):
    A = np.asarray(positive_definite(n), order=order)
    kept = A.copy()
    L, info = linalg.cholesky_by_potrf(A, overwrite=False)
    U, expected_info = wrappers.dpotrf(A.T, lower=0, clean=1)
    assert info == expected_info == 0
    assert L.flags.c_contiguous
    assert_array_equal(L, U.T)
    assert_array_equal(A, kept)


@pytest.mark.parametrize("n", SIZES)
def test_a_matrix_without_factor_is_told_as_by_the_wrapper(n):
    A = positive_definite(n)
    A[n // 2, n // 2] = -1.0
    assert linalg.cholesky_by_potrf(A, overwrite=False)[1] == wrappers.dpotrf(A.T, lower=0, clean=1)[1] == n // 2 + 1


def test_what_may_be_overwritten_is_but_not_what_is_read_only():
    A = positive_definite(SIZES[-1])
    expected, _ = linalg.cholesky_by_potrf(A, overwrite=False)
    A.flags.writeable = False
    L, _ = linalg.cholesky_by_potrf(A, overwrite=True)
    assert not np.shares_memory(L, A)
    assert_array_equal(L, expected)
    A.flags.writeable = True
    L, _ = linalg.cholesky_by_potrf(A, overwrite=True)
    assert np.shares_memory(L, A)
    assert_array_equal(L, expected)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
def test_solutions_are_those_of_the_wrapper(n, transpose, order):
    L = np.asarray(np.linalg.cholesky(positive_definite(n)), order=order)
    B = np.asarray(np.random.default_rng(0).normal(size=(n, 7)), order=order)
    kept = B.copy()
    found = linalg.solve_by_trsm(L, B, transpose=transpose)
    assert_array_equal(found, blas.dtrsm(1.0, L.T, B, lower=0, trans_a=0 if transpose else 1))
    assert_array_equal(B, kept)


def test_shapes_that_do_not_fit_are_refused():
    L = np.linalg.cholesky(positive_definite(SIZES[-1]))
    with pytest.raises(Exception, match=r"failed in converting|shape|dimension|trsm"):
        linalg.solve_by_trsm(L, np.ones((3, 2)), transpose=False)


def test_a_library_with_other_whole_numbers_is_called_by_its_wrappers(monkeypatch):
    A = positive_definite(SIZES[-1])
    expected, _ = linalg.cholesky_by_potrf(A, overwrite=False)
    solution = linalg.solve_by_trsm(expected, A, transpose=True)
    monkeypatch.setattr(linalg, "KNOWN_SIGNATURES", ("void (char *, long *,",))
    linalg.routine.cache_clear()
    try:
        assert linalg.routine("cython_lapack", "dpotrf") is None
        assert_array_equal(linalg.cholesky_by_potrf(A, overwrite=False)[0], expected)
        assert_array_equal(linalg.solve_by_trsm(expected, A, transpose=True), solution)
    finally:
        linalg.routine.cache_clear()


def test_large_matrices_are_worked_on_without_the_lock(monkeypatch):
    called = []

    def routine(room, name, old=linalg.routine):
        found = old(room, name)
        assert not found._flags_ & ctypes._FUNCFLAG_PYTHONAPI  # which keeps the lock
        return lambda *arguments: (called.append(name), found(*arguments))

    monkeypatch.setattr(linalg, "routine", routine)
    for n in SIZES:
        A = positive_definite(n)
        linalg.solve_by_trsm(linalg.cholesky_by_potrf(A, overwrite=False)[0], A, transpose=False)
    assert called == 2 * ["dpotrf", "dtrsm"]
