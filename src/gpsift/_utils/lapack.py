"""LAPACK and BLAS without Python's lock, so that threads factorise and solve at the same time.

SciPy's wrappers hold the lock while a routine works: two threads that factorise matrices of 1000 rows take as long as
one. The same routines, of the same library, are called here by the addresses that SciPy offers to Cython, and ctypes
lets the lock go. Numbers are the same to the last bit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import byref, c_char, c_double, c_int, c_void_p
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

# Matrices of fewer rows take less time than it takes to call a routine by its address.
UNLOCKED_SIZE = 200
# What is above a diagonal is cleared in blocks of this many rows.
BLOCK = 64
ABOVE = np.triu(np.ones((BLOCK, BLOCK), dtype=bool), 1)
# How routines begin where whole numbers have 32 bits, which is how they are called here.
KNOWN_SIGNATURES = ("void (char *, int *,", "void (char *, char *, char *, char *, int *, int *,")


def factorise(A: np.ndarray, *, overwrite: bool) -> tuple[np.ndarray, int]:
    """Lower triangular L with L L^T = A, of a symmetric matrix of doubles, and LAPACK's `info`."""
    # LAPACK is column-major: the upper factor of A^T (= A) in its eyes is the lower factor in ours.
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


def solve_by_triangle(L: np.ndarray, B: np.ndarray, *, transpose: bool) -> np.ndarray:
    """L^-1 B, or L^-T B, for lower triangular L and matrices of doubles."""
    trsm = routine("cython_blas", "dtrsm") if len(L) >= UNLOCKED_SIZE else None
    if trsm is None or L.shape[0] != B.shape[0]:
        # In Fortran's eyes our L is the upper triangular L^T; dtrsm with trans_a undoes that, without a copy of L.
        return blas.dtrsm(1.0, L.T, B, lower=0, trans_a=0 if transpose else 1)
    L, X = np.ascontiguousarray(L), np.array(B, order="F")
    side, upper, asked, diagonal = (c_char(letter) for letter in (b"L", b"U", b"N" if transpose else b"T", b"N"))
    n, k, one = c_int(X.shape[0]), c_int(X.shape[1]), c_double(1.0)
    choices = [byref(side), byref(upper), byref(asked), byref(diagonal), byref(n), byref(k), byref(one)]
    trsm(*choices, L.ctypes.data, byref(n), X.ctypes.data, byref(n))
    return X


@cache
def routine(room: str, name: str) -> Callable[..., None] | None:
    """A routine by its address, or None where SciPy's library wants other numbers than are given here."""
    from importlib import import_module

    capsule: Any = import_module(f"scipy.linalg.{room}").__pyx_capi__[name]
    signature = _capsule_name(capsule)
    if not signature.decode().startswith(KNOWN_SIGNATURES):
        return None
    n_arguments = signature.count(b",") + 1
    return ctypes.CFUNCTYPE(None, *[c_void_p] * n_arguments)(_capsule_pointer(capsule, signature))


_capsule_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_capsule_pointer = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
