"""Which array library an array belongs to, and moving small arrays to where the large ones live."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import array_api_compat
import array_api_compat.numpy as standard_numpy
import numpy as np

Array = Any  # a NumPy, torch or array-api-strict array: whatever `array_namespace` accepts

# Arrays up to this size come from a GPU into page-locked memory, which torch keeps for the next ones. Fresh pages take
# longer than the scores: KL at 10,000 rows and 100 features is 3.6 ms instead of 24 on an H200.
PINNED_BYTES = 2**26


def namespace(*arrays: Array) -> Any:
    """The array API namespace of the arrays: NumPy, torch ... in their standard form."""
    if all(type(a) is np.ndarray for a in arrays):
        # The general look-up takes longer than some of the products it introduces.
        return standard_numpy
    return array_api_compat.array_namespace(*arrays)


def like(reference: Array, values: np.ndarray) -> Array:
    """`values` as an array of the library, dtype and device of `reference`."""
    if type(reference) is np.ndarray:
        return np.asarray(values, dtype=reference.dtype)
    xp = namespace(reference)
    return xp.asarray(np.array(values), dtype=reference.dtype, device=array_api_compat.device(reference))


def eye_like(reference: Array, size: int) -> Array:
    """An identity matrix of the library, dtype and device of `reference`."""
    xp = namespace(reference)
    return xp.eye(size, dtype=reference.dtype, device=array_api_compat.device(reference))


def to_numpy(a: Array) -> np.ndarray:
    """The values as a NumPy array: a view where possible, a copy from the device where not."""
    if isinstance(a, np.ndarray):
        return a
    if array_api_compat.is_torch_array(a):
        return _from_torch(a.detach())
    try:
        return np.from_dlpack(a)
    except BufferError:  # before NumPy 2 an array that repeats its entries cannot travel so
        return np.asarray(a)


def _from_torch(a: Array) -> np.ndarray:
    if a.device.type != "cuda" or a.nbytes > PINNED_BYTES:
        return a.cpu().numpy()
    import torch

    return torch.empty(a.shape, dtype=a.dtype, pin_memory=True).copy_(a).numpy()


def is_foreign_array(a: Any) -> bool:
    """Whether this is an array of torch."""
    return bool(array_api_compat.is_torch_array(a))


def numbers_like(reference: Array, which: np.ndarray) -> Array:
    """Numbers of rows or entries as an array that can index `reference`."""
    if isinstance(reference, np.ndarray):
        return which
    return namespace(reference).asarray(which, device=array_api_compat.device(reference))


def rows_of(a: Array, which: np.ndarray) -> Array:
    """Some rows of a matrix, or entries of a vector, by their numbers."""
    if isinstance(a, np.ndarray):
        # Rows that lie as they are taken come four times as fast by `take`, which copies all of others.
        return a.take(which, axis=0) if a.flags.c_contiguous else a[which]
    return namespace(a).take(a, numbers_like(a, which), axis=0)


def columns_of(a: Array, which: Sequence[int]) -> Array:
    """Some columns of a matrix, by their numbers."""
    if isinstance(a, np.ndarray):
        return np.ascontiguousarray(a[:, list(which)])
    xp = namespace(a)
    return xp.take(a, numbers_like(a, np.array(which, dtype=int)), axis=1)


def lives_on_device(a: Any) -> bool:
    """Whether this is an array in the memory of a device, such as a CUDA tensor."""
    return bool(array_api_compat.is_torch_array(a)) and str(a.device) != "cpu"


def on_device(device: str) -> Array:
    """An empty array of doubles on a device of torch: what `like` places others beside."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(f'`device="{device}"` needs torch: pip install torch.') from error
    try:
        return torch.empty(0, dtype=torch.float64, device=device)
    except (RuntimeError, AssertionError) as error:  # no such device, or a torch that was built without it
        raise ValueError(f'`device="{device}"` cannot be used here: {str(error).splitlines()[0]}') from error
