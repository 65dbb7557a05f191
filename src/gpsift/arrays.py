"""Which array library an array belongs to, and moving small arrays to where the large ones live."""

from __future__ import annotations

from typing import Any

import array_api_compat
import array_api_compat.numpy as standard_numpy
import numpy as np

Array = Any  # a NumPy, torch, CuPy or array-api-strict array: whatever `array_namespace` accepts


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
        return a.detach().cpu().numpy()
    if array_api_compat.is_cupy_array(a):
        return a.get()
    return np.from_dlpack(a)
