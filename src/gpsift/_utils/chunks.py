"""Rows in chunks, so that what a computation holds at once does not grow with their number."""

from __future__ import annotations

from typing import Any

import numpy as np

# What one matrix of a chunk may take; a computation holds about ten of them. Larger ones are no faster: at this size
# the matrix products are long enough for BLAS.
CHUNK_BYTES = 2**24
# On a device a chunk has to be long enough for thousands of cores.
DEVICE_CHUNK_BYTES = 2**30
DOUBLE = 8


def chunk_bytes_for(X: Any) -> int:
    """What one matrix of a chunk may take where this array lives."""
    return CHUNK_BYTES if isinstance(X, np.ndarray) else DEVICE_CHUNK_BYTES


def row_chunks(n_rows: int, n_columns: int, chunk_bytes: int = CHUNK_BYTES) -> list[slice]:
    """Consecutive slices of the rows; a matrix of doubles with this many columns and a slice's rows fits into a chunk.

    They are as few as that allows, and as equal: threads that visit them end at the same time.

    >>> row_chunks(10, 4, chunk_bytes=128)
    [slice(0, 3, None), slice(3, 6, None), slice(6, 10, None)]
    """
    most = max(1, chunk_bytes // (DOUBLE * max(1, n_columns)))
    n_chunks = -(-n_rows // most)
    return [slice(k * n_rows // n_chunks, (k + 1) * n_rows // n_chunks) for k in range(n_chunks)]
