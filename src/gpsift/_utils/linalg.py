"""Dense linear algebra that the array API standard does not have.

Cholesky factors, their inverses and triangular solves differ between NumPy, torch and other libraries. The functions of
this file hide the differences. They pass NumPy arrays to LAPACK directly, in place where the caller allows that the
input is overwritten.

SciPy's wrappers of LAPACK hold Python's lock while a routine works: two threads that factorise matrices of 1000 rows
take as long as one. For large matrices the same routines, of the same library, are therefore called by the addresses
that SciPy offers to Cython, and ctypes releases the lock. Results are equal to the last bit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import byref, c_char, c_double, c_int, c_void_p
from functools import cache
from typing import Any

import array_api_compat
import numpy as np
from scipy.linalg import blas, lapack

from gpsift._utils.arrays import Array, eye_like, namespace

# A failed Cholesky is retried with a diagonal shift of this share of the mean diagonal, ten times more each time.
FIRST_JITTER = 1e-10
LAST_JITTER = 1e-3
# Recursions over triangles stop at blocks of this many rows.
BLOCK = 64
# For matrices of fewer rows the routine itself takes less time than a call by its address.
UNLOCKED_SIZE = 200
# Mask of the entries above the diagonal of a block.
ABOVE = np.triu(np.ones((BLOCK, BLOCK), dtype=bool), 1)
# Signatures of routines with 32-bit integers begin like this; only these routines are called by their address.
KNOWN_SIGNATURES = ("void (char *, int *,", "void (char *, char *, char *, char *, int *, int *,")


class NotPositiveDefinite(ValueError):
    """A matrix that has no Cholesky factor, even with the largest allowed jitter."""


def is_numpy(a: Array) -> bool:
    """Whether `a` is a NumPy array of doubles, which LAPACK takes directly."""
    return isinstance(a, np.ndarray) and a.dtype == np.float64


def cholesky(A: Array, *, overwrite: bool = False) -> Array:
    """Return lower triangular L with L L^T = A; raise `NotPositiveDefinite` when there is none."""
    info = 0
    if is_numpy(A):
        L, info = cholesky_by_potrf(A, overwrite=overwrite)
    elif array_api_compat.is_torch_array(A):
        import torch

        L, info = torch.linalg.cholesky_ex(A)
    else:
        try:
            L = namespace(A).linalg.cholesky(A)
        except np.linalg.LinAlgError as error:
            raise NotPositiveDefinite(str(error)) from error
    if int(info) != 0 or not bool(namespace(L).isfinite(L[-1, -1])):
        raise NotPositiveDefinite(f"leading minor {int(info)} of {A.shape[0]} is not positive")
    return L


def jittered_cholesky(A: Array) -> tuple[Array, float]:
    """Return the Cholesky factor of A + jitter I, and the jitter, which is 0 unless the plain factorisation fails."""
    try:
        return cholesky(A), 0.0
    except NotPositiveDefinite:
        xp = namespace(A)
        scale = float(xp.mean(xp.linalg.diagonal(A)))
    if not np.isfinite(scale):
        raise NotPositiveDefinite("the matrix has entries that are not finite")
    share = FIRST_JITTER
    while share <= LAST_JITTER:
        try:
            return cholesky(add_diagonal(A, share * scale), overwrite=True), share * scale
        except NotPositiveDefinite:
            share *= 10.0
    raise NotPositiveDefinite(
        f"no Cholesky factor of a {A.shape[0]} x {A.shape[0]} matrix, even with {LAST_JITTER:g} of its mean diagonal "
        f"({scale:.3g}) added. Raise the noise variance, or remove near-duplicate rows."
    )


def pivoted_cholesky(A: np.ndarray, tolerance: float, max_rank: int) -> np.ndarray | None:
    """Return F (n, r) such that the diagonal of A - F F^T is below `tolerance`; None if r would be above `max_rank`.

    A is a positive semidefinite NumPy matrix, so all other entries of A - F F^T are below `tolerance` as well.
    """
    U, pivots, rank, _ = lapack.dpstrf(A.T, tol=tolerance, lower=0)
    if rank > max_rank:
        return None
    F = np.empty((len(A), rank := max(rank, 1)))  # one column of zeros for a matrix of zeros
    F[pivots - 1] = np.triu(U[:rank]).T
    return F


def inverse_from_cholesky(L: Array) -> Array:
    """Return the symmetric inverse of L L^T."""
    if is_numpy(L):
        inverse = np.array(L, order="F")
        invert_cholesky_in_place(inverse)
        return mirror_lower(inverse).T  # the same matrix in C order, like the kernel matrices it is multiplied with
    if array_api_compat.is_torch_array(L):
        import torch

        return torch.cholesky_inverse(L)
    root = solve_lower(L, eye_like(L, L.shape[0]))
    return root.T @ root


def invert_cholesky_in_place(L: np.ndarray) -> None:
    """Replace the lower triangle of L by that of (L L^T)^-1; L is a Fortran-ordered array of doubles or singles."""
    # LAPACK's own dpotri does the same, but OpenBLAS inverts the triangle at a third of the speed of this recursion.
    _invert_in_place(L, lower=True)
    (lapack.slauum if L.dtype == np.float32 else lapack.dlauum)(L, lower=1, overwrite_c=1)


def _invert_in_place(T: np.ndarray, *, lower: bool) -> None:
    """Replace a triangle of a Fortran-ordered matrix by its inverse."""
    n = T.shape[0]
    trtri, trmm = (lapack.strtri, blas.strmm) if T.dtype == np.float32 else (lapack.dtrtri, blas.dtrmm)
    if n <= BLOCK:
        T[...] = trtri(T, lower=lower)[0]
        return
    first, last = slice(n // 2), slice(n // 2, n)
    _invert_in_place(T[first, first], lower=lower)
    _invert_in_place(T[last, last], lower=lower)
    row, column = (last, first) if lower else (first, last)
    corner = trmm(-1.0, T[row, row], T[row, column], lower=lower)
    T[row, column] = trmm(1.0, T[column, column], corner, side=1, lower=lower, overwrite_b=1)


def mirror_lower(A: np.ndarray) -> np.ndarray:
    """Copy the lower triangle of a NumPy matrix onto its upper one, in place."""
    n = A.shape[0]
    for start in range(0, n, BLOCK):  # whole blocks at a time: an n x n index array costs more than the factorisation
        stop = min(start + BLOCK, n)
        A[start:stop, stop:] = A[stop:, start:stop].T
        corner = A[start:stop, start:stop]
        corner[...] = np.tril(corner) + np.tril(corner, -1).T
    return A


def solve_lower(L: Array, B: Array, *, transpose: bool = False) -> Array:
    """Return L^-1 B, or L^-T B with ``transpose=True``, for lower triangular L."""
    if B.ndim == 1:
        return solve_lower(L, B[:, None], transpose=transpose)[:, 0]
    if is_numpy(L) and is_numpy(B):
        return solve_by_trsm(L, B, transpose=transpose)
    if array_api_compat.is_torch_array(L):
        import torch

        return torch.linalg.solve_triangular(L.T if transpose else L, B, upper=transpose)
    return namespace(L, B).linalg.solve(L.T if transpose else L, B)


def solve_lower_for_lower(L: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return L^-1 B for lower triangular NumPy L and B, with a third of the operations for a full B."""
    X = np.tril(B)
    _solve_lower_for_lower_in_place(L, X)
    return X


