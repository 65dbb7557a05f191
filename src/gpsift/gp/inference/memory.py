"""Memory that dense inference needs, and memory that is free: fits that cannot succeed are refused beforehand."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from gpsift._utils.arrays import Array
from gpsift._utils.rows import DOUBLE

# n x n matrices that a fit of the default kernel holds at its worst moment, counted with tracemalloc
# (`tests/gp/inference/test_memory.py`). Several radial terms in a sum take more.
MATRICES = {"exact": 9, "ep": 9, "laplace": 13}


def bytes_needed(inference: str, n: int) -> int:
    """Return the memory that dense inference on n rows needs."""
    return MATRICES[inference] * DOUBLE * n * n


def available_bytes() -> int | None:
    """Return the free memory of the host; None where the system does not report it."""
    free = _meminfo()
    if free is None:
        try:
            free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (AttributeError, OSError, ValueError):  # Windows has no sysconf, other systems not these names
            return None
    limit = _container_limit()
    return free if limit is None else min(free, limit)


def refuse_too_large(inference: str, n: int, remedy: str, prototype: Array | None = None) -> None:
    """Raise `MemoryError` with a remedy if dense inference on n rows does not fit on the device of the prototype."""
    on_host = prototype is None or isinstance(prototype, np.ndarray)
    needed, available = bytes_needed(inference, n), available_bytes() if on_host else device_bytes(prototype)
    if available is not None and needed > available:
        raise MemoryError(
            f"Inference by {inference!r} on {n} rows needs about {_gib(needed)}, and {_gib(available)} are available. "
            f"{remedy}"
        )


def device_bytes(prototype: Array) -> int | None:
    """Return the free memory of the device of an array; the host's for torch on the CPU."""
    if prototype.device.type != "cuda":
        return available_bytes()
    import torch

    return int(torch.cuda.mem_get_info(prototype.device)[0])


def _meminfo() -> int | None:
    # SC_AVPHYS_PAGES leaves out what the page cache would give back, which is most of the memory of a busy machine.
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    kib = [int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    return 1024 * kib[0] if kib else None


def _container_limit() -> int | None:
    """Return the memory that a container may still take (control groups, version 2)."""
    try:
        limit, used = (Path(f"/sys/fs/cgroup/memory.{name}").read_text(encoding="ascii") for name in ("max", "current"))
    except OSError:
        return None
    return None if limit.strip() == "max" else max(0, int(limit) - int(used))


def _gib(size: int) -> str:
    return f"{size / 2**30:z.1f} GiB"
