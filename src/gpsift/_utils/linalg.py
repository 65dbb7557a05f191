"""Dense linear algebra that the array API standard does not name.

Everything else in the package is written once, against the array API; Cholesky factors, their inverse and
triangular solves differ between NumPy, torch and the rest, and all of those differences live here.
NumPy arrays go to LAPACK directly, in place where the caller says that the input may be overwritten, and without
Python's lock where they are large (`gpsift._utils.lapack`).
"""

from __future__ import annotations

import array_api_compat
import numpy as np
from scipy.linalg import blas, lapack

from gpsift._utils.arrays import Array, eye_like, namespace
from gpsift._utils.lapack import factorise, solve_by_triangle

# A failed Cholesky is retried with a diagonal shift of this share of the mean diagonal, ten times more each time.
FIRST_JITTER = 1e-10
LAST_JITTER = 1e-3
# Triangles are visited in blocks of this many columns.
BLOCK = 64


class NotPositiveDefinite(ValueError):
    """A matrix that has no Cholesky factor, even with the largest allowed jitter."""


def is_numpy(a: Array) -> bool:
    """Whether `a` is a NumPy array of doubles, the case that LAPACK serves directly."""
    return isinstance(a, np.ndarray) and a.dtype == np.float64


def cholesky(A: Array, *, overwrite: bool = False) -> Array:
    """Lower triangular L with L L^T = A. Raises `NotPositiveDefinite` when there is none."""
    if is_numpy(A):
        L, info = factorise(A, overwrite=overwrite)
        if info != 0 or not np.isfinite(L[-1, -1]):
            raise NotPositiveDefinite(f"leading minor {info} of {A.shape[0]} is not positive")
        return L
    if array_api_compat.is_torch_array(A):
        import torch

        L, info = torch.linalg.cholesky_ex(A)
        if int(info) != 0 or not bool(torch.isfinite(L[-1, -1])):
            raise NotPositiveDefinite(f"leading minor {int(info)} of {A.shape[0]} is not positive")
        return L
    xp = namespace(A)
    try:
        L = xp.linalg.cholesky(A)
    except np.linalg.LinAlgError as error:
        raise NotPositiveDefinite(str(error)) from error
    if not bool(xp.isfinite(L[-1, -1])):
        raise NotPositiveDefinite("the factor is not finite")
    return L


def jittered_cholesky(A: Array) -> tuple[Array, float]:
    """Cholesky factor of A + jitter I and the jitter, which is 0 unless the plain factorisation fails."""
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


def pivoted_cholesky(A: np.ndarray, left_out: float, most: int) -> np.ndarray | None:
    """F, (n, r), with A = F F^T but for less than this on each entry of the diagonal; None with more columns than most.

    For positive semidefinite NumPy matrices. The entries of A - F F^T are then smaller as well.
    """
    U, pivots, rank, _ = lapack.dpstrf(A.T, tol=left_out, lower=0)
    if rank > most:
        return None
    F = np.empty((len(A), rank := max(rank, 1)))  # one column of zeros for a matrix of zeros
    F[pivots - 1] = np.triu(U[:rank]).T
    return F


def inverse_from_cholesky(L: Array) -> Array:
    """The symmetric inverse of L L^T."""
    if is_numpy(L):
        inverse = np.array(L, order="F")
        invert_cholesky_in_place(inverse)
        return mirror_lower(inverse).T  # the same matrix, in the order of the kernels it is multiplied with
    if array_api_compat.is_torch_array(L):
        import torch

        return torch.cholesky_inverse(L)
    root = solve_lower(L, eye_like(L, L.shape[0]))
    return root.T @ root


def invert_cholesky_in_place(L: np.ndarray) -> None:
    """Put the lower triangle of (L L^T)^-1 where that of L is; a Fortran-ordered NumPy array, of doubles or singles."""
    # LAPACK's own dpotri does the same, but OpenBLAS inverts the triangle at a third of the speed of this recursion.
    _invert_in_place(L, lower=True)
    (lapack.slauum if L.dtype == np.float32 else lapack.dlauum)(L, lower=1, overwrite_c=1)


def _invert_in_place(T: np.ndarray, *, lower: bool) -> None:
    """Put the inverse of a triangle where it is; the matrix is as LAPACK sees it, in Fortran's order."""
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
    """L^-1 B, or L^-T B with ``transpose=True``, for lower triangular L."""
    if B.ndim == 1:
        return solve_lower(L, B[:, None], transpose=transpose)[:, 0]
    if is_numpy(L) and is_numpy(B):
        return solve_by_triangle(L, B, transpose=transpose)
    if array_api_compat.is_torch_array(L):
        import torch

        return torch.linalg.solve_triangular(L.T if transpose else L, B, upper=transpose)
    return namespace(L, B).linalg.solve(L.T if transpose else L, B)