def _solve_lower_for_lower_in_place(L: np.ndarray, B: np.ndarray) -> None:
    n = L.shape[0]
    if n <= BLOCK:
        B[...] = solve_lower(L, B)
        return
    half = n // 2
    _solve_lower_for_lower_in_place(L[:half, :half], B[:half, :half])
    _solve_lower_for_lower_in_place(L[half:, half:], B[half:, half:])
    corner = B[half:, :half] - L[half:, :half] @ B[:half, :half]
    B[half:, :half] = solve_lower(L[half:, half:], corner)


def triangle_gram(L: np.ndarray) -> np.ndarray:
    """Return L^T L for a lower triangular NumPy matrix."""
    product, _ = lapack.dlauum(L.T, lower=0)
    return mirror_lower(product.T)


def invert_lower(L: Array) -> Array:
    """Return L^-1, lower triangular; L must have zeros above its diagonal."""
    if is_numpy(L):
        inverse = np.array(L, order="C")
        _invert_in_place(inverse.T, lower=False)
        return inverse
    return solve_lower(L, eye_like(L, L.shape[0]))


def times_transposed(A: Array, L: Array) -> Array:
    """Return A L^T for lower triangular L, and skip most of the products with its zeros."""
    if not isinstance(A, np.ndarray):
        return A @ L.T
    # SciPy's dtrmm would hold Python's lock, and threads call this on chunks of rows.
    product = np.empty((A.shape[0], L.shape[0]), dtype=A.dtype)
    for start in range(0, L.shape[0], BLOCK):
        stop = min(start + BLOCK, L.shape[0])
        np.matmul(A[:, :stop], L[start:stop, :stop].T, out=product[:, start:stop])
    return product


def weighted_gram(A: Array, weights: Array) -> Array:
    """Return A^T diag(w) A for weights of at least 0."""
    # BLAS computes only one triangle of a matrix times its own transpose.
    root = namespace(weights).sqrt(weights)[:, None] * A
    return root.T @ root


def row_products(A: Array, B: Array) -> Array:
    """Return sum_k A_ik B_ik, (n,), without the matrix of products."""
    if isinstance(A, np.ndarray):
        return np.einsum("ij,ij->i", A, B)
    return namespace(A, B).sum(A * B, axis=1)


def total_product(A: Array, B: Array) -> float:
    """Return sum_ik A_ik B_ik."""
    if isinstance(A, np.ndarray):
        return float(np.einsum("ij,ij->", A, B))
    return float(namespace(A, B).sum(A * B))


def cholesky_solve(L: Array, B: Array) -> Array:
    """Return (L L^T)^-1 B."""
    return solve_lower(L, solve_lower(L, B), transpose=True)


def add_diagonal(A: Array, d: Array | float) -> Array:
    """Return a new matrix A + diag(d); `d` is a number or a vector."""
    if isinstance(A, np.ndarray):
        A = A.copy()
        A.flat[:: A.shape[0] + 1] += d
        return A
    if array_api_compat.is_torch_array(A):
        A = A.clone()
        A.diagonal().add_(d)
        return A
    return A + eye_like(A, A.shape[0]) * (d if isinstance(d, float) else d[:, None])


def identity_plus_scaled(K: np.ndarray, root: np.ndarray) -> np.ndarray:
    """Return I + S K S for a NumPy matrix and S = diag(root)."""
    B = K * root
    B *= root[:, None]
    B.flat[:: B.shape[0] + 1] += 1.0
    return B


def zero_diagonal(A: Array) -> Array:
    """Return a copy of the square matrix A with zeros on its diagonal."""
    if isinstance(A, np.ndarray):
        A = A.copy()
        A.flat[:: A.shape[0] + 1] = 0.0
        return A
    if array_api_compat.is_torch_array(A):
        return A.clone().fill_diagonal_(0.0)
    xp = namespace(A)
    return xp.where(eye_like(A, A.shape[0]) == 1.0, xp.zeros_like(A), A)


def log_det_from_cholesky(L: Array) -> Array:
    """Return log |L L^T|."""
    xp = namespace(L)
    return 2.0 * xp.sum(xp.log(xp.linalg.diagonal(L)))


def cholesky_by_potrf(A: np.ndarray, *, overwrite: bool) -> tuple[np.ndarray, int]:
    """Return lower triangular L with L L^T = A, for a symmetric matrix of doubles, and LAPACK's `info`."""
    # LAPACK is column-major: its upper factor of A^T (= A) is the lower factor in row-major order.
    potrf = routine("cython_lapack", "dpotrf") if len(A) >= UNLOCKED_SIZE else None
    if potrf is None:
        U, info = lapack.dpotrf(A.T, lower=0, clean=1, overwrite_a=overwrite)
        return U.T, info
    L = A if overwrite and A.flags.c_contiguous and A.flags.writeable else np.array(A, order="C")
    n, found = c_int(len(L)), c_int(0)
    potrf(byref(c_char(b"U")), byref(n), L.ctypes.data, byref(n), byref(found))
    for start in range(0, len(L), BLOCK):
        own = slice(start, start + BLOCK)
        L[own, start + BLOCK :] = 0.0
        corner = L[own, own]
        np.copyto(corner, 0.0, where=ABOVE[: len(corner), : len(corner)])
    return L, found.value


def solve_by_trsm(L: np.ndarray, B: np.ndarray, *, transpose: bool) -> np.ndarray:
    """Return L^-1 B, or L^-T B, for lower triangular L and B, matrices of doubles."""
    trsm = routine("cython_blas", "dtrsm") if len(L) >= UNLOCKED_SIZE else None
    if trsm is None or L.shape[0] != B.shape[0]:
        # Fortran reads our L as the upper triangular L^T; dtrsm with trans_a undoes that, without a copy of L.
        return blas.dtrsm(1.0, L.T, B, lower=0, trans_a=0 if transpose else 1)
    L, X = np.ascontiguousarray(L), np.array(B, order="F")
    side, upper, transposed, diagonal = (c_char(letter) for letter in (b"L", b"U", b"N" if transpose else b"T", b"N"))
    n, k, one = c_int(X.shape[0]), c_int(X.shape[1]), c_double(1.0)
    choices = [byref(side), byref(upper), byref(transposed), byref(diagonal), byref(n), byref(k), byref(one)]
    trsm(*choices, L.ctypes.data, byref(n), X.ctypes.data, byref(n))
    return X


@cache
def routine(module: str, name: str) -> Callable[..., None] | None:
    """Return a routine by its address, or None where SciPy's library does not take 32-bit integers."""
    from importlib import import_module

    capsule: Any = import_module(f"scipy.linalg.{module}").__pyx_capi__[name]
    signature = _capsule_name(capsule)
    if not signature.decode().startswith(KNOWN_SIGNATURES):
        return None
    n_arguments = signature.count(b",") + 1
    return ctypes.CFUNCTYPE(None, *[c_void_p] * n_arguments)(_capsule_pointer(capsule, signature))


_capsule_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_capsule_pointer = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