def solve_triangle(L: np.ndarray, B: np.ndarray) -> np.ndarray:
    """L^-1 B for lower triangular NumPy matrices of both, which is lower triangular: a third of the work of any B."""
    X = np.tril(B)
    _solve_triangle_in_place(L, X)
    return X


def _solve_triangle_in_place(L: np.ndarray, B: np.ndarray) -> None:
    n = L.shape[0]
    if n <= BLOCK:
        B[...] = solve_lower(L, B)
        return
    half = n // 2
    _solve_triangle_in_place(L[:half, :half], B[:half, :half])
    _solve_triangle_in_place(L[half:, half:], B[half:, half:])
    corner = B[half:, :half] - L[half:, :half] @ B[:half, :half]
    B[half:, :half] = solve_lower(L[half:, half:], corner)


def triangle_gram(L: np.ndarray) -> np.ndarray:
    """L^T L for a lower triangular NumPy matrix."""
    product, _ = lapack.dlauum(L.T, lower=0)
    return mirror_lower(product.T)


def invert_lower(L: Array) -> Array:
    """L^-1, lower triangular, of an L with zeros above its diagonal."""
    if is_numpy(L):
        inverse = np.array(L, order="C")
        _invert_in_place(inverse.T, lower=False)
        return inverse
    return solve_lower(L, eye_like(L, L.shape[0]))


def times_transposed(A: Array, L: Array) -> Array:
    """A L^T for lower triangular L, without most of the products with its zeros."""
    if not isinstance(A, np.ndarray):
        return A @ L.T
    # Not BLAS's dtrmm: SciPy's holds Python's lock, and chunks of rows are visited by threads.
    product = np.empty((A.shape[0], L.shape[0]), dtype=A.dtype)
    for start in range(0, L.shape[0], BLOCK):
        stop = min(start + BLOCK, L.shape[0])
        np.matmul(A[:, :stop], L[start:stop, :stop].T, out=product[:, start:stop])
    return product


def weighted_gram(A: Array, weights: Array) -> Array:
    """A^T diag(w) A for weights of at least 0: of a matrix and its own transpose BLAS computes one triangle."""
    root = namespace(weights).sqrt(weights)[:, None] * A
    return root.T @ root


def row_products(A: Array, B: Array) -> Array:
    """sum_k A_ik B_ik, (n,), without the matrix of products."""
    if isinstance(A, np.ndarray):
        return np.einsum("ij,ij->i", A, B)
    return namespace(A, B).sum(A * B, axis=1)


def total_product(A: Array, B: Array) -> float:
    """sum_ik A_ik B_ik."""
    if isinstance(A, np.ndarray):
        return float(np.einsum("ij,ij->", A, B))
    return float(namespace(A, B).sum(A * B))


def cholesky_solve(L: Array, B: Array) -> Array:
    """(L L^T)^-1 B."""
    return solve_lower(L, solve_lower(L, B), transpose=True)


def add_diagonal(A: Array, d: Array | float) -> Array:
    """A new matrix A + diag(d); `d` is a number or a vector."""
    if isinstance(A, np.ndarray):
        A = A.copy()
        A.flat[:: A.shape[0] + 1] += d
        return A
    if array_api_compat.is_torch_array(A):
        A = A.clone()
        A.diagonal().add_(d)
        return A
    return A + eye_like(A, A.shape[0]) * (d if isinstance(d, float) else d[:, None])


def one_plus_scaled(K: np.ndarray, root: np.ndarray) -> np.ndarray:
    """I + S K S for a NumPy matrix and S = diag(root)."""
    B = K * root
    B *= root[:, None]
    B.flat[:: B.shape[0] + 1] += 1.0
    return B


def zero_diagonal(A: Array) -> Array:
    """A new square matrix: A with zeros on its diagonal."""
    if isinstance(A, np.ndarray):
        A = A.copy()
        A.flat[:: A.shape[0] + 1] = 0.0
        return A
    if array_api_compat.is_torch_array(A):
        return A.clone().fill_diagonal_(0.0)
    xp = namespace(A)
    return xp.where(eye_like(A, A.shape[0]) == 1.0, xp.zeros_like(A), A)


def log_det_from_cholesky(L: Array) -> Array:
    """log |L L^T|."""
    xp = namespace(L)
    return 2.0 * xp.sum(xp.log(xp.linalg.diagonal(L)))
